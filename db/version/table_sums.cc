#include "db/version/table_sums.h"

#include <algorithm>

#include "table/format/placement.h"

namespace nacre {
namespace {

/// See SpaceReport::garbage_bytes.
uint64_t KnownGarbage(const TableMeta& meta) {
  const uint64_t key_bytes = meta.smallest_user_key().size();
  const uint64_t tombstone_bytes = std::min(meta.user_bytes, meta.tombstones * key_bytes);
  const uint64_t values = meta.entries - std::min(meta.entries, meta.tombstones);
  const uint64_t older = meta.entries - std::min(meta.entries, meta.user_keys);
  const uint64_t value_bytes = values == 0 ? 0 : (meta.user_bytes - tombstone_bytes) / values;
  // An older version may be a tombstone itself.
  return std::min(meta.user_bytes, std::min(older, values) * value_bytes + tombstone_bytes);
}

}  // namespace

void TableSums::Add(const TableMeta& meta) {
  user_bytes += meta.user_bytes;
  records_bytes += meta.records.length;
  table_bytes += meta.size;
  garbage_bytes += KnownGarbage(meta);
  filter_bytes += meta.bloom.length;
  index_extra_bytes += IndexExtraBytes(meta);
  least_index_extra_bytes = std::min(least_index_extra_bytes, IndexExtraBytes(meta));
  largest_record = std::max(largest_record, meta.largest_record);
  for (size_t i = 0; i < meta.placement.fragments.size(); ++i) {
    const ExtentAddr& fragment = meta.placement.fragments[i];
    extent_bytes += fragment.length;
    fragment_bytes += FragmentBytes(meta.placement, static_cast<int>(i), meta.size);
    const auto node = static_cast<NodeId>(fragment.start.node);
    const auto found = std::find_if(extent_bytes_by_node.begin(), extent_bytes_by_node.end(),
                                    [node](const auto& entry) { return entry.first == node; });
    if (found != extent_bytes_by_node.end()) {
      found->second += fragment.length;
    } else {
      extent_bytes_by_node.emplace_back(node, fragment.length);
    }
  }
}

}  // namespace nacre
