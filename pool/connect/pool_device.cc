#include "pool/connect/pool_device.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rdma/mixed_device.h"

namespace nacre::pool {

std::string NodeAddress(const Uri& pool, size_t i) {
  return pool.scheme == kMixedScheme ? pool.addresses[i] : pool.scheme + ":" + pool.addresses[i];
}

void MakePathsAbsolute(Uri* pool) {
  for (std::string& address : pool->addresses) {
    for (const std::string scheme : {"shm", "cxl"}) {
      const bool prefixed = pool->scheme == kMixedScheme && address.starts_with(scheme + ":");
      if (pool->scheme != scheme && !prefixed) continue;
      const std::string prefix = prefixed ? scheme + ":" : "";
      const std::string path = address.substr(prefix.size());
      if (path.empty() || path[0] == '@') continue;
      address = prefix + std::filesystem::absolute(path).string();
    }
  }
}

Status OpenPoolDevice(const Uri& pool, const rdma::DeviceOptions& options, Clock* clock,
                      std::unique_ptr<rdma::Device>* device) {
  if (pool.scheme != kMixedScheme) {
    return rdma::OpenDevice(pool.scheme, options, clock, device);
  }
  std::vector<std::string> schemes;
  for (const std::string& address : pool.addresses) {
    Uri node;
    NACRE_RETURN_IF_ERROR(ParseUri(address, &node).WithContext("node of a mixed pool"));
    if (node.scheme == "embedded" || node.scheme == kMixedScheme) {
      return Status::InvalidArgument("node '" + address + "' of a mixed pool: over " + node.scheme +
                                     " no other process is reached");
    }
    if (std::find(schemes.begin(), schemes.end(), node.scheme) == schemes.end()) {
      schemes.push_back(std::move(node.scheme));
    }
  }
  return rdma::OpenMixedDevice(schemes, options, clock, device);
}

}  // namespace nacre::pool
