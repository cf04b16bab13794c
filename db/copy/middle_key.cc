#include "db/copy/middle_key.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/family/hidden_family.h"
#include "db/version/pinned_tables.h"

namespace nacre {

Status FindMiddleKey(DBImpl* db, std::string* key) {
  PinnedTables pinned;
  NACRE_RETURN_IF_ERROR(db->PinTables(&pinned));
  uint64_t bytes = 0;
  for (const VersionEdit::Added& added : pinned.tables) bytes += added.table->size();
  /// Parts of the whole, between whose ends the middle is looked for.
  constexpr uint64_t kParts = 256;
  std::vector<std::pair<std::string, uint64_t>> keys;  // Keys, and the bytes from there on.
  const auto families = db->parts()->state.Families();
  for (const VersionEdit::Added& added : pinned.tables) {
    const TableMeta& meta = added.table->meta();
    const auto family = families->by_id.find(meta.family);
    if (family == families->by_id.end() || family->second->name() == kPreparedFamilyName) continue;
    std::vector<std::string> within;
    NACRE_RETURN_IF_ERROR(added.table->reader().CutKeys(bytes / kParts + 1, &within));
    const uint64_t each = added.table->size() / (within.size() + 1);
    keys.emplace_back(meta.smallest_user_key().ToString(), each);
    for (std::string& cut : within) keys.emplace_back(std::move(cut), each);
    // There may be a split at the last key of all. A range that is deleted may end behind it.
    if (!meta.has_range_deletions()) keys.emplace_back(meta.largest_user_key().ToString(), 0);
  }
  const Comparator* const comparator = db->comparator();
  std::ranges::stable_sort(keys, [&](const auto& a, const auto& b) {
    return comparator->Compare(a.first, b.first) < 0;
  });
  uint64_t total = 0;
  for (const auto& [each, weight] : keys) total += weight;
  uint64_t before = 0;
  for (const auto& [each, weight] : keys) {
    const bool has_some_before = comparator->Compare(keys.front().first, each) < 0;
    if (has_some_before && 2 * before >= total) {
      *key = each;
      return Status::OK();
    }
    before += weight;
  }
  if (keys.empty() || comparator->Compare(keys.front().first, keys.back().first) == 0) {
    return Status::NotFound("the shard holds no two keys to be split between");
  }
  *key = keys.back().first;
  return Status::OK();
}

}  // namespace nacre
