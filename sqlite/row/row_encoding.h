#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "sqlite/row/value.h"

namespace nacre::sqlite {

/// The values of a row that its key does not give back, in the order of the columns. SQLite's
/// record format, but little-endian and with as many headers as the table's definition says:
///
///     header   varint for each value: 0 NULL; 1 to 8 an integer of so many bytes; 9 a real;
///              10 and 11 the integers 0 and 1; 12 + 2n a blob, 13 + 2n a text of n bytes
///     body     the bytes of each value, in the same order
class RowWriter {
 public:
  void Clear();
  void Add(const Value& value);
  /// Valid until the next call.
  Slice Finish();

 private:
  std::string row_;
  std::string body_;
};

/// Reads values of one row: where each lies is found once.
/// Thread safety: none.
class RowReader {
 public:
  /// `row` must stay while values of it are read; it has `count` values.
  void Reset(const Slice& row, int count) {
    row_ = row;
    count_ = static_cast<size_t>(count);
    found_ = false;
  }
  /// False if the bytes are malformed or there are fewer values. Bytes are those of the row.
  bool Read(int slot, Value* value);

 private:
  struct Field {
    uint64_t header;
    size_t offset;  ///< In the body; beyond the row's end if a value before it is.
  };

  bool FindFields();

  Slice row_;
  size_t count_ = 0;
  bool found_ = false;  ///< The two below are of this row.
  std::vector<Field> fields_;
  Slice body_;
};

}  // namespace nacre::sqlite
