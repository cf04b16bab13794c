#include "server/resp/reply.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "server/resp/numbers.h"

namespace nacre::server {

void Reply::Number(char type, int64_t value) {
  bytes_.push_back(type);
  const fmt::format_int digits(value);
  bytes_.append(digits.data(), digits.size());
  bytes_.append("\r\n");
}

void Reply::Simple(std::string_view text) {
  bytes_.push_back('+');
  bytes_.append(text);
  bytes_.append("\r\n");
}

void Reply::Error(std::string_view message) {
  bytes_.push_back('-');
  for (const char c : message) bytes_.push_back(c == '\r' || c == '\n' ? ' ' : c);
  bytes_.append("\r\n");
}

void Reply::Integer(int64_t value) { Number(':', value); }

void Reply::Bulk(std::string_view bytes) {
  constexpr size_t kFrame = 32;  // More than length and line ends take.
  if (bytes_.empty()) bytes_.reserve(bytes.size() + kFrame);
  Number('$', static_cast<int64_t>(bytes.size()));
  bytes_.append(bytes);
  bytes_.append("\r\n");
}

void Reply::Double(double value) {
  if (protocol_ < 3) {
    Bulk(FormatDouble(value));
    return;
  }
  bytes_.push_back(',');
  bytes_.append(FormatDouble(value));
  bytes_.append("\r\n");
}

void Reply::Boolean(bool value) {
  if (protocol_ < 3) {
    Integer(value ? 1 : 0);
  } else {
    bytes_.append(value ? "#t\r\n" : "#f\r\n");
  }
}

void Reply::Verbatim(std::string_view text) {
  if (protocol_ < 3) {
    Bulk(text);
    return;
  }
  Number('=', static_cast<int64_t>(text.size()) + 4);
  bytes_.append("txt:");
  bytes_.append(text);
  bytes_.append("\r\n");
}

void Reply::Null() { bytes_.append(protocol_ < 3 ? "$-1\r\n" : "_\r\n"); }
void Reply::NullArray() { bytes_.append(protocol_ < 3 ? "*-1\r\n" : "_\r\n"); }
void Reply::Array(size_t elements) { Number('*', static_cast<int64_t>(elements)); }

void Reply::Map(size_t pairs) {
  if (protocol_ < 3) {
    Array(pairs * 2);
  } else {
    Number('%', static_cast<int64_t>(pairs));
  }
}

void Reply::Set(size_t elements) {
  Number(protocol_ < 3 ? '*' : '~', static_cast<int64_t>(elements));
}

void Reply::Push(size_t elements) {
  Number(protocol_ < 3 ? '*' : '>', static_cast<int64_t>(elements));
}

}  // namespace nacre::server
