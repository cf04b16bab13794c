#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "table/index/range_index.h"

namespace nacre {

/// A range index in this process's memory. Immutable. What it was parsed from and with, the
/// table's reader and its extent, outlives it.
struct LoadedRangeIndex {
  std::string section;  ///< Empty if the table's bytes are in place.
  RangeIndex index;     ///< Views the section.

  size_t MemoryUsage() const { return sizeof(*this) + section.capacity() + index.MemoryUsage(); }
};

/// Keeps the index from being freed, whatever its slot does with it
/// (table/index/range_index_slot.h).
using RangeIndexRef = std::shared_ptr<const LoadedRangeIndex>;

}  // namespace nacre
