#include "rdma/transport.h"

namespace nacre::rdma {

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
