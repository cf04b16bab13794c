#pragma once

#include <string>

#include "sqlite/query/statistics.h"
#include "sqlite/row/schema.h"
#include "sqlite/session.h"
#include "sqlite/sqlite_api.h"

namespace nacre::sqlite {

/// How a statement reads a table: an index (0: the clustered rows), values of its first parts,
/// bounds of the next one, a direction. SQLite hands it from xBestIndex to xFilter as a number and
/// a short text, with the values of the constraints in the same order:
///
///     one letter for each equal part: 'e' for =, 'i' for IS, in capitals if the value is a text or
///     a blob whatever it is compared with, 'n' for a list of values
///     '|'  then a letter for each Place below
struct Plan {
  enum Place : size_t {
    kLower,      ///< '>', 'g' for >=, '!' for IS NOT NULL
    kUpper,      ///< '<', 'l' for <=
    kPattern,    ///< 'L' for LIKE, 'G' for GLOB, in place of bounds
    kDirection,  ///< 'b' backwards, 'f' forwards
    kCovering,   ///< 'c': the index has all columns that are read
    kConstant,   ///< 'K': both bounds are texts or blobs, whatever they are compared with
    kLimit,      ///< 'L': about how many rows are wanted
    kOffset,     ///< 'O': so many rows SQLite will pass over unread; 'o': it will read them
    kPlaces,
  };

  std::string equal{};
  std::string scan = "---f----";

  std::string Encode() const { return equal + '|' + scan; }
};

/// xBestIndex: picks the index, says what its scan costs and which constraints it sees to.
int ChoosePlan(Session* session, const Schema& schema, const TableStatistics& statistics,
               sqlite3_index_info* info);

}  // namespace nacre::sqlite
