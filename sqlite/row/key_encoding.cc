#include "sqlite/row/key_encoding.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace nacre::sqlite {
namespace {

constexpr char kNullTag = 0x10;
constexpr char kNumberTag = 0x20;
constexpr char kTextTag = 0x30;
constexpr char kBlobTag = 0x40;
constexpr char kEnd = 0x00;
constexpr char kEscape = 0x01;
constexpr uint64_t kSignBit = 1ULL << 63;
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53.
constexpr double kIntegers = 9223372036854775808.0;    // 2^63.

void AppendBigEndian(uint64_t value, size_t bytes, std::string* key) {
  char buffer[8];
  for (size_t i = 0; i < bytes; ++i) {
    buffer[i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
  }
  key->append(buffer, bytes);
}

uint64_t BigEndian(const char* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

bool HasRemainder(double number) { return std::fabs(number) >= kExactIntegers; }

void AppendNumber(double number, uint64_t remainder, std::string* key) {
  if (number == 0) number = 0;  // Minus zero is equal to zero.
  const uint64_t bits = std::bit_cast<uint64_t>(number);
  key->push_back(kNumberTag);
  AppendBigEndian((bits & kSignBit) != 0 ? ~bits : bits ^ kSignBit, 8, key);
  if (HasRemainder(number)) AppendBigEndian(remainder, 2, key);
}

void AppendInteger(int64_t integer, std::string* key) {
  double number = static_cast<double>(integer);
  if (number >= kIntegers || static_cast<int64_t>(number) > integer) {
    number = std::nextafter(number, -kIntegers);
  }
  const uint64_t below = static_cast<uint64_t>(static_cast<int64_t>(number));
  AppendNumber(number, static_cast<uint64_t>(integer) - below, key);
}

bool Has(const Slice& bytes, unsigned char c) {
  return !bytes.empty() && std::memchr(bytes.data(), c, bytes.size()) != nullptr;
}

void AppendBytes(char tag, const Slice& bytes, bool fold, std::string* key) {
  key->push_back(tag);
  if (!fold && !Has(bytes, kEnd) && !Has(bytes, kEscape)) {
    key->append(bytes.data(), bytes.size());
  } else {
    for (char c : bytes) {
      if (fold && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      if (c != kEnd && c != kEscape) {
        key->push_back(c);
        continue;
      }
      key->push_back(kEscape);
      key->push_back(static_cast<char>(c + 1));
    }
  }
  key->push_back(kEnd);
}

Slice WithoutSpacesAtEnd(Slice text) {
  while (!text.empty() && text[text.size() - 1] == ' ') text.remove_suffix(1);
  return text;
}

/// Whether the last byte is an escape that lacks the byte it escapes. In a row of escapes, every
/// second one is escaped itself.
bool EndsInEscape(const Slice& bytes, unsigned char flip) {
  size_t escapes = 0;
  while (escapes < bytes.size() &&
         static_cast<char>(bytes[bytes.size() - 1 - escapes] ^ flip) == kEscape) {
    ++escapes;
  }
  return escapes % 2 != 0;
}

/// Reads text or a blob after its tag. `flip`: 0, or 0xff if all bytes are inverted. Bytes stay as
/// they are in the key if `scratch` is null.
bool ReadBytes(Slice* key, unsigned char flip, std::string* scratch, Slice* bytes) {
  if (key->empty()) return false;
  const void* const end = std::memchr(key->data(), kEnd ^ flip, key->size());
  if (end == nullptr) return false;
  *bytes = Slice(key->data(), static_cast<size_t>(static_cast<const char*>(end) - key->data()));
  key->remove_prefix(bytes->size() + 1);
  if (scratch == nullptr) return !EndsInEscape(*bytes, flip);
  if (flip == 0 && !Has(*bytes, kEscape)) return true;
  scratch->clear();
  for (size_t i = 0; i < bytes->size(); ++i) {
    char c = static_cast<char>((*bytes)[i] ^ flip);
    if (c == kEscape) {
      if (++i == bytes->size()) return false;
      c = static_cast<char>(((*bytes)[i] ^ flip) - 1);
    }
    scratch->push_back(c);
  }
  *bytes = *scratch;
  return true;
}

bool ReadNumber(Slice* key, bool descending, double* number, uint64_t* remainder) {
  if (key->size() < 8) return false;
  const uint64_t stored = BigEndian(key->data(), 8);
  const uint64_t bits = descending ? ~stored : stored;
  *number = std::bit_cast<double>((bits & kSignBit) != 0 ? bits ^ kSignBit : ~bits);
  key->remove_prefix(8);
  *remainder = 0;
  if (!HasRemainder(*number)) return true;
  if (key->size() < 2) return false;
  *remainder = BigEndian(key->data(), 2) ^ (descending ? 0xffff : 0);
  key->remove_prefix(2);
  return true;
}

Value NumberValue(double number, uint64_t remainder, Affinity affinity) {
  const bool whole = number >= -kIntegers && number < kIntegers && number == std::floor(number);
  if (affinity == Affinity::kReal || !whole) return Value::Real(number);
  // Malformed bytes may lead beyond the largest integer: unsigned, as that wraps around.
  const uint64_t integer = static_cast<uint64_t>(static_cast<int64_t>(number)) + remainder;
  return Value::Integer(static_cast<int64_t>(integer));
}

}  // namespace

void AppendSpace(uint32_t space, std::string* key) { AppendBigEndian(space, kSpaceBytes, key); }

uint32_t SpaceOf(const Slice& key) {
  return static_cast<uint32_t>(BigEndian(key.data(), kSpaceBytes));
}

void AppendValue(const Value& value, Collation collation, std::string* key) {
  switch (value.type) {
    case ValueType::kNull:
      return key->push_back(kNullTag);
    case ValueType::kInteger:
      return AppendInteger(value.integer, key);
    case ValueType::kReal:
      return AppendNumber(value.real, 0, key);
    case ValueType::kText:
      return AppendBytes(
          kTextTag,
          collation == Collation::kRightTrim ? WithoutSpacesAtEnd(value.bytes) : value.bytes,
          collation == Collation::kNoCase, key);
    case ValueType::kBlob:
      return AppendBytes(kBlobTag, value.bytes, false, key);
  }
}

std::string PrefixEnd(const Slice& prefix) {
  std::string end = prefix.ToString();
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

void AppendAfterNull(std::string* key) { key->push_back(kNullTag + 1); }

void AppendTextPrefix(const Slice& prefix, Collation collation, std::string* key) {
  AppendValue(Value::Text(prefix), collation, key);
  key->pop_back();
}

void AppendBeforeBlobs(std::string* key) { key->push_back(kBlobTag); }

void Invert(size_t begin, std::string* key) {
  for (size_t i = begin; i < key->size(); ++i) (*key)[i] = static_cast<char>(~(*key)[i]);
}

bool IsExact(Affinity affinity, Collation collation) {
  // Only a column without affinity holds both 1 and 1.0.
  return affinity != Affinity::kBlob && collation == Collation::kBinary;
}

bool SkipValue(Slice* key, bool descending) {
  if (key->empty()) return false;
  const unsigned char flip = descending ? 0xff : 0;
  const char tag = static_cast<char>((*key)[0] ^ flip);
  key->remove_prefix(1);
  if (tag == kNullTag) return true;
  if (tag == kNumberTag) {
    double number;
    uint64_t remainder;
    return ReadNumber(key, descending, &number, &remainder);
  }
  Slice bytes;
  return (tag == kTextTag || tag == kBlobTag) && ReadBytes(key, flip, nullptr, &bytes);
}

bool ReadValue(Slice* key, bool descending, Affinity affinity, std::string* scratch, Value* value) {
  if (key->empty()) return false;
  const unsigned char flip = descending ? 0xff : 0;
  const char tag = static_cast<char>((*key)[0] ^ flip);
  key->remove_prefix(1);
  if (tag == kNullTag) {
    *value = Value();
    return true;
  }
  if (tag == kNumberTag) {
    double number;
    uint64_t remainder;
    if (!ReadNumber(key, descending, &number, &remainder)) return false;
    *value = NumberValue(number, remainder, affinity);
    return true;
  }
  Slice bytes;
  if ((tag != kTextTag && tag != kBlobTag) || !ReadBytes(key, flip, scratch, &bytes)) return false;
  *value = tag == kTextTag ? Value::Text(bytes) : Value::Blob(bytes);
  return true;
}

}  // namespace nacre::sqlite
