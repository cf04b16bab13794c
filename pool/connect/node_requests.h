#pragma once

#include <functional>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "pool/wire/control.pb.h"
#include "table/format/placement.h"
#include "util/clock.h"

namespace nacre::pool {

/// Sends control requests to nodes and waits for the answers. A failure names the node, and is the
/// transport's or the node's own.
///
/// Thread safety: all methods may be called from many threads at once.
class NodeRequests {
 public:
  /// What one of several nodes that were asked at once answered.
  struct Answer {
    NodeId node = kNoNode;
    Status status;
    control::Reply reply;
  };
  /// Writes the request for a node. Called from several threads.
  using Make = std::function<void(NodeId, control::Request*)>;

  /// `fabric` outlives this.
  explicit NodeRequests(Fabric* fabric) : fabric_(fabric) {}

  /// Whether a node that is slow (pool/connect/pool_pace.h) is waited for until the deadline, or
  /// answers `TimedOut` when it is late: where the others suffice, or others could be asked.
  enum class Late : uint8_t { kAwaited, kLeft };
  /// Sends one request to `node`, within the time of one operation.
  Status Call(NodeId node, control::Request* request, control::Reply* reply,
              Late late = Late::kAwaited);
  /// Whether the answers that have come so far, from some of the nodes, do.
  using Enough = std::function<bool(const std::vector<const Answer*>& answers)>;
  /// Sends a request of its own to each of the nodes, all at once. One answer for each, in order.
  /// With `enough`, nodes that are known to be slow are left (`TimedOut`) as soon as the answers of
  /// the others do. It is called by this thread.
  std::vector<Answer> CallAll(const std::vector<NodeId>& nodes, const Make& make, Deadline deadline,
                              Late late = Late::kAwaited, const Enough& enough = nullptr);
  std::vector<Answer> CallAll(const std::vector<NodeId>& nodes, const Make& make) {
    return CallAll(nodes, make, fabric_->context.OperationDeadline());
  }
  std::vector<Answer> CallAll(const std::vector<NodeId>& nodes, const Make& make, Late late) {
    return CallAll(nodes, make, fabric_->context.OperationDeadline(), late);
  }
  /// CallAll, again for those that answer TryAgain, until the deadline of one operation.
  std::vector<Answer> CallUntilDone(std::vector<NodeId> nodes, const Make& make);

  /// The nodes that are alive.
  std::vector<NodeId> LiveNodes() const { return fabric_->LiveNodes(); }
  /// The link to `node`, connected.
  Status UpLink(NodeId node, NodeLink** link);
  /// A connection to the node failed with `why` in the middle of something, which it answers.
  Status Lost(NodeLink* link, Status why);

 private:
  Fabric* const fabric_;
};

}  // namespace nacre::pool
