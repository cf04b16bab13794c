#pragma once

#include "db/write/update_limits.h"
#include "nacre/comparator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Whether a family with these options takes the update: `InvalidArgument` for one that is too
/// long, or for a range that ends before it begins; `NotSupported` for a merge without an operator.
inline Status CheckUpdateOf(const ColumnFamilyOptions& options, ValueType type, const Slice& key,
                            const Slice& value) {
  if (type == ValueType::kRangeDeletion) [[unlikely]] {
    NACRE_RETURN_IF_ERROR(CheckUpdate(value, Slice()));
    if (options.comparator->Compare(key, value) > 0) {
      return Status::InvalidArgument("DeleteRange: the end is before the beginning");
    }
  }
  if (type == ValueType::kMerge && options.merge_operator == nullptr) {
    return Status::NotSupported("Merge without Options::merge_operator");
  }
  return CheckUpdate(key, value);
}

}  // namespace nacre
