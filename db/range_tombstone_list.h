#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/internal_key.h"
#include "table/range_tombstones.h"
#include "util/mutex.h"

namespace nacre {

/// The range tombstones of a MemTable. They lie in runs whose sizes are different powers of two:
/// one that is added is a run of its own, and runs of one size become one of twice that size. So
/// each is fragmented anew a logarithmic number of times, and who reads looks at a logarithmic
/// number of runs, none of which ever changes (the logarithmic method of Bentley and Saxe).
///
/// Nothing is freed before the object is: readers need no lock and pin nothing.
///
/// Thread safety: all methods may be called from many threads at once. What was added is seen by
/// whatever happens after Add has returned.
class RangeTombstoneList {
 public:
  struct Runs {
    std::vector<const RangeTombstones*> tombstones;
    SequenceNumber newest = 0;  ///< Of all of them: what is not older is covered by none.

    /// The newest one up to `snapshot` that covers the key; 0: there is none.
    SequenceNumber Covering(const Slice& user_key, SequenceNumber snapshot) const {
      SequenceNumber covering = 0;
      for (const RangeTombstones* run : tombstones) {
        covering = std::max(covering, run->Covering(user_key, snapshot));
      }
      return covering;
    }
  };

  /// `comparator` is not owned and outlives this.
  explicit RangeTombstoneList(const Comparator* comparator) : comparator_(comparator) {}

  void Add(SequenceNumber sequence, const Slice& begin, const Slice& end) EXCLUDES(mutex_);

  /// Null as long as there are none; lives as long as this.
  const Runs* runs() const { return runs_.load(std::memory_order_acquire); }  // Pairs with Add.
  /// Of this process.
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  struct Run {
    std::unique_ptr<const RangeTombstones> tombstones;
    size_t count;  ///< Of what was added.
  };

  const Comparator* const comparator_;
  std::atomic<const Runs*> runs_{nullptr};
  std::atomic<size_t> memory_{0};
  Mutex mutex_;
  SequenceNumber newest_ GUARDED_BY(mutex_) = 0;
  std::vector<size_t> current_ GUARDED_BY(mutex_);  ///< Those of `runs_`, by number.
  std::vector<Run> all_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<const Runs>> published_ GUARDED_BY(mutex_);
};

}  // namespace nacre
