#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/logger.h"
#include "nacre/perf_context.h"
#include "nacre/slice.h"
#include "pool/connect/node_waits.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// The operations of a database that took at least `DBOptions::slow_operation_threshold`: they are
/// counted, and logged with what they waited for, node by node. At most ten a second are described,
/// so that a pool which is slow as a whole does not fill the disk.
///
/// Thread safety: all methods may be called from many threads at once.
class SlowOperations {
 public:
  struct Operation {
    std::string_view kind;    ///< "Get", and so on.
    std::string_view family;  ///< Empty: several.
    Slice key;                ///< The first one.
    uint64_t keys = 1;
    uint64_t nanos = 0;
    PerfContext did;
    pool::NodeWaits waits;
  };
  struct Line {
    uint64_t at_nanos = 0;  ///< By the clock, when it had ended.
    std::string text;
  };
  /// So many lines are remembered.
  static constexpr size_t kRemembered = 128;

  /// `address` tells where a node is; `name` is the database's. `threshold` may change.
  SlowOperations(std::string name, Clock* clock, Logger* log,
                 const std::atomic<std::chrono::microseconds>* threshold,
                 std::function<std::string(NodeId)> address);

  /// 0: no operation is watched.
  std::chrono::microseconds threshold() const {
    return threshold_->load(std::memory_order_relaxed);
  }

  void Add(const Operation& operation) EXCLUDES(mutex_);
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// The last ones that were described, the oldest first.
  std::vector<Line> Latest() const EXCLUDES(mutex_);

  Clock* clock() const { return clock_; }

 private:
  std::string Describe(const Operation& operation) const;
  /// Whether one more may be described now; `*left_out`: how many before it were not.
  bool MayDescribe(uint64_t* left_out) EXCLUDES(mutex_);

  const std::string name_;
  Clock* const clock_;
  Logger* const log_;
  const std::atomic<std::chrono::microseconds>* const threshold_;
  const std::function<std::string(NodeId)> address_;
  std::atomic<uint64_t> count_{0};
  mutable Mutex mutex_;
  std::deque<Line> latest_ GUARDED_BY(mutex_);
  uint64_t second_ GUARDED_BY(mutex_) = 0;  ///< In which `described_` were described.
  int described_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

/// Watches an operation of the calling thread from here to its end. Without a threshold it costs a
/// load; with one, the thread's PerfContext is on meanwhile, and has afterwards what it would have
/// without. An operation within another one that is watched belongs to that.
class SlowOperationWatch {
 public:
  /// What the arguments refer to outlives this.
  SlowOperationWatch(SlowOperations* operations, std::string_view kind, std::string_view family,
                     const Slice& key, uint64_t keys = 1) {
    if (operations->threshold().count() == 0) [[likely]]
      return;
    Begin(operations, kind, family, key, keys);
  }
  ~SlowOperationWatch() {
    if (active_ != nullptr) [[unlikely]]
      End();
  }
  SlowOperationWatch(const SlowOperationWatch&) = delete;
  SlowOperationWatch& operator=(const SlowOperationWatch&) = delete;

 private:
  struct Active;

  void Begin(SlowOperations* operations, std::string_view kind, std::string_view family,
             const Slice& key, uint64_t keys);
  void End();

  Active* active_ = nullptr;  ///< Null: nothing is watched.
};

}  // namespace nacre
