#include "sqlite/row/row_encoding.h"

#include <algorithm>
#include <cstring>

#include "util/coding.h"

namespace nacre::sqlite {
namespace {

constexpr uint64_t kReal = 9;
constexpr uint64_t kZero = 10;
constexpr uint64_t kOne = 11;
constexpr uint64_t kFirstBytes = 12;

size_t BodySize(uint64_t header) {
  if (header >= kFirstBytes) return (header - kFirstBytes) / 2;
  if (header >= kZero) return 0;
  return header == kReal ? 8 : header;
}

size_t IntegerSize(int64_t value) {
  size_t size = 1;
  while (size < 8) {
    const int64_t limit = int64_t{1} << (8 * size - 1);
    if (value >= -limit && value < limit) break;
    ++size;
  }
  return size;
}

Value Decode(uint64_t header, const char* body, size_t size) {
  if (header == 0) return {};
  if (header == kZero || header == kOne) return Value::Integer(header == kOne ? 1 : 0);
  if (header == kReal) {
    double real;
    std::memcpy(&real, body, sizeof(real));
    return Value::Real(real);
  }
  if (header < kReal) {
    uint64_t bits = 0;
    std::memcpy(&bits, body, size);
    const unsigned shift = 64 - 8 * static_cast<unsigned>(size);
    return Value::Integer(static_cast<int64_t>(bits << shift) >> shift);
  }
  return header % 2 == 0 ? Value::Blob(Slice(body, size)) : Value::Text(Slice(body, size));
}

}  // namespace

void RowWriter::Clear() {
  row_.clear();
  body_.clear();
}

void RowWriter::Add(const Value& value) {
  switch (value.type) {
    case ValueType::kNull:
      return PutVarint64(&row_, 0);
    case ValueType::kInteger: {
      if (value.integer == 0 || value.integer == 1) {
        return PutVarint64(&row_, value.integer == 0 ? kZero : kOne);
      }
      const size_t size = IntegerSize(value.integer);
      PutVarint64(&row_, size);
      body_.append(reinterpret_cast<const char*>(&value.integer), size);
      return;
    }
    case ValueType::kReal:
      PutVarint64(&row_, kReal);
      body_.append(reinterpret_cast<const char*>(&value.real), sizeof(value.real));
      return;
    case ValueType::kText:
    case ValueType::kBlob:
      PutVarint64(&row_,
                  kFirstBytes + 2 * value.bytes.size() + (value.type == ValueType::kText ? 1 : 0));
      body_.append(value.bytes.data(), value.bytes.size());
      return;
  }
}

Slice RowWriter::Finish() {
  row_.append(body_);
  return row_;
}

bool RowReader::FindFields() {
  fields_.resize(count_);
  const char* at = row_.begin();
  size_t offset = 0;
  for (Field& field : fields_) {
    at = DecodeVarint64(at, row_.end(), &field.header);
    if (at == nullptr) return false;
    field.offset = offset;
    // Sizes may be any number if the bytes are malformed.
    offset = std::min(offset + BodySize(field.header), row_.size() + 1);
  }
  body_ = Slice(at, static_cast<size_t>(row_.end() - at));
  found_ = true;
  return true;
}

bool RowReader::Read(int slot, Value* value) {
  const auto place = static_cast<size_t>(slot);
  if (place >= count_ || (!found_ && !FindFields())) return false;
  const Field& field = fields_[place];
  const size_t size = BodySize(field.header);
  if (field.offset > body_.size() || size > body_.size() - field.offset) return false;
  *value = Decode(field.header, body_.data() + field.offset, size);
  return true;
}

}  // namespace nacre::sqlite
