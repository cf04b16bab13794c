#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nacre/slice.h"
#include "server/store/slots.h"

// How keys and values of Redis are rows of a column family. Each database of Redis is a family. The
// first byte says what a row is; whole numbers in keys are big-endian, so that rows are in their
// order.
//
//   meta      'm' key                                              -> Meta, below
//   element   'e' varint32 size, key, fixed64 incarnation, sub-key -> value
//   expiry    'x' fixed64 milliseconds since 1970, key             -> nothing
//   garbage   'g' varint32 size, key, fixed64 incarnation          -> nothing
//
// In the databases of a cluster each row begins with its key's slot (SlotPrefix), so that the rows
// of a slot are a range: see RowNames.
//
// A key is there if it has a meta row that has not expired. The elements of hashes, lists, sets
// and sorted sets are rows of their own, named by the incarnation: a key that is made anew gets
// another one, so that deleting a key takes its meta row only. A garbage row has the elements of
// an incarnation that is gone removed in the background. An expiry row has the key looked at by
// then; it may be of a time that does not hold any more.
//
// Sub-keys:
//
//   hash         'f' field                -> value
//   set          'f' member               -> nothing
//   list         'i' fixed64 index ^ 2^63 -> value; indexes are contiguous, and may be negative
//   sorted set   'f' member               -> fixed64 score, as OrderedBits
//                's' fixed64 score, member -> nothing
//
// Meta, in little-endian:
//
//   | bytes    | what
//   | 1        | type, and 0x80 if there is an expiry
//   | fixed64  | expiry in milliseconds since 1970, if there is one
//   | n        | strings: the value
//   | fixed64  | others: incarnation
//   | varint64 | others: how many elements there are, at least one
//   | fixed64  | lists: index of the first element
//
// The numbers are frozen.

namespace nacre::server {

enum class Type : uint8_t { kString = 1, kList = 2, kSet = 3, kSortedSet = 4, kHash = 5 };

inline constexpr char kMetaRow = 'm';
inline constexpr char kElementRow = 'e';
inline constexpr char kExpiryRow = 'x';
inline constexpr char kGarbageRow = 'g';
inline constexpr char kFieldPart = 'f';
inline constexpr char kIndexPart = 'i';
inline constexpr char kScorePart = 's';

/// What there is to know of a key.
struct Meta {
  Type type = Type::kString;
  uint64_t expires_at_ms = 0;  ///< 0: never.
  std::string value;           ///< Strings only.
  uint64_t incarnation = 0;    ///< This and the following: others only.
  uint64_t count = 0;
  int64_t first = 0;  ///< Lists only.
  /// The expiry that the row has, which EncodeMeta does not look at.
  uint64_t stored_expiry_ms = 0;

  bool ExpiredAt(uint64_t now_ms) const { return expires_at_ms != 0 && expires_at_ms <= now_ms; }
};

/// The name of a type, as TYPE answers it.
const char* TypeName(Type type);

std::string EncodeMeta(const Meta& meta);
/// The meta row of a string.
std::string EncodeString(std::string_view value, uint64_t expires_at_ms);
/// False for malformed bytes.
bool DecodeMeta(std::string row, Meta* meta);
/// As DecodeMeta for a string that need not be copied: `*value` views `bytes`. False for anything
/// else.
bool DecodeStringMeta(Slice bytes, uint64_t* expires_at_ms, Slice* value);

std::string FieldSubKey(std::string_view field);
std::string IndexSubKey(int64_t index);
std::string ScoreSubKey(double score, std::string_view member);
/// The bytes of `sub_key` behind the letter and, for the latter, the score.
bool DecodeFieldSubKey(Slice sub_key, Slice* field);
bool DecodeScoreSubKey(Slice sub_key, double* score, Slice* member);

/// How the rows of a database are named: as above, and in a cluster behind slots. All rows of a
/// section are neighbours: there is one, or each slot is one.
class RowNames {
 public:
  explicit RowNames(bool by_slot) : by_slot_(by_slot) {}

  bool by_slot() const { return by_slot_; }
  /// The section that has the rows of a key.
  uint32_t SectionOf(std::string_view key) const { return by_slot_ ? SlotOfKey(key) : 0; }
  /// What the rows of a kind begin with, in one section; kinds are the letters above.
  std::string Kind(uint32_t section, char kind) const;
  /// The kind of a row. It has at least that.
  char KindOf(std::string_view row) const { return row[prefix_bytes()]; }
  /// The section of a row.
  uint32_t SectionOfRow(std::string_view row) const;

  std::string Meta(std::string_view key) const {
    return Row(kMetaRow, key, key.size()).append(key);
  }
  std::string_view KeyOfMeta(std::string_view row) const { return row.substr(prefix_bytes() + 1); }
  /// What all elements of an incarnation begin with.
  std::string ElementPrefix(std::string_view key, uint64_t incarnation) const;
  std::string Expiry(uint64_t expires_at_ms, std::string_view key) const;
  bool DecodeExpiry(Slice row, uint64_t* expires_at_ms, Slice* key) const;
  std::string Garbage(std::string_view key, uint64_t incarnation) const;
  bool DecodeGarbage(Slice row, Slice* key, uint64_t* incarnation) const;

 private:
  size_t prefix_bytes() const { return by_slot_ ? 2 : 0; }
  /// The beginning of a row of a key, which has room for `more` bytes.
  std::string Row(char kind, std::string_view key, size_t more) const;
  std::string Incarnation(char kind, std::string_view key, uint64_t incarnation) const;
  /// Takes the kind and what is in front of it.
  bool Take(Slice* row, char kind) const;

  bool by_slot_;
};

/// Bytes that are in the order of the scores; -0 is 0. There is no NaN.
std::string OrderedBits(double score);
/// False if `bytes` is shorter than eight bytes, or has a NaN; takes them otherwise.
bool TakeOrderedBits(Slice* bytes, double* score);

/// The least string behind all that begin with `prefix`, which does not consist of 0xff only.
std::string BehindPrefix(std::string prefix);

}  // namespace nacre::server
