#include "server/resp/numbers.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace nacre::server {
namespace {

constexpr int kGlobStepsMax = 4'000'000;

/// `text` as C's functions want it; false if it cannot be a number.
template <typename Number>
bool ParseFloating(std::string_view text, Number (*parse)(const char*, char**), Number* value) {
  std::array<char, 1024> buffer;
  if (text.empty() || text.size() >= buffer.size() ||
      std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    return false;
  }
  std::copy(text.begin(), text.end(), buffer.begin());
  buffer[text.size()] = '\0';
  char* end = nullptr;
  errno = 0;
  *value = parse(buffer.data(), &end);
  if (end != buffer.data() + text.size() || std::isnan(*value)) return false;
  return errno != ERANGE || (*value != HUGE_VAL && *value != -HUGE_VAL && *value != 0);
}

/// Whether `c` is in the set that begins behind '[', at `*at`, which then is behind its end.
bool InSet(std::string_view pattern, size_t* at, char c) {
  const bool negated = *at < pattern.size() && pattern[*at] == '^';
  if (negated) ++*at;
  bool found = false;
  while (*at < pattern.size() && pattern[*at] != ']') {
    if (pattern[*at] == '\\' && *at + 1 < pattern.size()) {
      found |= pattern[*at + 1] == c;
      *at += 2;
    } else if (*at + 2 < pattern.size() && pattern[*at + 1] == '-') {
      const auto [low, high] = std::minmax(pattern[*at], pattern[*at + 2]);
      found |= c >= low && c <= high;
      *at += 3;
    } else {
      found |= pattern[*at] == c;
      *at += 1;
    }
  }
  if (*at < pattern.size()) ++*at;
  return found != negated;
}

}  // namespace

bool ParseInteger(std::string_view text, int64_t* value) {
  if (text.empty() || text.size() > 20) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  const std::string_view digits = text[0] == '-' ? text.substr(1) : text;
  return digits[0] != '0' || text == "0";
}

bool ParseDouble(std::string_view text, double* value) {
  return ParseFloating<double>(text, &std::strtod, value);
}

bool ParseLongDouble(std::string_view text, long double* value) {
  return ParseFloating<long double>(text, &std::strtold, value);
}

std::string FormatDouble(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), "%.17g", value);
  return {buffer.data(), static_cast<size_t>(size)};
}

std::string FormatLongDouble(long double value) {
  std::string text(5 * 1024, '\0');
  const int size = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  text.resize(static_cast<size_t>(size));
  if (text.find('.') != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  // Behind the last star, and the text that it has taken: the last star alone needs to be tried
  // again.
  size_t star = std::string_view::npos;
  size_t taken = 0;
  for (int steps = 0; steps < kGlobStepsMax; ++steps) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = t;
      continue;
    }
    if (t == text.size()) return p == pattern.size();
    size_t next = p;
    bool matches = false;
    if (p < pattern.size()) {
      const char c = pattern[next++];
      if (c == '?') {
        matches = true;
      } else if (c == '[') {
        matches = InSet(pattern, &next, text[t]);
      } else if (c == '\\' && next < pattern.size()) {
        matches = pattern[next++] == text[t];
      } else {
        matches = c == text[t];
      }
    }
    if (matches) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++taken;
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace nacre::server
