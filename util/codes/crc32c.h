#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre {

inline constexpr size_t kCrcBytes = sizeof(uint32_t);

/// CRC32C (Castagnoli) of `n` bytes, by ISA-L. `Crc32c(b, nb, Crc32c(a, na))` is that of a then b.
uint32_t Crc32c(const char* data, size_t n, uint32_t seed = 0);

}  // namespace nacre
