#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "pool/wire/rights.h"
#include "rdma/secret_ring.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// The end of one connection at a RequestServer. Belongs to its I/O thread.
///
/// A request connection goes round: kIdle -> (kFetching ->) kExecuting -> kReplying -> kIdle.
struct ServerConnection {
  enum class Phase : uint8_t { kIdle, kFetching, kExecuting, kReplying };

  /// The place where a SEND arrives, then that from which short replies are sent.
  static constexpr size_t kReceiveBytes = rdma::Device::kMaxSendBytes;
  static constexpr size_t kShortReplyBytes = 16 << 10;

  /// Whether there is a request that has not been answered.
  bool open() const { return phase == Phase::kFetching || phase == Phase::kExecuting; }

  uint64_t id = 0;
  ConnectionKind kind = ConnectionKind::kData;
  uint64_t client_id = 0;
  uint32_t number = 0;       ///< For kData, the client's number for it.
  ProtocolSupport protocol;  ///< What the client speaks; for kLifeline, also what it knows.
  /// What the client has proven to know, with which this connection ends, and what that allows.
  std::shared_ptr<const rdma::Credential> credential;
  Rights rights;
  Phase phase = Phase::kIdle;
  control::Request request;  ///< The current one; of a large one, the body.
  /// The next request, when it came in before the completion of the last reply was seen.
  std::unique_ptr<control::Request> next_request;
  /// An answer that did not fit the requester's buffer, until it is fetched.
  std::unique_ptr<control::Reply> held_reply;
  uint64_t taken_nanos = 0;  ///< When the current request was.
  /// For the handler: what it does for the current request; 0: nothing.
  uint64_t job_id = 0;

  std::unique_ptr<rdma::MemoryRegion> memory;
  std::unique_ptr<rdma::MemoryRegion> large_request;
  std::unique_ptr<rdma::MemoryRegion> large_reply;
  std::unique_ptr<rdma::QueuePair> queue_pair;  ///< Ends before the memory that it uses.
};

}  // namespace nacre::pool
