#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"

namespace nacre::sqlite {

/// A word, a number, a quoted name or string (without its quotes), or one of ( ) , =.
struct Token {
  std::string text{};
  bool quoted = false;

  /// Without regard to the case of letters; a quoted word is no keyword.
  bool Is(std::string_view word) const;
};

/// Equal but for the case of ASCII letters, as SQLite compares names.
bool SameName(std::string_view a, std::string_view b);

/// `InvalidArgument` for a quote that does not end, and for characters that SQL does not use there.
Status Tokenize(const std::string& text, std::vector<Token>* tokens);

}  // namespace nacre::sqlite
