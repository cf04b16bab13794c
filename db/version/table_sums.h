#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "table/format/table_meta.h"

namespace nacre {

/// How much more than its filter a table's point index takes.
inline uint64_t IndexExtraBytes(const TableMeta& meta) {
  return meta.point_index.length - std::min(meta.point_index.length, meta.bloom.length);
}

/// What some tables hold and take, in bytes. See SpaceReport for the words.
struct TableSums {
  uint64_t user_bytes = 0;
  uint64_t records_bytes = 0;
  uint64_t table_bytes = 0;     ///< Each counted once.
  uint64_t fragment_bytes = 0;  ///< Bytes of tables, with their redundancy.
  uint64_t extent_bytes = 0;
  uint64_t garbage_bytes = 0;
  uint64_t filter_bytes = 0;
  uint64_t index_extra_bytes = 0;                 ///< IndexExtraBytes of all.
  uint64_t least_index_extra_bytes = UINT64_MAX;  ///< The least of any table.
  uint64_t largest_record = 0;
  /// Splits `extent_bytes` by node, each once, in no order.
  std::vector<std::pair<NodeId, uint64_t>> extent_bytes_by_node{};

  void Add(const TableMeta& meta);
};

}  // namespace nacre
