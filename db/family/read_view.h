#pragma once

#include <memory>
#include <vector>

#include "db/family/read_rules.h"
#include "db/memtable/memtable.h"
#include "db/version/version.h"
#include "nacre/options.h"

namespace nacre {

/// What a read of a column family looks through: MemTables, newest first (the front one takes
/// writes), then tables. Immutable. Installed before a MemTable's first write and before the
/// objects it replaces go, so a reader that pins the current view and then loads the published
/// sequence misses nothing up to the sequence that was published when it pinned.
struct ReadView : std::enable_shared_from_this<ReadView> {
  // The family's comparator. Iterators read views even when the family is gone.
  std::shared_ptr<const InternalKeyComparator> comparator;
  std::shared_ptr<const ColumnFamilyOptions> options;
  ReadRules rules;  ///< Taken from the options.
  std::vector<std::shared_ptr<MemTable>> memtables;
  std::shared_ptr<const Version> version;
};

}  // namespace nacre
