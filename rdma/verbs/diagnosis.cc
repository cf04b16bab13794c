#include "rdma/verbs/diagnosis.h"

#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "rdma/verbs/adapter.h"
#include "rdma/verbs/address.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

using Verdict = Finding::Verdict;

constexpr int kResolveMillis = 2000;

Finding LockedMemory() {
  constexpr rlim_t kLeast = rlim_t{1} << 30;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) limit.rlim_cur = 0;
  if (limit.rlim_cur == RLIM_INFINITY) return {Verdict::kOk, "locked memory", "unlimited", ""};
  if (::geteuid() == 0) return {Verdict::kOk, "locked memory", "root is not limited", ""};
  const std::string remedy =
      "registered memory is locked: 'ulimit -l unlimited', LimitMEMLOCK=infinity in the service's "
      "unit, or 'USER - memlock unlimited' in /etc/security/limits.conf";
  return {limit.rlim_cur < kLeast ? Verdict::kFailure : Verdict::kWarning, "locked memory",
          FormatBytes(limit.rlim_cur), remedy};
}

int BytesOf(ibv_mtu mtu) { return 128 << mtu; }

Finding Mtu(const ibv_port_attr& port) {
  Finding finding{
      Verdict::kOk, "MTU",
      std::to_string(BytesOf(port.active_mtu)) + " of " + std::to_string(BytesOf(port.max_mtu)),
      ""};
  if (BytesOf(port.active_mtu) < 1024) {
    finding.verdict = Verdict::kWarning;
    finding.remedy =
        "each packet carries little: 'ip link set DEV mtu 4200' on both ends and the switch "
        "between (Ethernet's 1500 gives 1024)";
  }
  return finding;
}

Finding Gids(const Adapter& adapter, int size) {
  std::string list;
  bool has_v2 = false;
  bool is_infiniband = false;
  for (int i = 0; i < size; ++i) {
    ibv_gid_entry entry{};
    if (!adapter.FindGid(i, &entry)) continue;
    has_v2 = has_v2 || entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    is_infiniband = is_infiniband || entry.gid_type == IBV_GID_TYPE_IB;
    list += (list.empty() ? "" : ", ") + std::to_string(i) + " " + GidTypeName(entry);
  }
  if (has_v2 || is_infiniband) return {Verdict::kOk, "GID table", list, ""};
  return {Verdict::kFailure, "GID table", list.empty() ? "empty" : list,
          "RoCE v2 needs an IP address on the network device: 'ip addr add A.B.C.D/N dev DEV'"};
}

struct EndId {
  void operator()(rdma_cm_id* id) const { [[maybe_unused]] const int result = rdma_destroy_id(id); }
};

/// Which device and GID requests to `peer` would take.
Finding Route(const Adapter& adapter, const std::string& peer, int table_size) {
  const std::string subject = "route to " + peer;
  VerbsAddress address;
  if (const Status s = ParseVerbsAddress(peer, &address); !s.ok()) {
    return {Verdict::kFailure, subject, s.ToString(), "name the node as HOST:PORT"};
  }
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP) != 0) {
    return {Verdict::kFailure, subject, std::string("rdma_create_id: ") + std::strerror(errno),
            "modprobe rdma_ucm"};
  }
  const std::unique_ptr<rdma_cm_id, EndId> id(made);
  if (rdma_resolve_addr(id.get(), nullptr, address.get(), kResolveMillis) != 0 ||
      id->verbs == nullptr) {
    return {
        Verdict::kFailure, subject,
        std::string("no RDMA device leads there: ") + std::strerror(errno),
        "'rdma link' must show a device over the network device that 'ip route get HOST' names"};
  }
  const std::string device = ibv_get_device_name(id->verbs->device);
  std::string found = device + " port " + std::to_string(id->port_num);
  if (device != adapter.name()) {
    return {Verdict::kFailure, subject, found + ", not " + adapter.name(),
            "add ?device=" + device + " to the pool's URI"};
  }
  for (int i = 0; i < table_size; ++i) {
    ibv_gid_entry entry{};
    if (!adapter.FindGid(i, &entry) ||
        std::memcmp(&entry.gid, &id->route.addr.addr.ibaddr.sgid, sizeof(entry.gid)) != 0) {
      continue;
    }
    // The same address has an entry for each version of RoCE; the kernel takes the newest it may.
    found += ", GID " + std::to_string(i) + " " + GidTypeName(entry);
  }
  return {Verdict::kOk, subject, found, ""};
}

