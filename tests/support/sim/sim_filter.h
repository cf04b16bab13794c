#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/compaction_filter.h"

namespace nacre::sim {

/// Removes some of the keys that the model has for it, and cuts some of its values, by their
/// numbers alone: so the model knows what may have become of each (sim_model.h). Nodes do not know
/// it, so compactions run at the owner.
class SimFilter final : public CompactionFilter {
 public:
  /// With this, keys begin that may be removed; with the digit 1, those whose values may be cut.
  static constexpr char kPassing = 'x';
  /// How many digits values begin with.
  static constexpr size_t kNumberBytes = 12;

  static bool Removes(const Slice& number) {
    return !number.empty() && (number[number.size() - 1] - '0') % 2 == 0;
  }
  static bool Cuts(const Slice& key, const Slice& value) {
    return key.size() > 1 && key[0] == '1' && value.size() > kNumberBytes &&
           Removes(Slice(value.data(), kNumberBytes));
  }

  Decision FilterV2(int /*level*/, const Slice& key, ValueType /*value_type*/,
                    const Slice& existing_value, std::string* new_value,
                    std::string* /*skip_until*/) const override {
    if (key[0] == kPassing && Removes(existing_value)) return Decision::kRemove;
    if (!Cuts(key, existing_value)) return Decision::kKeep;
    new_value->assign(existing_value.data(), kNumberBytes);
    return Decision::kChangeValue;
  }
  const char* Name() const override { return "nacre.sim-filter"; }
};

}  // namespace nacre::sim
