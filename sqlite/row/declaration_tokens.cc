#include "sqlite/row/declaration_tokens.h"

#include <cctype>

namespace nacre::sqlite {
namespace {

bool IsWordCharacter(char c) {
  const unsigned char byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || c == '$' || c == '.' || c == '+' || c == '-' ||
         byte >= 0x80;
}

/// Takes what is between the opening quote at `*at` and the closing one; a doubled quote stands for
/// itself.
Status TakeQuoted(const std::string& text, size_t* at, std::string* content) {
  const char end = text[*at] == '[' ? ']' : text[*at];
  for (++*at; *at < text.size(); ++*at) {
    if (text[*at] == end) {
      const bool doubled = end != ']' && *at + 1 < text.size() && text[*at + 1] == end;
      ++*at;
      if (!doubled) return Status::OK();
    }
    content->push_back(text[*at]);
  }
  return Status::InvalidArgument("a quote does not end in '" + text + "'");
}

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

bool Token::Is(std::string_view word) const { return !quoted && SameName(text, word); }

Status Tokenize(const std::string& text, std::vector<Token>* tokens) {
  tokens->clear();
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    Token token;
    token.begin = at;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
      continue;
    }
    if (c == '"' || c == '\'' || c == '`' || c == '[') {
      token.quoted = true;
      NACRE_RETURN_IF_ERROR(TakeQuoted(text, &at, &token.text));
    } else if (c == '(' || c == ')' || c == ',' || c == '=') {
      token.text = c;
      ++at;
    } else if (IsWordCharacter(c)) {
      while (at < text.size() && IsWordCharacter(text[at])) token.text.push_back(text[at++]);
    } else {
      token.text = c;
      token.is_operator = true;
      ++at;
    }
    token.end = at;
    tokens->push_back(std::move(token));
  }
  return Status::OK();
}

}  // namespace nacre::sqlite
