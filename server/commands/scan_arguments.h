#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/session/command.h"
#include "server/store/unit_of_work.h"

namespace nacre::server {

/// What SCAN, HSCAN, SSCAN and ZSCAN are told.
struct ScanArguments {
  std::string place;  ///< The row at which it goes on; empty: at the first one.
  size_t count = 10;
  std::string_view pattern = "*";
  std::string_view type;  ///< SCAN only; empty: all.

  bool Matches(std::string_view key) const;
};

/// Takes the cursor, which is argument `at`, and the options behind it. Answers an error and false
/// if these are malformed, or the cursor is not known any more.
bool ParseScanArguments(Call& call, size_t at, ScanArguments* scan);

/// Takes one end of a range, as ZRANGEBYLEX has them, of rows or sub-keys that consist of `kind`
/// and a name: the first one of the range, or, if `upper`, the first one behind it. False: it is
/// none.
bool ParseLexBound(std::string_view text, char kind, bool upper, std::string* row);

/// Begins the answer of a scan that has found `rows`, with the cursor by which it goes on; the
/// array of elements is to follow.
void AnswerCursor(Call& call, const std::vector<Row>& rows, const ScanArguments& scan);

}  // namespace nacre::server
