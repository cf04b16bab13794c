#include "rdma/verbs/adapter.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

namespace nacre::rdma {

namespace {

constexpr char kRemedy[] =
    "; load the card's driver, or for any Ethernet card soft-RoCE: 'modprobe rdma_rxe' and "
    "'rdma link add rxe0 type rxe netdev eth0'";

struct DeviceList {
  DeviceList() : devices(ibv_get_device_list(&count)) {}
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  int count = 0;
  ibv_device** const devices;
};

Status ParseNumber(const std::string& name, const std::string& text, int64_t min, int64_t max,
                   int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  if (error == std::errc() && rest == end && *value >= min && *value <= max) return Status::OK();
  return Status::InvalidArgument("transport parameter " + name + "=" + text +
                                 ": not a number from " + std::to_string(min) + " to " +
                                 std::to_string(max));
}

}  // namespace

Status VerbsError(const std::string& what, int error) {
  return Status::IOError(what + ": " + std::strerror(error));
}

Status ParseVerbsParameters(const std::map<std::string, std::string>& parameters,
                            VerbsParameters* parsed) {
  for (const auto& [name, text] : parameters) {
    int64_t number = 0;
    if (name == "device") {
      parsed->device = text;
    } else if (name == "port") {
      NACRE_RETURN_IF_ERROR(ParseNumber(name, text, 1, 255, &number));
      parsed->port = static_cast<int>(number);
    } else if (name == "gid") {
      NACRE_RETURN_IF_ERROR(ParseNumber(name, text, 0, 65535, &number));
      parsed->gid = static_cast<int>(number);
    } else if (name == "timeout_ms") {
      NACRE_RETURN_IF_ERROR(ParseNumber(name, text, 10, 600'000, &number));
      parsed->timeout = std::chrono::milliseconds(number);
    } else if (name == "piece_mib") {
      NACRE_RETURN_IF_ERROR(ParseNumber(name, text, 0, int64_t{1} << 24, &number));
      parsed->piece_bytes = static_cast<uint64_t>(number) << 20;
      if (number != 0 && !std::has_single_bit(parsed->piece_bytes)) {
        return Status::InvalidArgument("transport parameter piece_mib=" + text +
                                       ": not a power of two");
      }
    } else if (name == "relaxed_ordering") {
      NACRE_RETURN_IF_ERROR(ParseNumber(name, text, 0, 1, &number));
      parsed->relaxed_ordering = number != 0;
    } else {
      return Status::InvalidArgument("unknown transport parameter '" + name + "'");
    }
  }
  return Status::OK();
}

Status Adapter::Open(const VerbsParameters& parameters, std::unique_ptr<Adapter>* adapter) {
  // This keeps forked children from replacing pages that the device reads. It fails only if the
  // library was used without it before.
  [[maybe_unused]] const int result = ibv_fork_init();
  const DeviceList list;
  if (list.devices == nullptr || list.count == 0) {
    return Status::Unavailable(std::string("no RDMA device is there") + kRemedy);
  }
  std::string found;
  Status refused;
  for (int i = 0; i < list.count; i++) {
    const std::string name = ibv_get_device_name(list.devices[i]);
    found += (found.empty() ? "" : ", ") + name;
    if (!parameters.device.empty() && parameters.device != name) continue;
    std::unique_ptr<Adapter> opened(new Adapter);
    const Status status = OpenPort(list.devices[i], parameters, opened.get());
    if (status.ok()) {
      *adapter = std::move(opened);
      return Status::OK();
    }
    if (refused.ok()) refused = status;
  }
  if (!refused.ok()) return refused;
  return Status::Unavailable("no RDMA device " + parameters.device +
                             " here; the devices are: " + found);
}

Status Adapter::OpenPort(ibv_device* device, const VerbsParameters& parameters, Adapter* adapter) {
  adapter->parameters_ = parameters;
  adapter->name_ = ibv_get_device_name(device);
  adapter->context_.reset(ibv_open_device(device));
  if (adapter->context_ == nullptr) {
    return Status::Unavailable("RDMA device " + adapter->name_ +
                               " cannot be opened: " + std::strerror(errno) +
                               "; is ib_uverbs loaded, may this user open /dev/infiniband?");
  }
  if (const int error = ibv_query_device(adapter->context(), &adapter->attributes_); error != 0) {
    return VerbsError("ibv_query_device on " + adapter->name_, error);
  }
  const int first = parameters.port == 0 ? 1 : parameters.port;
  const int last = parameters.port == 0 ? adapter->attributes_.phys_port_cnt : parameters.port;
  for (int port = first; port <= last && adapter->port_ == 0; port++) {
    ibv_port_attr attributes{};
    if (ibv_query_port(adapter->context(), static_cast<uint8_t>(port), &attributes) != 0 ||
        attributes.state != IBV_PORT_ACTIVE) {
      continue;
    }
    adapter->port_ = static_cast<uint8_t>(port);
    adapter->max_message_bytes_ = attributes.max_msg_sz;
  }
  if (adapter->port_ == 0) {
    return Status::Unavailable(
        "RDMA device " + adapter->name_ +
        (parameters.port == 0 ? ": no port is active"
                              : ": port " + std::to_string(parameters.port) + " is not active") +
        "; is the link up ('rdma link', 'ip link set DEV up')?");
  }
  ibv_gid_entry entry{};
  if (parameters.gid >= 0 && !adapter->FindGid(parameters.gid, &entry)) {
    return Status::InvalidArgument(
        "RDMA device " + adapter->name_ + ": no GID index " + std::to_string(parameters.gid) +
        " on port " + std::to_string(adapter->port_) + " ('ibv_devinfo -v' lists them)");
  }
  adapter->protection_domain_.reset(ibv_alloc_pd(adapter->context()));
  if (adapter->protection_domain_ == nullptr) {
    return VerbsError("ibv_alloc_pd on " + adapter->name_, errno);
  }
  return Status::OK();
}

bool Adapter::PortIsActive() const {
  ibv_port_attr attributes{};
  return ibv_query_port(context(), port_, &attributes) == 0 && attributes.state == IBV_PORT_ACTIVE;
}

bool Adapter::FindGid(int index, ibv_gid_entry* entry) const {
  return ibv_query_gid_ex(context(), port_, static_cast<uint32_t>(index), entry, 0) == 0;
}

const char* GidTypeName(const ibv_gid_entry& entry) {
  switch (entry.gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    default:
      return "InfiniBand";
  }
}

}  // namespace nacre::rdma
