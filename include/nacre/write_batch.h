#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

class ColumnFamilyHandle;

/// Updates that take effect together, in the order in which they were added. A null family is the
/// default one, as is none.
/// Thread safety: as `std::string`.
///
/// Representation (RocksDB's, docs/formats.md): fixed64 sequence (0 until written), fixed32 count,
/// then the updates, each of which begins with a type byte.
class WriteBatch {
 public:
  /// Called once for each update by `Iterate`, in order. The ones with a family answer for the
  /// default one by calling those without, and refuse others (`InvalidArgument`), unless they are
  /// overridden. What they answer, unless it is OK, ends `Iterate`.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual Status PutCF(uint32_t family, const Slice& key, const Slice& value);
    virtual Status DeleteCF(uint32_t family, const Slice& key);
    virtual Status SingleDeleteCF(uint32_t family, const Slice& key);
    /// Those that do not override it cannot take it: `InvalidArgument`.
    virtual Status DeleteRangeCF(uint32_t family, const Slice& begin, const Slice& end);
    virtual Status MergeCF(uint32_t family, const Slice& key, const Slice& operand);
    virtual void Put(const Slice& /*key*/, const Slice& /*value*/) {}
    virtual void Delete(const Slice& /*key*/) {}
    virtual void SingleDelete(const Slice& /*key*/) {}
    virtual void Merge(const Slice& /*key*/, const Slice& /*operand*/) {}
    virtual void LogData(const Slice& /*blob*/) {}
    /// Asked before each update: false ends `Iterate`, which answers OK then.
    virtual bool Continue() { return true; }
  };

  WriteBatch();
  /// Takes `Data()` of another batch. `Iterate` and `DB::Write` find malformed bytes.
  explicit WriteBatch(std::string representation);

  /// All of these: `InvalidArgument` if key or value is 4 GiB or longer; the batch stays as it was.
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value);
  Status Put(const Slice& key, const Slice& value) { return Put(nullptr, key, value); }
  Status Delete(ColumnFamilyHandle* family, const Slice& key);
  Status Delete(const Slice& key) { return Delete(nullptr, key); }
  /// See `DB::SingleDelete`.
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key);
  Status SingleDelete(const Slice& key) { return SingleDelete(nullptr, key); }
  /// All keys in [begin, end).
  Status DeleteRange(ColumnFamilyHandle* family, const Slice& begin, const Slice& end);
  Status DeleteRange(const Slice& begin, const Slice& end) {
    return DeleteRange(nullptr, begin, end);
  }
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand);
  Status Merge(const Slice& key, const Slice& operand) { return Merge(nullptr, key, operand); }
  /// Goes to the log with the updates and nowhere else; no update, so `Count` is as before.
  Status PutLogData(const Slice& blob);
  /// The updates of `other` behind those that are here. `Corruption`, and nothing is changed, if
  /// `other` is shorter than a header; `InvalidArgument` if there are too many updates.
  Status Append(const WriteBatch& other);
  /// Forgets the save points, too.
  void Clear();

  /// Remembers what there is. Save points are a stack.
  void SetSavePoint();
  /// Forgets the latest save point and all that was added since. `NotFound` if there is none.
  Status RollbackToSavePoint();
  /// Forgets the latest save point only. `NotFound` if there is none.
  Status PopSavePoint();

  uint32_t Count() const;
  bool HasPut() const;
  bool HasDelete() const;
  bool HasSingleDelete() const;
  bool HasDeleteRange() const;
  bool HasMerge() const;
  size_t GetDataSize() const { return rep_.size(); }
  const std::string& Data() const { return rep_; }

  /// `Corruption` if the representation is malformed, else what ended it.
  Status Iterate(Handler* handler) const;

 private:
  struct SavePoint {
    size_t bytes;
    uint32_t count;
  };

  std::string rep_;
  std::vector<SavePoint> save_points_;
};

}  // namespace nacre
