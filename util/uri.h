#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// "scheme:address,address,...?key=value&key=value": how pools and nodes are named.
struct Uri {
  std::string scheme;
  std::vector<std::string> addresses;
  std::map<std::string, std::string> parameters;

  std::string ToString() const;
};

/// `InvalidArgument` naming what is malformed: no scheme, an empty address, a parameter twice or
/// without "=". Addresses may be absent ("embedded:?nodes=4").
Status ParseUri(const Slice& text, Uri* uri);

/// "64", "64K", "64KiB", "1GiB", "2TB": K, M, G, T are powers of 1024, with or without "B"/"iB",
/// in any case. `InvalidArgument` naming the text if malformed or beyond 64 bits.
Status ParseSize(const Slice& text, uint64_t* bytes);
/// Decimal, whole text, within [min, max]; else `InvalidArgument` naming the text and the range.
Status ParseNumber(const Slice& text, uint64_t min, uint64_t max, uint64_t* value);
/// "1.5 GiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace nacre
