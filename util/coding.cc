#include "util/coding.h"

namespace nacre {

const char* DecodeVarint64Slow(const char* p, const char* limit, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64 && p < limit; shift += 7) {
    const uint64_t byte = static_cast<uint8_t>(*p++);
    // The tenth byte holds bit 63 alone.
    if (shift == 63 && byte > 1) return nullptr;
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

void PutFixed32(std::string* dst, uint32_t value) {
  char buffer[sizeof(value)];
  EncodeFixed32(buffer, value);
  dst->append(buffer, sizeof(buffer));
}

void PutFixed64(std::string* dst, uint64_t value) {
  char buffer[sizeof(value)];
  EncodeFixed64(buffer, value);
  dst->append(buffer, sizeof(buffer));
}

void PutVarint32(std::string* dst, uint32_t value) { PutVarint64(dst, value); }

void PutVarint64(std::string* dst, uint64_t value) {
  char buffer[kMaxVarint64Bytes];
  const char* end = EncodeVarint64(buffer, value);
  dst->append(buffer, static_cast<size_t>(end - buffer));
}

void PutLengthPrefixedSlice(std::string* dst, const Slice& value) {
  PutVarint64(dst, value.size());
  dst->append(value.data(), value.size());
}

bool GetFixed32(Slice* input, uint32_t* value) {
  if (input->size() < sizeof(*value)) return false;
  *value = DecodeFixed32(input->data());
  input->remove_prefix(sizeof(*value));
  return true;
}

bool GetFixed64(Slice* input, uint64_t* value) {
  if (input->size() < sizeof(*value)) return false;
  *value = DecodeFixed64(input->data());
  input->remove_prefix(sizeof(*value));
  return true;
}

bool GetVarint32(Slice* input, uint32_t* value) {
  const char* p = DecodeVarint32(input->begin(), input->end(), value);
  if (p == nullptr) return false;
  input->remove_prefix(static_cast<size_t>(p - input->data()));
  return true;
}

bool GetVarint64(Slice* input, uint64_t* value) {
  const char* p = DecodeVarint64(input->begin(), input->end(), value);
  if (p == nullptr) return false;
  input->remove_prefix(static_cast<size_t>(p - input->data()));
  return true;
}

bool GetLengthPrefixedSlice(Slice* input, Slice* value) {
  uint64_t size = 0;
  Slice rest = *input;
  if (!GetVarint64(&rest, &size) || size > rest.size()) return false;
  *value = Slice(rest.data(), size);
  rest.remove_prefix(size);
  *input = rest;
  return true;
}

}  // namespace nacre
