#include "rdma/nic_ports.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/memory.h"
#include "rdma/unique_fd.h"
#include "util/hash.h"

namespace nacre::rdma {

Status NicPorts::Open(const std::string& path, std::unique_ptr<NicPorts>* ports) {
  constexpr size_t kBytes = kPorts * sizeof(Port);
  UniqueFd file;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!path.empty()) {
    file = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.valid() || ftruncate(file.get(), kBytes) != 0) return SystemError("ports=" + path);
    flags = MAP_SHARED;
  }
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (mapped == MAP_FAILED) return SystemError("map the ports of the NIC model");
  ports->reset(new NicPorts(static_cast<Port*>(mapped)));
  return Status::OK();
}

NicPorts::~NicPorts() { munmap(ports_, kPorts * sizeof(Port)); }

Link* NicPorts::Of(const std::string& peer) {
  const uint64_t hash = std::max<uint64_t>(1, Hash64(peer));
  for (size_t i = 0; i < kPorts; ++i) {
    Port* const port = &ports_[(hash + i) % kPorts];
    uint64_t there = port->peer.load(std::memory_order_relaxed);
    if (there == 0 && port->peer.compare_exchange_strong(there, hash, std::memory_order_relaxed)) {
      there = hash;
    }
    if (there == hash) return &port->link;
  }
  return &ports_[hash % kPorts].link;
}

}  // namespace nacre::rdma