/// The largest piece of memory that the device registers at once, up to an eighth of what is free:
/// twice as much each time, so that a limit is found without pinning much.
Finding Registration(const Adapter& adapter) {
  constexpr uint64_t kFirst = 16 << 20;
  constexpr uint64_t kMost = uint64_t{4} << 30;
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_AVPHYS_PAGES)));
  const uint64_t limit =
      std::clamp(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) / 8, kFirst, kMost);
  uint64_t largest = 0;
  int error = 0;
  for (uint64_t size = kFirst; size <= limit && error == 0; size *= 2) {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) break;
    const UniqueMemoryRegion region(ibv_reg_mr(adapter.protection_domain(), memory, size,
                                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    error = region == nullptr ? errno : 0;
    if (region != nullptr) largest = size;
    ::munmap(memory, size);
  }
  const std::string device_limit = FormatBytes(adapter.attributes().max_mr_size);
  if (largest == 0) {
    return {Verdict::kFailure, "registration",
            FormatBytes(kFirst) + " are refused: " + std::strerror(error),
            "raise the limit of locked memory, see above"};
  }
  return {error == 0 ? Verdict::kOk : Verdict::kWarning, "registration",
          FormatBytes(largest) + " at once (the device says " + device_limit + ")" +
              (error == 0 ? "" : std::string("; more: ") + std::strerror(error)),
          error == 0 ? ""
                     : "?piece_mib=" + std::to_string(largest >> 20) +
                           " in the node's --listen registers larger regions in pieces"};
}

}  // namespace

void DiagnoseVerbs(const std::map<std::string, std::string>& parameters,
                   const std::vector<std::string>& peers, std::vector<Finding>* findings) {
  findings->push_back(LockedMemory());
  VerbsParameters parsed;
  std::unique_ptr<Adapter> adapter;
  Status status = ParseVerbsParameters(parameters, &parsed);
  if (status.ok()) status = Adapter::Open(parsed, &adapter);
  if (!status.ok()) {
    // What it found and what to do come in one sentence, cut at the semicolon.
    const std::string text = status.ToString();
    const size_t cut = text.find("; ");
    findings->push_back({Verdict::kFailure, "RDMA device", text.substr(0, cut),
                         cut == std::string::npos ? "see 'rdma link'" : text.substr(cut + 2)});
    return;
  }
  ibv_port_attr port{};
  if (ibv_query_port(adapter->context(), adapter->port(), &port) != 0) {
    findings->push_back({Verdict::kFailure, "RDMA device",
                         adapter->name() + ": its port cannot be queried", "see 'rdma link'"});
    return;
  }
  findings->push_back({Verdict::kOk, "RDMA device",
                       adapter->name() + " port " + std::to_string(adapter->port()) + ", " +
                           (port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand"),
                       ""});
  if (!adapter->has_atomics()) {
    findings->push_back({Verdict::kFailure, "atomics", "the device has none",
                         "use another device, or the tcp transport"});
  }
  findings->push_back(Mtu(port));
  findings->push_back(Gids(*adapter, port.gid_tbl_len));
  for (const std::string& peer : peers) {
    findings->push_back(Route(*adapter, peer, port.gid_tbl_len));
  }
  findings->push_back(Registration(*adapter));
}

}  // namespace nacre::rdma
