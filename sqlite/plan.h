#pragma once

#include <string>

#include "sqlite/schema.h"
#include "sqlite/sqlite_api.h"
#include "sqlite/statistics.h"

namespace nacre::sqlite {

/// How a statement reads a table: an index (0: the clustered rows), values of its first parts,
/// bounds of the next one, a direction. SQLite hands it from xBestIndex to xFilter as a number and
/// a short text:
///
///     one letter for each equal part: 'e' for =, 'i' for IS, in capitals if the value is a
///     constant
///     '|'  then '>' or 'g' (>=) or '-', '<' or 'l' (<=) or '-', 'b' or 'f' for the direction,
///     'c' if the index has all columns that are read, else '-'; capitals 'K' at the end if the
///     bounds are constants, else '-'
struct Plan {
  std::string equal{};
  char lower = '-';
  char upper = '-';
  bool backwards = false;
  bool covering = false;
  bool constant_bounds = false;

  std::string Encode() const;
  static Plan Decode(const char* text);
};

/// xBestIndex: picks the index, says what its scan costs and which constraints it sees to.
int ChoosePlan(const Schema& schema, const TableStatistics& statistics, sqlite3_index_info* info);

}  // namespace nacre::sqlite
