#pragma once

#include <cstdint>
#include <string>

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

/// Reads values of one row, best in order: it remembers how far it came.
/// Thread safety: none.
class RowReader {
 public:
  /// `row` must stay while values of it are read; it has `count` values.
  void Reset(const Slice& row, int count);
  /// False if the bytes are malformed or there are fewer values. Bytes are those of the row.
  bool Read(int slot, Value* value);

 private:
  bool FindBody();

  Slice row_;
  int count_ = 0;
  const char* first_body_ = nullptr;  ///< Null until it was looked for.
  int next_ = 0;                      ///< The slot that the two below stand at.
  const char* header_ = nullptr;
  const char* body_ = nullptr;
};

}  // namespace nacre::sqlite
