#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <string>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "util/coding.h"

namespace nacre {

using SequenceNumber = uint64_t;

/// Sequences use 48 bits, so that one 64-bit word carries a MemTable generation above them
/// (docs/design.md, section 6).
inline constexpr SequenceNumber kMaxSequenceNumber = (uint64_t{1} << 48) - 1;

/// Kind of an entry. The numbers, RocksDB's, are part of the table format, and below 16.
enum class ValueType : uint8_t {
  kDeletion = 0,
  kValue = 1,
  kMerge = 2,  ///< An operand, for the merge operator.
  kSingleDeletion = 7,
  kRangeDeletion = 15,  ///< The value is the end of the range. Never among point entries.
};
/// Sorts before every other type at the same sequence.
inline constexpr ValueType kValueTypeForSeek = ValueType::kRangeDeletion;

/// Whether `type` is that of one of the above.
inline constexpr bool IsValueType(uint64_t type) {
  constexpr uint32_t kTypes = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 7 | 1u << 15;
  return type < 16 && (kTypes >> type & 1) != 0;
}
/// Whether an entry of this type says that there is nothing.
inline constexpr bool IsDeletion(ValueType type) {
  return type == ValueType::kDeletion || type == ValueType::kSingleDeletion;
}

/// sequence << 8 | type: a larger tag is newer and sorts first.
inline constexpr uint64_t PackTag(SequenceNumber sequence, ValueType type) {
  return sequence << 8 | static_cast<uint64_t>(type);
}
/// Sorts before all other versions of a user key.
inline constexpr uint64_t kGreatestTag = PackTag(kMaxSequenceNumber, kValueTypeForSeek);
inline constexpr SequenceNumber TagSequence(uint64_t tag) { return tag >> 8; }
inline constexpr ValueType TagType(uint64_t tag) { return static_cast<ValueType>(tag & 0xff); }

inline constexpr size_t kTagBytes = 8;

/// An internal key in memory: user key, then fixed64 tag. (Records in tables store the tag as a
/// varint instead, see record.h.)
inline Slice ExtractUserKey(const Slice& internal_key) {
  assert(internal_key.size() >= kTagBytes);
  return {internal_key.data(), internal_key.size() - kTagBytes};
}
inline uint64_t ExtractTag(const Slice& internal_key) {
  assert(internal_key.size() >= kTagBytes);
  return DecodeFixed64(internal_key.data() + internal_key.size() - kTagBytes);
}
inline void AppendInternalKey(std::string* dst, const Slice& user_key, uint64_t tag) {
  dst->append(user_key.data(), user_key.size());
  PutFixed64(dst, tag);
}

/// The first 8 bytes of `user_key` (zeros where it is shorter) as a number: if two keys' numbers
/// differ, they order the keys as the bytewise order does.
inline uint64_t KeyPrefix(const Slice& user_key) {
  uint64_t bytes = 0;
  if (user_key.size() >= sizeof(bytes)) [[likely]] {
    std::memcpy(&bytes, user_key.data(), sizeof(bytes));
  } else {
    std::memcpy(&bytes, user_key.data(), user_key.size());
  }
  return __builtin_bswap64(bytes);
}

/// Orders internal keys: user key ascending, then tag descending (newest first).
class InternalKeyComparator {
 public:
  explicit InternalKeyComparator(const Comparator* user)
      : user_(user), bytewise_(user == BytewiseComparator()) {}

  int Compare(const Slice& a, const Slice& b) const {
    const int r = CompareUserKeys(ExtractUserKey(a), ExtractUserKey(b));
    if (r != 0) return r;
    const uint64_t tag_a = ExtractTag(a);
    const uint64_t tag_b = ExtractTag(b);
    return tag_a > tag_b ? -1 : (tag_a < tag_b ? 1 : 0);
  }
  int CompareUserKeys(const Slice& a, const Slice& b) const {
    return bytewise_ ? a.compare(b) : user_->Compare(a, b);
  }
  const Comparator* user_comparator() const { return user_; }
  bool bytewise() const { return bytewise_; }

 private:
  const Comparator* user_;
  bool bytewise_;
};

}  // namespace nacre
