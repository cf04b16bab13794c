#include "sqlite/row/value.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string>

namespace nacre::sqlite {
namespace {

Value TextOf(sqlite3_value* value) {
  // This precedes _bytes, as it may convert.
  const unsigned char* const text = sqlite3_value_text(value);
  return Value::Text(
      Slice(reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_value_bytes(value))));
}

Value BlobOf(sqlite3_value* value) {
  const void* const blob = sqlite3_value_blob(value);
  return Value::Blob(
      Slice(static_cast<const char*>(blob), static_cast<size_t>(sqlite3_value_bytes(value))));
}

/// Whole numbers are kept as integers where that loses nothing.
Value NumberOf(double real, Affinity affinity) {
  constexpr double kLimit = 9223372036854775808.0;
  if (affinity != Affinity::kReal && real > -kLimit && real < kLimit && real == std::floor(real)) {
    return Value::Integer(static_cast<int64_t>(real));
  }
  return Value::Real(real);
}

/// A text that ends with a zero byte saves SQLite an allocation: it adds one when the text is asked
/// for.
void SetText(sqlite3_context* context, const Slice& text) {
  char copy[256];
  if (text.size() < sizeof(copy) && std::memchr(text.data(), 0, text.size()) == nullptr) {
    std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    return sqlite3_result_text(context, copy, -1, SQLITE_TRANSIENT);
  }
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

const char* CollationName(Collation collation) {
  switch (collation) {
    case Collation::kNoCase:
      return "NOCASE";
    case Collation::kRightTrim:
      return "RTRIM";
    case Collation::kBinary:
      break;
  }
  return "BINARY";
}

Affinity AffinityOf(std::string_view type) {
  std::string upper(type);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto has = [&](const char* word) { return upper.find(word) != std::string::npos; };
  if (has("INT")) return Affinity::kInteger;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return Affinity::kText;
  if (has("BLOB") || upper.empty()) return Affinity::kBlob;
  if (has("REAL") || has("FLOA") || has("DOUB")) return Affinity::kReal;
  return Affinity::kNumeric;
}

Value StoredValue(sqlite3_value* value, Affinity affinity) {
  int type = sqlite3_value_type(value);
  const bool numeric = IsNumeric(affinity);
  if (numeric && type == SQLITE_TEXT) type = sqlite3_value_numeric_type(value);
  switch (type) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER: {
      if (affinity == Affinity::kText) return TextOf(value);
      const int64_t integer = sqlite3_value_int64(value);
      if (affinity == Affinity::kReal) return Value::Real(static_cast<double>(integer));
      return Value::Integer(integer);
    }
    case SQLITE_FLOAT: {
      if (affinity == Affinity::kText) return TextOf(value);
      const double real = sqlite3_value_double(value);
      return numeric ? NumberOf(real, affinity) : Value::Real(real);
    }
    case SQLITE_TEXT:
      return TextOf(value);
    default:
      return BlobOf(value);
  }
}

void SetResult(sqlite3_context* context, const Value& value) {
  switch (value.type) {
    case ValueType::kNull:
      return sqlite3_result_null(context);
    case ValueType::kInteger:
      return sqlite3_result_int64(context, value.integer);
    case ValueType::kReal:
      return sqlite3_result_double(context, value.real);
    case ValueType::kText:
      return SetText(context, value.bytes);
    case ValueType::kBlob:
      return sqlite3_result_blob64(context, value.bytes.data(), value.bytes.size(),
                                   SQLITE_TRANSIENT);
  }
}

}  // namespace nacre::sqlite
