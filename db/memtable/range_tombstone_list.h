#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/format/internal_key.h"
#include "table/index/key_search.h"
#include "table/ranges/range_tombstones.h"
#include "util/mutex.h"

namespace nacre {

/// The range tombstones of a MemTable. They lie in runs, each of at least four times the size of
/// the one behind it: one that is added takes in all runs at the end that are less than four times
/// what it has so far. So each is fragmented anew a logarithmic number of times, and a reader looks
/// at a logarithmic number of runs, none of which ever changes (the logarithmic method of Bentley
/// and Saxe). A thousand make three runs on average, and each was written ten times; with sizes
/// that differ by twice there would be five, written five times.
///
/// Nothing is freed before the object is: readers need no lock and pin nothing.
///
/// Thread safety: all methods may be called from many threads at once. A tombstone is visible to
/// all that happens after its Add returned.
class RangeTombstoneList {
 public:
  /// What readers see, in one piece of memory as far as most of them get.
  class Runs {
   public:
    /// Some, in the order in which they are to be asked.
    Runs(const Comparator* comparator, const std::vector<const RangeTombstones*>& runs);

    /// The newest one up to `snapshot` that covers the key, if it is newer than `sequence`; 0:
    /// there is none.
    SequenceNumber Covering(const Slice& user_key, SequenceNumber snapshot,
                            SequenceNumber sequence = 0) const;
    std::vector<const RangeTombstones*> All() const;
    size_t MemoryUsage() const { return sizeof(*this) + runs_.capacity() * sizeof(Bounded); }

   private:
    struct Bounded {
      // Numbers of their first begin and of their last end; 0 and the greatest: unknown.
      uint64_t first;
      uint64_t last;
      SequenceNumber newest;
      const RangeTombstones* tombstones;
      bool numbers_alike;  ///< They agree on a key's number.
    };

    CommonPrefix common_;  ///< Common to all keys, so that the key is made a number once.
    bool numbered_;        ///< The order is that of bytes.
    std::vector<Bounded> runs_;
  };

  /// `comparator` is not owned and outlives this.
  explicit RangeTombstoneList(const Comparator* comparator) : comparator_(comparator) {}

  void Add(SequenceNumber sequence, const Slice& begin, const Slice& end) EXCLUDES(mutex_);

  /// Null as long as there are none; lives as long as this.
  const Runs* runs() const { return runs_.load(std::memory_order_acquire); }  // Pairs with Add.
  /// Bytes of this process.
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  struct Run {
    std::unique_ptr<const RangeTombstones> tombstones;
    size_t count;  ///< The count of what was added.
  };

  static constexpr size_t kRatio = 4;  ///< The least ratio of the sizes of runs.

  const Comparator* const comparator_;
  std::atomic<const Runs*> runs_{nullptr};
  std::atomic<size_t> memory_{0};
  Mutex mutex_;
  std::vector<size_t> current_ GUARDED_BY(mutex_);  ///< Those of `runs_`, by number.
  std::vector<Run> all_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<const Runs>> published_ GUARDED_BY(mutex_);
};

}  // namespace nacre
