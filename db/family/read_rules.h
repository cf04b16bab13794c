#pragma once

#include "nacre/logger.h"
#include "nacre/merge_operator.h"
#include "nacre/options.h"
#include "nacre/slice_transform.h"

namespace nacre {

/// What of the options says what entries mean. Views the options.
struct ReadRules {
  ReadRules() = default;
  ReadRules(const ColumnFamilyOptions& options, Logger* log)
      : merge_operator(options.merge_operator.get()),
        prefix_extractor(options.prefix_extractor.get()),
        logger(log) {}

  const MergeOperator* merge_operator = nullptr;     ///< May be null.
  const SliceTransform* prefix_extractor = nullptr;  ///< May be null.
  Logger* logger = nullptr;                          ///< The operator logs to it; may be null.
};

}  // namespace nacre
