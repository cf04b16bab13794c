#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// Keys of a family: one, those of a range, or all of them.
struct KeySet {
  enum class Kind : uint8_t {
    kKey,     ///< `begin`.
    kRange,   ///< [begin, end).
    kFamily,  ///< It is only asked for, and not held.
  };

  uint32_t family = 0;
  Kind kind = Kind::kKey;
  std::string begin{};
  std::string end{};
};
using KeySets = std::vector<KeySet>;

/// The keys of a shard that batches over several shards are about to write. One batch holds them
/// from before it is prepared until it is committed in all of its shards; whatever else writes or
/// reads one of them, waits. A batch whose end is not known (it failed after it may have been
/// decided) holds its keys for good.
///
/// Thread safety: all methods may be called from many threads at once.
class KeyHolds {
 public:
  using BatchId = std::string;  ///< Its name.

  explicit KeyHolds(const Comparator* comparator)
      : comparator_(comparator), points_(Before{comparator}) {}

  /// False: nothing is held by batches that began to hold keys before this call. Sequentially
  /// consistent: Acquire counts first and looks for operations under way then.
  bool any() const { return count_.load(std::memory_order_seq_cst) > 0; }

  /// Waits until no other batch holds any of `keys`, and holds all of them at once.
  /// `TimedOut`; or why a batch that holds one of them failed.
  Status Acquire(const BatchId& batch, KeySets keys, Deadline deadline) EXCLUDES(mutex_);
  void Release(const BatchId& batch) EXCLUDES(mutex_);
  /// Those that wait for its keys, or will, are answered `why`.
  void Fail(const BatchId& batch, const Status& why) EXCLUDES(mutex_);

  /// Whether a batch holds some of `keys`.
  bool Overlaps(const KeySets& keys) const EXCLUDES(mutex_);
  /// Waits until the batches that hold some of `keys` now do not hold them any more. Fails as
  /// Acquire does.
  Status Await(const KeySets& keys, Deadline deadline) const EXCLUDES(mutex_);
  /// OK unless a batch that failed holds some of `keys`; then why it failed.
  Status CheckFailed(const KeySets& keys) const EXCLUDES(mutex_);

 private:
  struct Before {
    bool operator()(const KeySet& a, const KeySet& b) const {
      if (a.family != b.family) return a.family < b.family;
      return comparator->Compare(a.begin, b.begin) < 0;
    }
    const Comparator* comparator;
  };
  struct Range {
    KeySet keys;
    BatchId batch;
  };

  /// Calls `visit(batch)` for each that holds some of `keys`, until that answers false.
  template <typename Visit>
  void ForEachHolder(const KeySet& keys, Visit visit) const REQUIRES(mutex_);
  /// All of them but `except`.
  std::vector<BatchId> HoldersOf(const KeySets& keys, const BatchId& except) const REQUIRES(mutex_);
  Status FailureOf(const std::vector<BatchId>& batches) const REQUIRES(mutex_);

  const Comparator* const comparator_;
  std::atomic<uint32_t> count_{0};  ///< Batches.
  mutable Mutex mutex_;
  mutable CondVar changed_{&mutex_};
  std::map<KeySet, BatchId, Before> points_ GUARDED_BY(mutex_);
  std::vector<Range> ranges_ GUARDED_BY(mutex_);
  std::map<BatchId, KeySets> batches_ GUARDED_BY(mutex_);
  std::map<BatchId, Status> failed_ GUARDED_BY(mutex_);
};

}  // namespace nacre
