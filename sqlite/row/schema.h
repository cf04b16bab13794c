#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sqlite/row/declaration.h"
#include "sqlite/row/key_encoding.h"
#include "sqlite/row/value.h"

namespace nacre::sqlite {

/// The number of a row, as SQLite names it in plans; the column of a table that only numbers rows.
inline constexpr int kRowNumber = -1;

struct KeyPart {
  int column;  ///< A column's number, or kRowNumber.
  Affinity affinity;
  Collation collation;
  bool exact;
  bool descending;

  /// Appends `value` as keys have it in this part.
  void Append(const Value& value, std::string* key) const {
    const size_t begin = key->size();
    AppendValue(value, collation, key);
    if (descending) Invert(begin, key);
  }
};

/// A clustered table or a secondary index, and the order of its keys. A secondary index goes on
/// with the encoded primary key: in its keys, or, if the index is unique and no part of it NULL, in
/// its values, so that two equal rows have the same key.
struct KeySpace {
  uint32_t space = 0;
  bool unique = false;
  std::vector<KeyPart> parts;
};

/// Maps the values of a table to its keys and the slots of its rows (sqlite/row/row_encoding.h).
class Schema {
 public:
  std::string name;
  Declaration declaration;
  KeySpace primary;
  std::vector<KeySpace> indexes;
  /// For each column its place in the primary key if that gives it back, else -1, and its slot in
  /// the row, else -1.
  std::vector<int> key_place;
  std::vector<int> slot;
  int slots = 0;

  /// `spaces`: of the clustered table and of each index.
  Schema(std::string table_name, Declaration table_declaration,
         const std::vector<uint32_t>& spaces);

  int column_count() const { return static_cast<int>(slot.size()); }
  /// The space of the rows, then those of the indexes.
  std::vector<uint32_t> Spaces() const;
  bool has_rowid() const { return has_rowid_; }
  /// The column that holds the row's number, or kRowNumber.
  int rowid_column() const { return primary.parts[0].column; }
  const KeySpace& key_space(int index) const {
    return index == 0 ? primary : indexes[static_cast<size_t>(index) - 1];
  }

 private:
  bool has_rowid_;
};

}  // namespace nacre::sqlite
