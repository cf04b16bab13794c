#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "util/codes/reed_solomon.h"
#include "util/mutex.h"

namespace nacre::pool {

/// What is known to be damaged in the fragments of one table. It grows only: a fragment that was
/// made anew comes with another placement, for which nothing is known.
///
/// Thread safety: all methods may be called from many threads at once.
class DamagedChunks {
 public:
  /// Fragments of which anything is damaged. Zero is all that reads of a whole table ever see.
  FragmentSet fragments() const {
    return fragments_.load(std::memory_order_acquire);  // Pairs with Add.
  }
  /// Those whose chunk in this row is damaged. Replicated, a row is one chunk of the table.
  FragmentSet InRow(uint64_t row) const EXCLUDES(mutex_);

  /// It is not known which of their chunks, or it is none of them.
  void Add(FragmentSet fragments);
  void Add(FragmentSet fragments, uint64_t row) EXCLUDES(mutex_);

 private:
  std::atomic<FragmentSet> fragments_{0};
  mutable Mutex mutex_;
  std::map<uint64_t, FragmentSet> rows_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
