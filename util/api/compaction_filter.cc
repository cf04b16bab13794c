#include "nacre/compaction_filter.h"

namespace nacre {

CompactionFilter::Decision CompactionFilter::FilterV2(int level, const Slice& key,
                                                      ValueType /*value_type*/,
                                                      const Slice& existing_value,
                                                      std::string* new_value,
                                                      std::string* /*skip_until*/) const {
  bool changed = false;
  if (Filter(level, key, existing_value, new_value, &changed)) return Decision::kRemove;
  return changed ? Decision::kChangeValue : Decision::kKeep;
}

bool CompactionFilter::Filter(int /*level*/, const Slice& /*key*/, const Slice& /*existing_value*/,
                              std::string* /*new_value*/, bool* /*value_changed*/) const {
  return false;
}

}  // namespace nacre
