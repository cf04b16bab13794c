#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "nacre/comparator.h"
#include "nacre/options.h"

namespace nacre {

/// The column family in which a database keeps its prepared transactions, if there ever were any
/// (transactions/prepared_store.h). It need not be named when the database is opened, and is not
/// listed.
inline constexpr std::string_view kPreparedFamilyName = "nacre.prepared_transactions";

/// Options of such a family: the default one's, but with the bytewise order, and without what is
/// meant for the application's records. `num_levels` is what it has, if it exists.
inline ColumnFamilyOptions HiddenFamilyOptions(const ColumnFamilyOptions& of_default,
                                               uint32_t num_levels = 0) {
  ColumnFamilyOptions options = of_default;
  options.comparator = BytewiseComparator();
  options.merge_operator = nullptr;
  options.compaction_filter = nullptr;
  options.compaction_filter_factory = nullptr;
  options.prefix_extractor = nullptr;
  options.num_levels = std::max(options.num_levels, static_cast<int>(num_levels));
  return options;
}

}  // namespace nacre
