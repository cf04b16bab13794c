#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nacre/slice.h"

// How keys and values of Redis are rows of a column family. Each database of Redis is a family. The
// first byte says what a row is; whole numbers in keys are big-endian, so that rows are in their
// order.
//
//   meta      'm' key                                              -> Meta, below
//   element   'e' varint32 size, key, fixed64 incarnation, sub-key -> value
//   expiry    'x' fixed64 milliseconds since 1970, key             -> nothing
//   garbage   'g' varint32 size, key, fixed64 incarnation          -> nothing
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

std::string MetaRow(std::string_view key);
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

/// What all elements of an incarnation begin with.
std::string ElementPrefix(std::string_view key, uint64_t incarnation);
std::string FieldSubKey(std::string_view field);
std::string IndexSubKey(int64_t index);
std::string ScoreSubKey(double score, std::string_view member);
/// The bytes of `sub_key` behind the letter and, for the latter, the score.
bool DecodeFieldSubKey(Slice sub_key, Slice* field);
bool DecodeScoreSubKey(Slice sub_key, double* score, Slice* member);

std::string ExpiryRow(uint64_t expires_at_ms, std::string_view key);
bool DecodeExpiryRow(Slice row, uint64_t* expires_at_ms, Slice* key);
std::string GarbageRow(std::string_view key, uint64_t incarnation);
bool DecodeGarbageRow(Slice row, Slice* key, uint64_t* incarnation);

/// Bytes that are in the order of the scores; -0 is 0. There is no NaN.
std::string OrderedBits(double score);
/// False if `bytes` is shorter than eight bytes, or has a NaN; takes them otherwise.
bool TakeOrderedBits(Slice* bytes, double* score);

/// The least string behind all that begin with `prefix`, which does not consist of 0xff only.
std::string BehindPrefix(std::string prefix);

}  // namespace nacre::server
