#include "table/merge/merge_operands.h"

#include <deque>

#include "util/exceptions.h"

namespace nacre {

Status MergeOperands::Apply(const MergeOperator* merge_operator, const Slice& key,
                            const Slice* existing, Logger* logger, std::string* value) const {
  if (merge_operator == nullptr) {
    return Status::InvalidArgument("Options::merge_operator is null, and a key has been merged");
  }
  std::vector<Slice> in_order;
  in_order.reserve(operands_.size());
  ForEach([&](const Slice& operand) { in_order.push_back(operand); });
  std::string merged;
  Slice one_of_them(nullptr, 0);
  MergeOperator::MergeOperationOutput out{.new_value = merged, .existing_operand = one_of_them};
  bool done = false;
  NACRE_RETURN_IF_ERROR(CatchAll([&] {
    done = merge_operator->FullMergeV2(
        {.key = key, .existing_value = existing, .operand_list = in_order, .logger = logger}, &out);
    return Status::OK();
  }));
  if (!done) {
    return Status::Corruption(std::string("merge operator ") + merge_operator->Name() +
                              " failed for key " + key.ToString(/*hex=*/true));
  }
  if (one_of_them.data() != nullptr) merged.assign(one_of_them.data(), one_of_them.size());
  value->swap(merged);
  return Status::OK();
}

bool MergeOperands::Combine(const MergeOperator& merge_operator, const Slice& key, Logger* logger,
                            std::string* value) const {
  std::deque<Slice> in_order;
  ForEach([&](const Slice& operand) { in_order.push_back(operand); });
  bool done = false;
  const Status status = CatchAll([&] {
    done = merge_operator.PartialMergeMulti(key, in_order, value, logger);
    return Status::OK();
  });
  return done && status.ok();
}

}  // namespace nacre
