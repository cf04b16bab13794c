#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nacre/logger.h"
#include "nacre/merge_operator.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// The operands of one key, on the way to what they apply to. Collected in one direction: from the
/// newest to the oldest, or the other way.
/// Thread safety: none.
class MergeOperands {
 public:
  enum class Order : uint8_t { kNewestFirst, kOldestFirst };

  struct Operand {
    uint64_t tag;
    std::string value;
  };

  explicit MergeOperands(Order order) : order_(order) {}

  void Add(uint64_t tag, const Slice& value) { operands_.push_back({tag, value.ToString()}); }
  void Clear() { operands_.clear(); }
  bool empty() const { return operands_.empty(); }
  size_t size() const { return operands_.size(); }
  /// The operands in the order in which they were added.
  const std::vector<Operand>& operands() const { return operands_; }

  /// The value of `key`: they applied to `existing`, null for none. `InvalidArgument` without an
  /// operator, `Corruption` if it fails, `Aborted` if it throws.
  Status Apply(const MergeOperator* merge_operator, const Slice& key, const Slice* existing,
               Logger* logger, std::string* value) const;
  /// One operand that does what they do. False if the operator has none, or throws.
  bool Combine(const MergeOperator& merge_operator, const Slice& key, Logger* logger,
               std::string* value) const;

 private:
  /// Calls `visit` from the oldest to the newest.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    const size_t n = operands_.size();
    for (size_t i = 0; i < n; ++i) {
      visit(Slice(operands_[order_ == Order::kOldestFirst ? i : n - 1 - i].value));
    }
  }

  const Order order_;
  std::vector<Operand> operands_;
};

}  // namespace nacre
