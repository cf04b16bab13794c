#pragma once

#include <cstdint>

#include "nacre/slice.h"

namespace nacre {

/// XXH3, 64 bits: the one hash of user keys, for point indexes, Bloom filters and caches. Its
/// value is part of the table format.
uint64_t Hash64(const Slice& key);

}  // namespace nacre
