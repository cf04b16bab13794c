#pragma once

#include <cstdint>

// Inlined: a key is short, so the call would cost as much as the hash.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "nacre/slice.h"

namespace nacre {

/// XXH3, 64 bits: the one hash of user keys, for point indexes, Bloom filters and caches. Its
/// value is part of the table format.
inline uint64_t Hash64(const Slice& key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace nacre
