#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "db/version/table_handle.h"
#include "db/version/version.h"
#include "nacre/logger.h"
#include "table/index/index_memory.h"
#include "util/mutex.h"

namespace nacre {

/// Loaded tables that do not have the tier that they are to have.
struct TierChanges {
  TableList to_filters;
  TableList to_indexes;
};

/// Gives `share` bytes to filters, which all tables have, and then to point indexes in the place of
/// filters: upper levels first, as they are looked at for every key. What is not loaded yet is so
/// with the tier that takes less, and promoted later. Looks at the tables of those chunks only that
/// are new, or were not as they are to be: else it takes a step for each chunk.
TierChanges PlanPointTiers(const VersionList& versions, uint64_t share);

/// Decides which tables of a database have their point indexes here, under
/// Options::index_memory_budget.
///
/// Thread safety: all methods may be called from many threads at once.
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
  /// The tier of a table when it is loaded first: under a budget the one that takes less.
  PointTier::Kind first() const {
    return memory_ == nullptr ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
  }
  /// Must be called after tables came or went, or were loaded. Reads indexes; the LOG names what
  /// cannot be read, which is tried again the next time.
  void Rebalance() EXCLUDES(mutex_);

 private:
  void SetTiers(const TableList& tables, PointTier::Kind kind) REQUIRES(mutex_);

  const Needs needs_;
  const std::unique_ptr<IndexMemory> memory_;
  Mutex mutex_;  ///< One rebalancing at a time. Held over reads; before the database's.
};

}  // namespace nacre
