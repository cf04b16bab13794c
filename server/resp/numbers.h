#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers as Redis reads and writes them.

namespace nacre::server {

/// A whole number without white space, plus sign or leading zeros, that fits 64 bits.
bool ParseInteger(std::string_view text, int64_t* value);
/// Any finite or infinite number; NaN, white space around it, or nothing at all, is none.
bool ParseDouble(std::string_view text, double* value);
bool ParseLongDouble(std::string_view text, long double* value);

/// With 17 significant digits, as replies have it.
std::string FormatDouble(double value);
/// Without exponent and without zeros at the end, as INCRBYFLOAT stores it.
std::string FormatLongDouble(long double value);

/// `text` in upper or in lower case, by ASCII.
std::string UpperCase(std::string_view text);
std::string LowerCase(std::string_view text);
/// Whether they are the same but for upper and lower case.
bool SameWord(std::string_view a, std::string_view b);

/// Whether `text` matches the glob `pattern`, with Redis's rules: * ? [a-z] [^a] and \.
/// Takes at most some million steps, beyond which nothing matches.
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace nacre::server
