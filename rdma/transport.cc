#include "rdma/transport.h"

#include "rdma/secret_ring.h"

namespace nacre::rdma {

Status RingOf(const DeviceOptions& options, std::shared_ptr<SecretRing>* ring) {
  if (options.ring == nullptr) return SecretRing::OfOne(options.secret, ring);
  *ring = options.ring;
  return Status::OK();
}

const char* ToString(CompletionCode code) {
  switch (code) {
    case CompletionCode::kSuccess:
      return "success";
    case CompletionCode::kFlushed:
      return "flushed";
    case CompletionCode::kRemoteAccessError:
      return "remote access error";
    case CompletionCode::kLocalError:
      return "local error";
    case CompletionCode::kPeerGone:
      return "peer gone";
    case CompletionCode::kReceiverNotReady:
      return "receiver not ready";
  }
  return "unknown completion code";
}

}  // namespace nacre::rdma
