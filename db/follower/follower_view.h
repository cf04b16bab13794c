#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/family/read_view.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What a follower shows at one moment: tables of one version of the manifest, and the log beyond
/// them, of the column families that it has opened. Immutable, but for entries beyond `sequence`,
/// which its newest MemTable may be given.
///
/// The tables' memory is the owner's, which reuses it once a later version lacks them: readers
/// compare checksums, which tell one table's bytes from another's.
struct FollowerView : std::enable_shared_from_this<FollowerView> {
  /// Keyed by id, the default one first.
  std::vector<std::pair<uint32_t, std::shared_ptr<const ReadView>>> families;
  /// Those of them that the owner has dropped: they are as they were shown last, as long as the
  /// memory of their tables is not used again.
  std::set<uint32_t> dropped;
  /// All up to here is there, and nothing else is to be looked at.
  SequenceNumber sequence = 0;
  /// No table has a later one. Versions of a key may be gone of which an earlier snapshot would
  /// need the older one, so only from here on a snapshot can be read in this view.
  SequenceNumber tables_through = 0;
  uint64_t manifest_version = 0;
  /// Grows with each change of the tables, and each manifest that replaces another.
  uint64_t generation = 0;

  /// The view of a family that is open.
  const std::shared_ptr<const ReadView>& Of(uint32_t family) const {
    if (family == 0) [[likely]]
      return families.front().second;
    const auto it = std::find_if(families.begin(), families.end(),
                                 [family](const auto& each) { return each.first == family; });
    return it->second;
  }
  bool HasMemTables() const {
    return std::any_of(families.begin(), families.end(),
                       [](const auto& each) { return !each.second->memtables.empty(); });
  }
};

}  // namespace nacre
