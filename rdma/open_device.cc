#include <atomic>
#include <charconv>
#include <utility>

#include "rdma/extra_transport.h"
#include "rdma/nic_device.h"
#include "rdma/shm/device.h"
#include "rdma/tcp/device.h"
#include "rdma/transport.h"
#include "rdma/verbs/device.h"

namespace nacre::rdma {

namespace {

/// Release by SetExtraTransport, acquire by OpenDevice.
std::atomic<const ExtraTransport*> extra_transport{nullptr};

Status ParseNonNegative(const std::string& name, const std::string& text, double* value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  if (error == std::errc() && rest == end && *value >= 0 && *value <= 1e9) return Status::OK();
  return Status::InvalidArgument("transport parameter " + name + "=" + text +
                                 ": not a number from 0 to 1e9");
}

}  // namespace

void SetExtraTransport(const ExtraTransport* transport) {
  extra_transport.store(transport, std::memory_order_release);
}

Status OpenDevice(const std::string& scheme, const DeviceOptions& options, Clock* clock,
                  std::unique_ptr<Device>* device) {
  NicModel model;
  DeviceOptions backend = options;
  for (const auto& [name, value] : options.parameters) {
    if (name == "rtt_us") {
      NACRE_RETURN_IF_ERROR(ParseNonNegative(name, value, &model.rtt_us));
    } else if (name == "gbps") {
      NACRE_RETURN_IF_ERROR(ParseNonNegative(name, value, &model.gbps));
    } else if (name == "port_gbps") {
      NACRE_RETURN_IF_ERROR(ParseNonNegative(name, value, &model.port_gbps));
    } else if (name == "ports") {
      model.ports = value;
    } else if (name == "map" && (scheme == "shm" || scheme == "cxl" || scheme == "embedded")) {
      if (value != "0" && value != "1") {
        return Status::InvalidArgument("transport parameter map=" + value + ": neither 0 nor 1");
      }
      continue;
    } else if (scheme != "tcp" && scheme != "verbs") {
      return Status::InvalidArgument("unknown transport parameter '" + name + "'");
    } else {
      continue;
    }
    backend.parameters.erase(name);
  }
  if (scheme == "shm") {
    NACRE_RETURN_IF_ERROR(ShmDevice::Open("shm", options, clock, device));
  } else if (scheme == "cxl") {
    NACRE_RETURN_IF_ERROR(ShmDevice::Open("cxl", options, clock, device));
  } else if (scheme == "embedded") {
    NACRE_RETURN_IF_ERROR(ShmDevice::Open("embedded", options, clock, device));
  } else if (scheme == "tcp") {
    NACRE_RETURN_IF_ERROR(TcpDevice::Open(backend, clock, device));
  } else if (scheme == "verbs") {
    NACRE_RETURN_IF_ERROR(VerbsDevice::Open(backend, clock, device));
  } else if (const ExtraTransport* extra = extra_transport.load(std::memory_order_acquire);
             extra != nullptr && scheme == extra->scheme) {
    NACRE_RETURN_IF_ERROR(extra->open(backend, device));
  } else {
    return Status::InvalidArgument("unknown transport '" + scheme + "'");
  }
  if (model.rtt_us == 0 && model.gbps == 0 && model.port_gbps == 0) return Status::OK();
  return WrapWithNic(std::move(*device), model, clock, device);
}

}  // namespace nacre::rdma
