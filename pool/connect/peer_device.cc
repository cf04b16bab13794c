#include "pool/connect/peer_device.h"

#include <utility>

namespace nacre::pool {
namespace {

constexpr char kTls[] = "tls";
constexpr char kTlsOfMixedPools[] = "tcp.tls";
constexpr char kAllEncrypted[] = "all";

}  // namespace

Status PeerSecurity::Of(const rdma::DeviceOptions& pool, PeerSecurity* security) {
  if (pool.ring != nullptr || !pool.secret.empty()) {
    NACRE_RETURN_IF_ERROR(rdma::RingOf(pool, &security->ring));
  }
  for (const char* const name : {kTls, kTlsOfMixedPools}) {
    if (const auto found = pool.parameters.find(name); found != pool.parameters.end()) {
      security->tls = found->second;
    }
  }
  security->logger = pool.logger;
  return Status::OK();
}

Status OpenPeerDevice(const std::string& address, const PeerSecurity& security, Clock* clock,
                      std::unique_ptr<rdma::Device>* device) {
  const size_t colon = address.find(':');
  if (colon == std::string::npos) {
    return Status::InvalidArgument("'" + address +
                                   "' is no TRANSPORT:ADDRESS, such as tcp:10.0.0.1:7500");
  }
  const std::string scheme = address.substr(0, colon);
  if (scheme == "verbs" && security.tls == kAllEncrypted) {
    return Status::InvalidArgument("'" + address +
                                   "': the pool encrypts all (tls=all), which verbs cannot");
  }
  rdma::DeviceOptions options{.logger = security.logger, .ring = security.ring};
  // Over shm nothing leaves the host.
  if (scheme == "tcp" && !security.tls.empty()) options.parameters[kTls] = security.tls;
  return rdma::OpenDevice(scheme, options, clock, device).WithContext(address);
}

}  // namespace nacre::pool
