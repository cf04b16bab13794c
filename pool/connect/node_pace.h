#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "pool/connect/operation_times.h"

namespace nacre::pool {

/// The kinds of operations by whose times a node is judged: small one-sided reads, small one-sided
/// writes, and requests to its processor.
enum class NodeOperation : uint8_t { kRead, kWrite, kRequest };
inline constexpr size_t kNodeOperations = 3;

/// How fast one node has answered this client lately, and whether it counts as slow (pool_pace.h).
///
/// Thread safety: all methods may be called from many threads at once.
class NodePace {
 public:
  /// One that has ended, after more than the moment that a transport to memory of this host takes.
  void Note(NodeOperation operation, std::chrono::nanoseconds took) {
    times_[static_cast<size_t>(operation)].Add(took);
    if (operation != NodeOperation::kRead) return;
    // Reads that end at the same time may overwrite one another: it is a moving average.
    const int64_t before = recent_read_nanos_.load(std::memory_order_relaxed);
    recent_read_nanos_.store(before + (took.count() - before) / 8, std::memory_order_relaxed);
  }
  /// A moving average over some of the latest reads.
  int64_t recent_read_nanos() const { return recent_read_nanos_.load(std::memory_order_relaxed); }
  const OperationTimes& times(NodeOperation operation) const {
    return times_[static_cast<size_t>(operation)];
  }
  /// Whether to do without the node where others serve: it is slow, or leaves. One relaxed load.
  bool avoided() const { return avoided_.load(std::memory_order_relaxed); }
  /// Whether it lets this client wait.
  bool slow() const { return slow_.load(std::memory_order_relaxed); }
  /// The same, when nodes were chosen that PoolPace::changes() was `changes`.
  bool slow_at(uint64_t changes) const {
    return slow() && slow_since_.load(std::memory_order_relaxed) <= changes;
  }
  /// How often it has become slow.
  uint64_t times_slow() const { return times_slow_.load(std::memory_order_relaxed); }
  /// Waits that were longer than the pool's patience.
  uint64_t late() const { return late_.load(std::memory_order_relaxed); }

 private:
  friend class PoolPace;

  std::array<OperationTimes, kNodeOperations> times_;
  std::atomic<int64_t> recent_read_nanos_{0};
  std::atomic<bool> avoided_{false};
  std::atomic<bool> slow_{false};
  std::atomic<uint64_t> slow_since_{0};  ///< PoolPace::changes() from then on.
  std::atomic<uint64_t> times_slow_{0};
  std::atomic<uint64_t> late_{0};
  // The rest is under the mutex of PoolPace.
  bool leaves_ = false;
  std::chrono::nanoseconds probation_{0};  ///< How long it was slow at least, the last time.
  uint64_t until_nanos_ = 0;               ///< When it may return.
  uint64_t probe_at_nanos_ = 0;            ///< When it is asked next.
  bool answers_well_ = false;              ///< It was not late when it was asked last.
  uint64_t returned_nanos_ = 0;            ///< When it did; 0: never.
};

}  // namespace nacre::pool
