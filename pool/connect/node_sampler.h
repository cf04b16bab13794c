#pragma once

#include <chrono>
#include <memory>

#include "nacre/status.h"
#include "pool/connect/client_context.h"
#include "pool/connect/node_link.h"
#include "pool/connect/request_channel.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::pool {

/// Measures how long small operations take on one node, over connections of its own: what travels
/// on the others may be stuck behind something large, or late.
///
/// Thread safety: none; one thread uses it.
class NodeSampler {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// Connects to the node, which this client has reached before. `context` and `link` outlive the
  /// result. Fails as NodeLink::Connect.
  static Status Open(const ClientContext* context, const NodeLink* link, Deadline deadline,
                     std::unique_ptr<NodeSampler>* sampler);

  /// One small read, or one request that asks for nothing; the first one connects before it counts
  /// the time. A sampler that has failed is of no more use.
  Status Read(Deadline deadline, nanoseconds* took);
  Status Ping(Deadline deadline, nanoseconds* took);

 private:
  NodeSampler(const ClientContext* context, const NodeLink* link)
      : context_(context), link_(link) {}

  const ClientContext* const context_;
  const NodeLink* const link_;
  // Destroyed in reverse order: the queue pair before what it uses.
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> landing_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  std::unique_ptr<RequestChannel> channel_;
};

}  // namespace nacre::pool
