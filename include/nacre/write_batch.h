#pragma once

#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// Updates that take effect together, in the order in which they were added.
/// Thread safety: as `std::string`.
///
/// Representation (RocksDB's): fixed64 sequence (0 until written), fixed32 count, then for each
/// update a type byte, varint32 key length, key and, for a Put, varint32 value length and value.
class WriteBatch {
 public:
  /// Called once for each update by `Iterate`, in order.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(const Slice& key, const Slice& value) = 0;
    virtual void Delete(const Slice& key) = 0;
  };

  WriteBatch();
  /// From `Data()` of another batch. Malformed bytes are found by `Iterate` and `DB::Write`.
  explicit WriteBatch(std::string representation);

  /// `InvalidArgument` if key or value is 4 GiB or longer; the batch stays as it was.
  Status Put(const Slice& key, const Slice& value);
  Status Delete(const Slice& key);
  void Clear();

  uint32_t Count() const;
  bool HasPut() const;
  size_t GetDataSize() const { return rep_.size(); }
  const std::string& Data() const { return rep_; }

  /// `Corruption` if the representation is malformed.
  Status Iterate(Handler* handler) const;

 private:
  std::string rep_;
};

}  // namespace nacre
