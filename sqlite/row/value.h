#pragma once

#include <cstdint>
#include <string_view>

#include "nacre/slice.h"
#include "sqlite/sqlite_api.h"

namespace nacre::sqlite {

/// Ordered as SQLite orders types: NULL, numbers, texts, blobs.
enum class ValueType : uint8_t { kNull, kInteger, kReal, kText, kBlob };

/// What a column prefers, https://www.sqlite.org/datatype3.html section 3.
enum class Affinity : uint8_t { kBlob, kText, kNumeric, kInteger, kReal };

/// SQLite's own collations. Others have no order-preserving key, and are refused.
enum class Collation : uint8_t { kBinary, kNoCase, kRightTrim };

/// One SQLite value. Text (UTF-8) and blobs are views of bytes kept elsewhere.
struct Value {
  ValueType type = ValueType::kNull;
  int64_t integer = 0;
  double real = 0;
  Slice bytes{};

  bool IsNull() const { return type == ValueType::kNull; }
  static Value Integer(int64_t integer) { return {ValueType::kInteger, integer}; }
  static Value Real(double real) { return {ValueType::kReal, 0, real}; }
  static Value Text(const Slice& bytes) { return {ValueType::kText, 0, 0, bytes}; }
  static Value Blob(const Slice& bytes) { return {ValueType::kBlob, 0, 0, bytes}; }
};

inline bool IsNumeric(Affinity affinity) {
  return affinity != Affinity::kText && affinity != Affinity::kBlob;
}

/// As COLLATE has it.
const char* CollationName(Collation collation);

/// The affinity of a column whose declared type is `type`, by SQLite's five rules.
Affinity AffinityOf(std::string_view type);

/// What a column of `affinity` holds after `value` was stored in it. The bytes are of `value`, and
/// stay until it is changed; conversion may change its representation.
Value StoredValue(sqlite3_value* value, Affinity affinity);

/// Hands `value` to SQLite, which copies its bytes.
void SetResult(sqlite3_context* context, const Value& value);

}  // namespace nacre::sqlite
