#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/version/table_handle.h"
#include "db/version/table_uses.h"
#include "db/version/version.h"
#include "nacre/logger.h"
#include "table/index/index_memory.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Loaded tables that do not have the tier that they are to have.
struct TierChanges {
  TableList to_filters;
  TableList to_indexes;
};

/// Gives `share` bytes to filters, which all tables have, and then to point indexes in the place of
/// filters: those first that spare most lookups a round trip for each byte, as far as `uses` proves
/// that; then by level, upper ones first, as they are looked at for every key. A table keeps its
/// index until another one is used more often by what cannot be chance, so that indexes do not come
/// and go among tables that are used alike.
///
/// What is not loaded yet is so with the tier that takes less, and promoted later. Looks at the
/// tables of those chunks only that are new, were not as they are to be, or have tables that are
/// chosen by their use: else it takes a step for each chunk, and one for each of `uses`.
TierChanges PlanPointTiers(const VersionList& versions, uint64_t share,
                           const std::vector<TableUse>& uses = {});

/// Decides which tables of a database have their point indexes here, under
/// Options::index_memory_budget.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop, which
/// one thread calls.
class PointTiers {
 public:
  struct Needs {
    std::string name;       ///< Name of the database, for the LOG.
    Logger* log = nullptr;  ///< May be null.
    size_t budget = SIZE_MAX;
    std::function<VersionList()> tables;  ///< Returns the present versions.
  };

  explicit PointTiers(Needs needs);

  /// Null: there is no budget.
  IndexMemory* memory() const { return memory_.get(); }
  TableUses* uses() { return memory_ == nullptr ? nullptr : &uses_; }
  /// The tier of a table when it is loaded first: under a budget the one that takes less.
  PointTier::Kind first() const {
    return memory_ == nullptr ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
  }
  /// Must be called after tables came or went, or were loaded. Reads indexes; the LOG names what
  /// cannot be read, which is tried again the next time.
  void Rebalance() EXCLUDES(mutex_);
  /// From here on does so as well when tables are used otherwise than before.
  void Start(TaskThreads* threads);
  /// Ends that. Idempotent; without Start it does nothing.
  void Stop() { task_.Stop(); }

 private:
  /// Flushes and compactions wait for so many tables at most when indexes follow the use.
  static constexpr size_t kChangesAtATime = 8;

  void FollowUse() EXCLUDES(mutex_);
  /// Makes at most so many changes of each kind. Returns how many were made.
  size_t Change(const std::vector<TableUse>& uses, size_t most) REQUIRES(mutex_);
  size_t SetTiers(const TableList& tables, PointTier::Kind kind, size_t most) REQUIRES(mutex_);

  const Needs needs_;
  const std::unique_ptr<IndexMemory> memory_;
  TableUses uses_;
  Mutex mutex_;  ///< One rebalancing at a time. Held over reads; before the database's.
  PeriodicTask task_;
};

}  // namespace nacre
