#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "nacre/status.h"
#include "pool/connect/node_link.h"
#include "util/clock.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// Finds out whether a node answers, by a thread of its own, since asking a silent node takes the
/// whole patience. It connects as a client that the node has never seen and owns nothing, has a
/// request answered, and leaves: nothing of this client changes by that.
///
/// Thread safety: one thread uses it.
class NodeKnock {
 public:
  /// `instance_id`: that the node must have; 0: any. The thread calls `wake` when it is done.
  NodeKnock(const ClientContext& context, const std::string& address, uint64_t instance_id,
            std::chrono::nanoseconds patience, std::function<void()> wake);
  /// Waits until it is done.
  ~NodeKnock();
  NodeKnock(const NodeKnock&) = delete;
  NodeKnock& operator=(const NodeKnock&) = delete;

  bool done() const { return done_.load(std::memory_order_acquire); }

  // ---- Once it is done ----

  /// OK: the node has answered. Else as NodeLink::Connect and RequestChannel::Call.
  const Status& status() const { return status_; }
  /// How long that took.
  std::chrono::nanoseconds took() const { return took_; }

 private:
  Status Ask(Deadline deadline);

  ClientContext context_;
  NodeLink link_;
  const std::chrono::nanoseconds patience_;
  Status status_;
  std::chrono::nanoseconds took_{0};
  std::atomic<bool> done_{false};  ///< Release by the thread: pairs with done().
  Thread thread_;
};

}  // namespace nacre::pool
