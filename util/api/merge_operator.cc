#include "nacre/merge_operator.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "util/coding.h"

namespace nacre {
namespace {

uint64_t NumberIn(const Slice& value) {
  return value.size() == sizeof(uint64_t) ? DecodeFixed64(value.data()) : 0;
}

class UInt64AddOperator final : public AssociativeMergeOperator {
 public:
  static constexpr const char* kName = "UInt64AddOperator";

  const char* Name() const override { return kName; }
  bool Merge(const Slice& /*key*/, const Slice* existing_value, const Slice& value,
             std::string* new_value, Logger* /*logger*/) const override {
    const uint64_t before = existing_value == nullptr ? 0 : NumberIn(*existing_value);
    new_value->clear();
    PutFixed64(new_value, before + NumberIn(value));
    return true;
  }
};

class StringAppendOperator final : public MergeOperator {
 public:
  static constexpr const char* kName = "StringAppendOperator";

  explicit StringAppendOperator(std::string separator) : separator_(std::move(separator)) {}

  const char* Name() const override { return kName; }
  std::string Id() const override { return std::string(kName) + ":" + separator_; }

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    std::string& value = out->new_value;
    value.clear();
    size_t bytes = in.existing_value == nullptr ? 0 : in.existing_value->size();
    for (const Slice& operand : in.operand_list) bytes += separator_.size() + operand.size();
    value.reserve(bytes);
    bool first = in.existing_value == nullptr;
    if (!first) value.append(in.existing_value->data(), in.existing_value->size());
    for (const Slice& operand : in.operand_list) Append(operand, &first, &value);
    return true;
  }
  bool PartialMergeMulti(const Slice& /*key*/, const std::deque<Slice>& operands,
                         std::string* new_value, Logger* /*logger*/) const override {
    new_value->clear();
    bool first = true;
    for (const Slice& operand : operands) Append(operand, &first, new_value);
    return true;
  }

 private:
  void Append(const Slice& operand, bool* first, std::string* value) const {
    if (!std::exchange(*first, false)) value->append(separator_);
    value->append(operand.data(), operand.size());
  }

  const std::string separator_;
};

}  // namespace

bool MergeOperator::PartialMerge(const Slice& /*key*/, const Slice& /*left*/,
                                 const Slice& /*right*/, std::string* /*new_value*/,
                                 Logger* /*logger*/) const {
  return false;
}

bool MergeOperator::PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                                      std::string* new_value, Logger* logger) const {
  if (operands.size() < 2) return false;
  std::string merged;
  Slice left = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string next;
    if (!PartialMerge(key, left, operands[i], &next, logger)) return false;
    merged.swap(next);
    left = merged;
  }
  new_value->swap(merged);
  return true;
}

bool AssociativeMergeOperator::FullMergeV2(const MergeOperationInput& in,
                                           MergeOperationOutput* out) const {
  std::string merged;
  Slice value;
  const Slice* existing = in.existing_value;
  for (const Slice& operand : in.operand_list) {
    std::string next;
    if (!Merge(in.key, existing, operand, &next, in.logger)) return false;
    merged.swap(next);
    value = merged;
    existing = &value;
  }
  out->new_value.swap(merged);
  return true;
}

bool AssociativeMergeOperator::PartialMerge(const Slice& key, const Slice& left, const Slice& right,
                                            std::string* new_value, Logger* logger) const {
  return Merge(key, &left, right, new_value, logger);
}

std::shared_ptr<MergeOperator> MergeOperators::CreateUInt64AddOperator() {
  return std::make_shared<UInt64AddOperator>();
}

std::shared_ptr<MergeOperator> MergeOperators::CreateStringAppendOperator() {
  return CreateStringAppendOperator(',');
}

std::shared_ptr<MergeOperator> MergeOperators::CreateStringAppendOperator(char separator) {
  return CreateStringAppendOperator(std::string(1, separator));
}

std::shared_ptr<MergeOperator> MergeOperators::CreateStringAppendOperator(
    const std::string& separator) {
  return std::make_shared<StringAppendOperator>(separator);
}

Status MergeOperator::CreateFromString(const std::string& name,
                                       std::shared_ptr<MergeOperator>* result) {
  const std::string_view wanted(name);
  if (wanted == "uint64add" || wanted == UInt64AddOperator::kName) {
    *result = MergeOperators::CreateUInt64AddOperator();
    return Status::OK();
  }
  const std::string_view kind = wanted.substr(0, wanted.find(':'));
  if (kind == "stringappend" || kind == StringAppendOperator::kName) {
    const bool has_separator = kind.size() < wanted.size();
    *result = has_separator ? MergeOperators::CreateStringAppendOperator(
                                  std::string(wanted.substr(kind.size() + 1)))
                            : MergeOperators::CreateStringAppendOperator();
    return Status::OK();
  }
  return Status::NotFound("there is no merge operator '" + name + "'");
}

}  // namespace nacre
