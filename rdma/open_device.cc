#include "rdma/shm_device.h"
#include "rdma/transport.h"

namespace nacre::rdma {

Status OpenDevice(const std::string& scheme, const std::map<std::string, std::string>& parameters,
                  Clock* clock, std::unique_ptr<Device>* device) {
  for (const auto& [name, value] : parameters) {
    return Status::InvalidArgument("unknown transport parameter '" + name + "'");
  }
  if (scheme == "shm") return ShmDevice::Open("shm", clock, device);
  if (scheme == "embedded") return ShmDevice::Open("embedded", clock, device);
  if (scheme == "verbs" || scheme == "tcp") {
    return Status::NotSupported("transport '" + scheme + "' is not there yet");
  }
  return Status::InvalidArgument("unknown transport '" + scheme + "'");
}

}  // namespace nacre::rdma
