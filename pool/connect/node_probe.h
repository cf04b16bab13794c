#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "nacre/status.h"
#include "pool/connect/node_link.h"
#include "util/clock.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// Finds out how fast a node is that has been slow, by a thread of its own and over connections of
/// its own: what travels on the others may be stuck behind what was late.
///
/// Thread safety: one thread uses it.
class NodeProbe {
 public:
  /// `link` outlives this. The thread calls `wake` when it is done, after `patience` at the latest.
  NodeProbe(const ClientContext& context, NodeLink* link, std::chrono::nanoseconds patience,
            std::function<void()> wake);
  /// Waits until it is done.
  ~NodeProbe();
  NodeProbe(const NodeProbe&) = delete;
  NodeProbe& operator=(const NodeProbe&) = delete;

  bool done() const { return done_.load(std::memory_order_acquire); }

  // ---- Once it is done ----

  /// OK: the node has answered. Else as NodeLink::Connect and RequestChannel::Call, or `TimedOut`.
  const Status& status() const { return status_; }
  /// Whether it has answered anything.
  bool answered() const { return answered_; }
  /// The longest of a few small reads, and of a few requests.
  std::chrono::nanoseconds longest_read() const { return longest_read_; }
  std::chrono::nanoseconds longest_request() const { return longest_request_; }

 private:
  Status Ask(Deadline deadline);

  const ClientContext& context_;
  NodeLink* const link_;
  const std::chrono::nanoseconds patience_;
  Status status_;
  bool answered_ = false;
  std::chrono::nanoseconds longest_read_{0};
  std::chrono::nanoseconds longest_request_{0};
  std::atomic<bool> done_{false};  ///< Release by the thread: pairs with done().
  Thread thread_;
};

}  // namespace nacre::pool
