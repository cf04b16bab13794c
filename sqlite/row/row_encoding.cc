#include "sqlite/row/row_encoding.h"

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

void RowReader::Reset(const Slice& row, int count) {
  row_ = row;
  count_ = count;
  first_body_ = nullptr;
}

bool RowReader::FindBody() {
  const char* at = row_.begin();
  for (int i = 0; i < count_; ++i) {
    uint64_t header;
    at = DecodeVarint64(at, row_.end(), &header);
    if (at == nullptr) return false;
  }
  first_body_ = at;
  next_ = 0;
  header_ = row_.begin();
  body_ = first_body_;
  return true;
}

bool RowReader::Read(int slot, Value* value) {
  if (slot >= count_ || (first_body_ == nullptr && !FindBody())) return false;
  if (slot < next_) {
    next_ = 0;
    header_ = row_.begin();
    body_ = first_body_;
  }
  while (true) {
    uint64_t header = 0;
    header_ = DecodeVarint64(header_, row_.end(), &header);
    const size_t size = BodySize(header);
    if (header_ == nullptr || size > static_cast<size_t>(row_.end() - body_)) {
      first_body_ = nullptr;  // Its position means nothing now.
      return false;
    }
    const char* const body = body_;
    body_ += size;
    if (next_++ == slot) {
      *value = Decode(header, body, size);
      return true;
    }
  }
}

}  // namespace nacre::sqlite
