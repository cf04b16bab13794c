#pragma once

#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "sqlite/row/value.h"

namespace nacre::sqlite {

/// Keys whose bytewise order is SQLite's order of the values. In this process each key begins with
/// the number of its space (a clustered table or an index); what follows is the key in the column
/// family of the space. Each value of a key is self-delimiting, so that the encoding of some first
/// columns is a prefix of the whole:
///
///     key      u32 big-endian    space, in this process
///     value    u8                0x10 NULL, 0x20 number, 0x30 text, 0x40 blob
///     number   u64 big-endian    the largest double that is not greater, sign bit flipped, and all
///                                other bits too if it was negative
///              u16 big-endian    only if that double is 2^53 or more on either side of zero: by
///                                how much an integer is greater than it
///     text     bytes             folded by the collation; 0x00 is written 0x01 0x01, and 0x01 is
///                                written 0x01 0x02; ends with 0x00
///     blob     bytes             as text, not folded
///
/// A part of a key that is declared DESC has all its bytes inverted: since no encoded value begins
/// with another one, that turns the order around.
///
/// Whether a number is an integer or real, and what a collation folds, is not in the key: the
/// columns that need it are `exact` only if their affinity and collation tell (IsExact).

inline constexpr size_t kSpaceBytes = 4;

void AppendSpace(uint32_t space, std::string* key);
uint32_t SpaceOf(const Slice& key);
/// `key` without its space, as a column family has it; its bytes must stay.
inline Slice WithoutSpace(const Slice& key) {
  return {key.data() + kSpaceBytes, key.size() - kSpaceBytes};
}
void AppendValue(const Value& value, Collation collation, std::string* key);
/// Inverts the bytes of `key` from `begin` on.
void Invert(size_t begin, std::string* key);
/// The smallest bytes that are greater than all that begin with `prefix`; empty if there are none.
std::string PrefixEnd(const Slice& prefix);
/// Smaller than every value but NULL.
void AppendAfterNull(std::string* key);
/// The beginning of a text that begins with `prefix`, which is folded by the collation.
void AppendTextPrefix(const Slice& prefix, Collation collation, std::string* key);
/// Smaller than every blob, and greater than every text.
void AppendBeforeBlobs(std::string* key);

/// Whether the key gives a stored value back exactly.
bool IsExact(Affinity affinity, Collation collation);

/// Takes the value at the beginning of `key` off. False if the bytes are malformed.
bool SkipValue(Slice* key, bool descending);
/// The same, and decodes it for a column of `affinity`. Bytes are those of `key`, or of `scratch`
/// if they had to be unescaped or inverted.
bool ReadValue(Slice* key, bool descending, Affinity affinity, std::string* scratch, Value* value);

}  // namespace nacre::sqlite
