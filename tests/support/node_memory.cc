#include "tests/support/node_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace nacre {

NodeMemory::NodeMemory(pid_t pid, uint64_t least_bytes) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream fields(line);
    fields >> std::hex >> begin >> dash >> end >> rights;
    const bool shared =
        line.find("memfd:nacre") != std::string::npos || line.find(".region") != std::string::npos;
    if (!shared || end - begin < least_bytes || !rights.starts_with("rw")) continue;
    // The process has regions of its peers mapped as well, but all of them later, and so below.
    begin_ = begin;
    size_ = end - begin;
  }
  fd_ = ::open((process + "/mem").c_str(), O_RDWR | O_CLOEXEC);
}

NodeMemory::~NodeMemory() {
  if (fd_ >= 0) ::close(fd_);
}

bool NodeMemory::Read(uint64_t offset, size_t n, std::string* bytes) const {
  bytes->resize(n);
  return found() && ::pread(fd_, bytes->data(), n, static_cast<off_t>(begin_ + offset)) ==
                        static_cast<ssize_t>(n);
}

bool NodeMemory::FlipBit(uint64_t offset, int bit) {
  std::string byte;
  if (!Read(offset, 1, &byte)) return false;
  byte[0] = static_cast<char>(byte[0] ^ 1 << bit);
  return ::pwrite(fd_, byte.data(), 1, static_cast<off_t>(begin_ + offset)) == 1;
}

}  // namespace nacre
