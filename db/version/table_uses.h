#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "table/format/table_meta.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre {

/// How often lookups have found their key in a table of late.
struct TableUse {
  std::shared_ptr<const TableMeta> table;
  double lookups = 0;  ///< In samples; what is older counts less.
};

/// Counts the lookups that a point index spares a round trip: those that a table's filter or index
/// lets pass. One lookup in `kLookupsInSample` of each thread is counted, so that they share no
/// cache line for the others.
///
/// What is kept is bounded by the lookups between two calls of `Collect`, and the tables that have
/// been used lately.
///
/// Thread safety: all methods may be called from many threads at once.
class TableUses {
 public:
  static constexpr uint32_t kLookupsInSample = 32;
  /// So many samples say enough to decide by. What came before them counts half then.
  static constexpr uint64_t kSamplesInPeriod = 2048;

  TableUses() = default;
  TableUses(const TableUses&) = delete;
  TableUses& operator=(const TableUses&) = delete;

  /// A lookup goes on in `table`.
  void Note(const std::shared_ptr<const TableMeta>& table) EXCLUDES(mutex_) {
    thread_local uint32_t lookups_left = kLookupsInSample;
    if (--lookups_left != 0) [[likely]]
      return;
    lookups_left = Add(table);
  }
  /// Whether a period has ended since the last call of `Collect`.
  bool period_ended() const { return samples_.load(std::memory_order_relaxed) >= kSamplesInPeriod; }
  /// The tables that were used lately, in any order. Ends a period if it is time for that.
  std::vector<TableUse> Collect() EXCLUDES(mutex_);

 private:
  static constexpr double kForgottenBelow = 0.5;  ///< A single sample is, two periods later.

  /// Returns how many lookups later the next sample is due, by chance, so that a pattern in the
  /// lookups is not met at the same place each time.
  uint32_t Add(const std::shared_ptr<const TableMeta>& table) EXCLUDES(mutex_);

  /// Relaxed: it says only when to look, and the mutex orders the rest.
  std::atomic<uint64_t> samples_{0};
  Mutex mutex_;
  Random random_ GUARDED_BY(mutex_){1};
  std::unordered_map<uint64_t, TableUse> uses_ GUARDED_BY(mutex_);  ///< By the table's id.
};

}  // namespace nacre
