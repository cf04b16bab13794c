#include "server/store/encoding.h"

#include <bit>
#include <cmath>
#include <utility>

#include "util/coding.h"

namespace nacre::server {
namespace {

constexpr char kHasExpiry = static_cast<char>(0x80);
constexpr uint64_t kSign = uint64_t{1} << 63;

void PutBigEndian(std::string* row, uint64_t value) {
  char bytes[8];
  EncodeFixed64(bytes, __builtin_bswap64(value));
  row->append(bytes, sizeof bytes);
}

bool TakeBigEndian(Slice* bytes, uint64_t* value) {
  if (bytes->size() < 8) return false;
  *value = __builtin_bswap64(DecodeFixed64(bytes->data()));
  bytes->remove_prefix(8);
  return true;
}

bool TakeByte(Slice* bytes, char byte) {
  if (bytes->empty() || (*bytes)[0] != byte) return false;
  bytes->remove_prefix(1);
  return true;
}

constexpr size_t kMetaHeadBytesMax = 9;

/// Type and expiry.
void PutMetaHead(std::string* bytes, Type type, uint64_t expires_at_ms) {
  const auto number = static_cast<char>(type);
  bytes->push_back(expires_at_ms == 0 ? number : static_cast<char>(number | kHasExpiry));
  if (expires_at_ms != 0) PutFixed64(bytes, expires_at_ms);
}

/// Takes type and expiry.
bool TakeMetaHead(Slice* bytes, Type* type, uint64_t* expires_at_ms) {
  if (bytes->empty()) return false;
  const auto head = static_cast<unsigned char>((*bytes)[0]);
  bytes->remove_prefix(1);
  const unsigned number = head & 0x7f;
  if (number < static_cast<unsigned>(Type::kString) ||
      number > static_cast<unsigned>(Type::kHash)) {
    return false;
  }
  *type = static_cast<Type>(number);
  *expires_at_ms = 0;
  if (head == number) return true;
  return GetFixed64(bytes, expires_at_ms) && *expires_at_ms != 0;
}

}  // namespace

const char* TypeName(Type type) {
  switch (type) {
    case Type::kString:
      return "string";
    case Type::kList:
      return "list";
    case Type::kSet:
      return "set";
    case Type::kSortedSet:
      return "zset";
    case Type::kHash:
      return "hash";
  }
  return "none";
}

std::string EncodeString(std::string_view value, uint64_t expires_at_ms) {
  std::string bytes;
  bytes.reserve(kMetaHeadBytesMax + value.size());
  PutMetaHead(&bytes, Type::kString, expires_at_ms);
  return bytes.append(value);
}

std::string EncodeMeta(const Meta& meta) {
  if (meta.type == Type::kString) return EncodeString(meta.value, meta.expires_at_ms);
  std::string bytes;
  PutMetaHead(&bytes, meta.type, meta.expires_at_ms);
  PutFixed64(&bytes, meta.incarnation);
  PutVarint64(&bytes, meta.count);
  if (meta.type == Type::kList) PutFixed64(&bytes, static_cast<uint64_t>(meta.first));
  return bytes;
}

bool DecodeMeta(std::string row, Meta* meta) {
  Slice bytes(row);
  if (!TakeMetaHead(&bytes, &meta->type, &meta->expires_at_ms)) return false;
  if (meta->type == Type::kString) {
    meta->value = std::move(row.erase(0, row.size() - bytes.size()));
    return true;
  }
  uint64_t first = 0;
  if (!GetFixed64(&bytes, &meta->incarnation) || !GetVarint64(&bytes, &meta->count) ||
      meta->count == 0 || (meta->type == Type::kList && !GetFixed64(&bytes, &first))) {
    return false;
  }
  meta->first = static_cast<int64_t>(first);
  return bytes.empty();
}

bool DecodeStringMeta(Slice bytes, uint64_t* expires_at_ms, Slice* value) {
  Type type;
  if (!TakeMetaHead(&bytes, &type, expires_at_ms)) return false;
  *value = bytes;
  return type == Type::kString;
}

std::string FieldSubKey(std::string_view field) {
  std::string sub_key(1, kFieldPart);
  sub_key.append(field);
  return sub_key;
}

std::string IndexSubKey(int64_t index) {
  std::string sub_key(1, kIndexPart);
  PutBigEndian(&sub_key, static_cast<uint64_t>(index) ^ kSign);
  return sub_key;
}

std::string ScoreSubKey(double score, std::string_view member) {
  std::string sub_key(1, kScorePart);
  sub_key.append(OrderedBits(score)).append(member);
  return sub_key;
}

bool DecodeFieldSubKey(Slice sub_key, Slice* field) {
  if (!TakeByte(&sub_key, kFieldPart)) return false;
  *field = sub_key;
  return true;
}

bool DecodeScoreSubKey(Slice sub_key, double* score, Slice* member) {
  if (!TakeByte(&sub_key, kScorePart) || !TakeOrderedBits(&sub_key, score)) return false;
  *member = sub_key;
  return true;
}

// ---- Rows ---------------------------------------------------------------------------------------

std::string RowNames::Kind(uint32_t section, char kind) const {
  return (by_slot_ ? SlotPrefix(section) : std::string()) + kind;
}

uint32_t RowNames::SectionOfRow(std::string_view row) const {
  uint32_t slot = 0;
  if (by_slot_) ParseSlotPrefix(row.substr(0, prefix_bytes()), &slot);
  return slot;
}

std::string RowNames::Row(char kind, std::string_view key, size_t more) const {
  std::string row;
  row.reserve(prefix_bytes() + 1 + more);
  if (by_slot_) row.append(SlotPrefix(SlotOfKey(key)));
  row.push_back(kind);
  return row;
}

bool RowNames::Take(Slice* row, char kind) const {
  if (row->size() < prefix_bytes()) return false;
  row->remove_prefix(prefix_bytes());
  return TakeByte(row, kind);
}

std::string RowNames::Incarnation(char kind, std::string_view key, uint64_t incarnation) const {
  std::string row = Row(kind, key, key.size() + 15);
  PutLengthPrefixedSlice(&row, key);
  PutBigEndian(&row, incarnation);
  return row;
}

std::string RowNames::ElementPrefix(std::string_view key, uint64_t incarnation) const {
  return Incarnation(kElementRow, key, incarnation);
}

std::string RowNames::Expiry(uint64_t expires_at_ms, std::string_view key) const {
  std::string row = Row(kExpiryRow, key, key.size() + 8);
  PutBigEndian(&row, expires_at_ms);
  row.append(key);
  return row;
}

bool RowNames::DecodeExpiry(Slice row, uint64_t* expires_at_ms, Slice* key) const {
  if (!Take(&row, kExpiryRow) || !TakeBigEndian(&row, expires_at_ms)) return false;
  *key = row;
  return true;
}

std::string RowNames::Garbage(std::string_view key, uint64_t incarnation) const {
  return Incarnation(kGarbageRow, key, incarnation);
}

bool RowNames::DecodeGarbage(Slice row, Slice* key, uint64_t* incarnation) const {
  return Take(&row, kGarbageRow) && GetLengthPrefixedSlice(&row, key) &&
         TakeBigEndian(&row, incarnation) && row.empty();
}

// ---- Parts of rows ------------------------------------------------------------------------------

std::string OrderedBits(double score) {
  const auto bits = std::bit_cast<uint64_t>(score == 0 ? 0.0 : score);
  std::string bytes;
  PutBigEndian(&bytes, (bits & kSign) != 0 ? ~bits : bits | kSign);
  return bytes;
}

bool TakeOrderedBits(Slice* bytes, double* score) {
  uint64_t bits = 0;
  if (!TakeBigEndian(bytes, &bits)) return false;
  *score = std::bit_cast<double>((bits & kSign) != 0 ? bits ^ kSign : ~bits);
  return !std::isnan(*score);
}

std::string BehindPrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

}  // namespace nacre::server
