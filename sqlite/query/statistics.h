#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

struct KeyDistribution;

/// How many rows a table has, as far as its plans need to know: right but for what a crash lost,
/// which is less than an eighth.
/// Thread safety: all from many threads at once; the numbers stand for themselves (relaxed).
struct TableStatistics {
  explicit TableStatistics(uint32_t table_space, int64_t known_rows)
      : space(table_space), rows(known_rows), written_rows(known_rows) {}

  const uint32_t space;               ///< The space of the clustered rows.
  std::atomic<int64_t> rows;          ///< Committed.
  std::atomic<int64_t> written_rows;  ///< The part of `rows` that the catalogue has.

  /// Null if it was never counted.
  std::shared_ptr<const KeyDistribution> distribution() const {
    MutexLock lock(&mutex_);
    return distribution_;
  }
  void SetDistribution(std::shared_ptr<const KeyDistribution> counted) {
    MutexLock lock(&mutex_);
    distribution_ = std::move(counted);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const KeyDistribution> distribution_ GUARDED_BY(mutex_);
};

}  // namespace nacre::sqlite
