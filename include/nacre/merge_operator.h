#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

class Logger;

/// Makes one value of a value and the operands that `DB::Merge` wrote for its key since. Applied
/// when the key is read, and when compactions meet operands and what they apply to.
///
/// The interface is RocksDB's. Thread safety: all methods are const and called from many threads
/// at once.
class MergeOperator {
 public:
  virtual ~MergeOperator() = default;

  struct MergeOperationInput {
    const Slice& key;
    /// Null: there is none, or it was deleted.
    const Slice* existing_value;
    /// The operands, in the order in which they were written.
    const std::vector<Slice>& operand_list;
    Logger* logger;
  };
  struct MergeOperationOutput {
    /// The result, unless `existing_operand` is set.
    std::string& new_value;
    /// May be set to one of the operands, or to the existing value: that is the result, then.
    Slice& existing_operand;
  };

  /// Returns false if the bytes are not such a value: reads of the key then answer `Corruption`,
  /// and compactions keep everything as it is.
  virtual bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const = 0;

  /// Makes one operand of two, of which `left` was written first. False if that cannot be done.
  virtual bool PartialMerge(const Slice& key, const Slice& left, const Slice& right,
                            std::string* new_value, Logger* logger) const;
  /// The same of two or more; by PartialMerge of two at a time unless it is overridden.
  virtual bool PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                                 std::string* new_value, Logger* logger) const;

  virtual const char* Name() const = 0;
  /// Memory nodes look the operator up by this; one that they do not know keeps compactions of
  /// operands on the compute node. Operators with the same id give the same results.
  virtual std::string Id() const { return Name(); }

  /// The built-in one with this name or id: "uint64add", "stringappend" (which puts a comma in
  /// between), or "stringappend:SEPARATOR"; also by RocksDB's class names. `NotFound` for others.
  static Status CreateFromString(const std::string& name, std::shared_ptr<MergeOperator>* result);
};

/// The base for operations that are the same on values and operands, like addition: one function
/// does all.
class AssociativeMergeOperator : public MergeOperator {
 public:
  /// `existing_value` may be null. False as FullMergeV2.
  virtual bool Merge(const Slice& key, const Slice* existing_value, const Slice& value,
                     std::string* new_value, Logger* logger) const = 0;

 private:
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override;
  bool PartialMerge(const Slice& key, const Slice& left, const Slice& right, std::string* new_value,
                    Logger* logger) const override;
};

/// The built-in operators.
class MergeOperators {
 public:
  /// Adds numbers of 64 bits (fixed64), without overflow checks. What is no such number counts as
  /// 0.
  static std::shared_ptr<MergeOperator> CreateUInt64AddOperator();
  /// Puts operands behind the value, `separator` in between.
  static std::shared_ptr<MergeOperator> CreateStringAppendOperator();
  static std::shared_ptr<MergeOperator> CreateStringAppendOperator(char separator);
  static std::shared_ptr<MergeOperator> CreateStringAppendOperator(const std::string& separator);
};

}  // namespace nacre
