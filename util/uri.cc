#include "util/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

namespace nacre {
namespace {

Status Malformed(const Slice& text, std::string_view why) {
  return Status::InvalidArgument(fmt::format("malformed URI '{}': {}", text.ToStringView(), why));
}

bool IsSchemeName(std::string_view scheme) {
  if (scheme.empty()) return false;
  for (const char c : scheme) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-') return false;
  }
  return true;
}

/// Calls `visit(piece)` for each piece between separators until it answers a failure. An empty
/// text has no pieces.
template <typename Visit>
Status ForEachPiece(std::string_view text, char separator, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    NACRE_RETURN_IF_ERROR(visit(text.substr(0, end)));
    if (end == std::string_view::npos) return Status::OK();
    text.remove_prefix(end + 1);
    if (text.empty()) return visit(text);
  }
  return Status::OK();
}

/// The whole of `digits` as a decimal; false if it is not one or does not fit.
bool ParseDigits(std::string_view digits, uint64_t* value) {
  if (digits.empty()) return false;
  uint64_t result = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    if (__builtin_mul_overflow(result, uint64_t{10}, &result)) return false;
    if (__builtin_add_overflow(result, static_cast<uint64_t>(c - '0'), &result)) return false;
  }
  *value = result;
  return true;
}

/// Powers of two of a unit such as "", "k", "MB" or "GiB"; -1 for anything else.
int ShiftOfUnit(std::string_view unit) {
  if (unit.empty()) return 0;
  static constexpr std::string_view kLetters = "KMGT";
  const size_t power =
      kLetters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  if (power == std::string_view::npos) return -1;
  std::string rest;
  for (const char c : unit.substr(1)) {
    rest.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  if (!rest.empty() && rest != "b" && rest != "ib") return -1;
  return 10 * (static_cast<int>(power) + 1);
}

}  // namespace

std::string Uri::ToString() const {
  std::string result = scheme + ":";
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0) result.push_back(',');
    result.append(addresses[i]);
  }
  char separator = '?';
  for (const auto& [key, value] : parameters) {
    result.push_back(separator);
    result.append(key).append("=").append(value);
    separator = '&';
  }
  return result;
}

Status ParseUri(const Slice& text, Uri* uri) {
  const std::string_view all = text.ToStringView();
  const size_t colon = all.find(':');
  if (colon == std::string_view::npos || !IsSchemeName(all.substr(0, colon))) {
    return Malformed(text, "it does not start with a scheme and a colon");
  }
  Uri result;
  result.scheme = all.substr(0, colon);
  const std::string_view rest = all.substr(colon + 1);
  const size_t question = rest.find('?');

  NACRE_RETURN_IF_ERROR(ForEachPiece(rest.substr(0, question), ',', [&](std::string_view address) {
    if (address.empty()) return Malformed(text, "an address is empty");
    result.addresses.emplace_back(address);
    return Status::OK();
  }));
  if (question != std::string_view::npos) {
    NACRE_RETURN_IF_ERROR(
        ForEachPiece(rest.substr(question + 1), '&', [&](std::string_view parameter) {
          const size_t equals = parameter.find('=');
          if (equals == std::string_view::npos || equals == 0) {
            return Malformed(text, fmt::format("parameter '{}' is not key=value", parameter));
          }
          const std::string key(parameter.substr(0, equals));
          if (!result.parameters.emplace(key, parameter.substr(equals + 1)).second) {
            return Malformed(text, fmt::format("parameter '{}' is given twice", key));
          }
          return Status::OK();
        }));
  }
  *uri = std::move(result);
  return Status::OK();
}

Status ParseSize(const Slice& text, uint64_t* bytes) {
  const std::string_view all = text.ToStringView();
  const size_t digits = std::min(all.find_first_not_of("0123456789"), all.size());
  const int shift = ShiftOfUnit(all.substr(digits));
  uint64_t number = 0;
  if (shift < 0 || !ParseDigits(all.substr(0, digits), &number) || number > UINT64_MAX >> shift) {
    return Status::InvalidArgument(
        fmt::format("malformed size '{}': expected a number of bytes such as 4096, 64KiB or 1GiB",
                    text.ToStringView()));
  }
  *bytes = number << shift;
  return Status::OK();
}

Status ParseNumber(const Slice& text, uint64_t min, uint64_t max, uint64_t* value) {
  uint64_t number = 0;
  if (!ParseDigits(text.ToStringView(), &number) || number < min || number > max) {
    return Status::InvalidArgument(
        fmt::format("'{}' is not a number from {} to {}", text.ToStringView(), min, max));
  }
  *value = number;
  return Status::OK();
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 and more would round to 1024.0 of the smaller unit.
  while (number >= 1023.95 && unit + 1 < std::size(kUnits)) {
    number /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", number, kUnits[unit]);
}

}  // namespace nacre
