#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "nacre/slice.h"

namespace nacre {

// Little-endian fixed-width and LEB128 variable-width integers: the alphabet of every format in
// docs/formats.md. The Get functions never read past their input and answer false (or null)
// for a truncated or overlong number.

inline void EncodeFixed16(char* dst, uint16_t value) { std::memcpy(dst, &value, sizeof(value)); }
inline void EncodeFixed32(char* dst, uint32_t value) { std::memcpy(dst, &value, sizeof(value)); }
inline void EncodeFixed64(char* dst, uint64_t value) { std::memcpy(dst, &value, sizeof(value)); }

inline uint16_t DecodeFixed16(const char* src) {
  uint16_t value;
  std::memcpy(&value, src, sizeof(value));
  return value;
}
inline uint32_t DecodeFixed32(const char* src) {
  uint32_t value;
  std::memcpy(&value, src, sizeof(value));
  return value;
}
inline uint64_t DecodeFixed64(const char* src) {
  uint64_t value;
  std::memcpy(&value, src, sizeof(value));
  return value;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are little-endian");

inline constexpr int kMaxVarint32Bytes = 5;
inline constexpr int kMaxVarint64Bytes = 10;

/// Writes at most kMaxVarint64Bytes; returns one past the last byte written.
inline char* EncodeVarint64(char* dst, uint64_t value) {
  while (value >= 0x80) {
    *dst++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *dst++ = static_cast<char>(value);
  return dst;
}
inline char* EncodeVarint32(char* dst, uint32_t value) { return EncodeVarint64(dst, value); }

constexpr int VarintLength(uint64_t value) {
  int length = 1;
  for (; value >= 0x80; value >>= 7) ++length;
  return length;
}

/// Reads from [p, limit); returns one past the number, or null.
const char* DecodeVarint64Slow(const char* p, const char* limit, uint64_t* value);

inline const char* DecodeVarint64(const char* p, const char* limit, uint64_t* value) {
  if (p < limit && static_cast<int8_t>(*p) >= 0) [[likely]] {
    *value = static_cast<uint8_t>(*p);
    return p + 1;
  }
  return DecodeVarint64Slow(p, limit, value);
}
/// As DecodeVarint64; null also when the number does not fit 32 bits.
inline const char* DecodeVarint32(const char* p, const char* limit, uint32_t* value) {
  uint64_t wide = 0;
  p = DecodeVarint64(p, limit, &wide);
  if (p == nullptr || wide > UINT32_MAX) return nullptr;
  *value = static_cast<uint32_t>(wide);
  return p;
}

void PutFixed32(std::string* dst, uint32_t value);
void PutFixed64(std::string* dst, uint64_t value);
void PutVarint32(std::string* dst, uint32_t value);
void PutVarint64(std::string* dst, uint64_t value);
void PutLengthPrefixedSlice(std::string* dst, const Slice& value);

bool GetFixed32(Slice* input, uint32_t* value);
bool GetFixed64(Slice* input, uint64_t* value);
bool GetVarint32(Slice* input, uint32_t* value);
bool GetVarint64(Slice* input, uint64_t* value);
bool GetLengthPrefixedSlice(Slice* input, Slice* value);

}  // namespace nacre
