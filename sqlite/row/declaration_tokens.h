#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"

namespace nacre::sqlite {

/// A word, a number, a quoted name or string (without its quotes), or a character of another kind.
struct Token {
  std::string text{};
  bool quoted = false;
  bool is_operator = false;  ///< Neither a word, quoted, nor one of ( ) , =.
  size_t begin = 0;          ///< Its place in the text.
  size_t end = 0;

  /// Ignores the case of letters; a quoted word is no keyword.
  bool Is(std::string_view word) const;
};

/// Equal but for the case of ASCII letters, as SQLite compares names.
bool SameName(std::string_view a, std::string_view b);

/// `InvalidArgument` for a quote that does not end.
Status Tokenize(const std::string& text, std::vector<Token>* tokens);

}  // namespace nacre::sqlite
