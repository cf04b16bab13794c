#pragma once

#include <deque>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "sqlite/row/row_encoding.h"
#include "sqlite/row/schema.h"

namespace nacre::sqlite {

/// A row of a clustered table, as it is stored. It does not own its bytes. Thread safety: none.
class StoredRow {
 public:
  /// `primary_key` without the space. Both must stay while values are read.
  void Reset(const Schema* schema, const Slice& primary_key, const Slice& row);
  const Slice& primary_key() const { return primary_key_; }
  /// False if it cannot be decoded. Bytes are those of the row, or of this object.
  bool TryRead(int column, Value* value);
  /// The same: what `Malformed` says in place of false.
  Status Read(int column, Value* value);
  Status Malformed() const;
  Status ReadAll(std::vector<Value>* values);

 private:
  bool ReadKey(int place, Value* value);

  const Schema* schema_ = nullptr;
  Slice primary_key_;
  Slice key_rest_;  ///< The primary key from the part `key_next_` on.
  int key_next_ = 0;
  RowReader row_;
  std::deque<std::string> unescaped_;
};

/// Reads the value at `place` of `key` (without the space) as `parts` have it.
Status ReadKeyPart(const std::vector<KeyPart>& parts, int place, Slice key, std::string* scratch,
                   Value* value);

/// The encoded primary key of a row with `values`, without the space; `rowid` if rows have numbers.
void AppendPrimaryKey(const Schema& schema, const std::vector<Value>& values, int64_t rowid,
                      std::string* key);
Slice EncodeRow(const Schema& schema, const std::vector<Value>& values, RowWriter* writer);

/// An entry of a secondary index.
struct IndexEntry {
  std::string key;
  std::string value;
  bool must_be_unique = false;  ///< No other row may have the same key.
};
/// Reuses the memory of `entry`.
void MakeIndexEntry(const KeySpace& index, const std::vector<Value>& values, int64_t rowid,
                    const Slice& primary_key, IndexEntry* entry);
/// The encoded primary key that an entry names: in its key behind `parts`, or in its value. Its
/// `key` without the space.
Status PrimaryKeyOf(const KeySpace& index, const Slice& key, const Slice& value,
                    Slice* primary_key);

}  // namespace nacre::sqlite
