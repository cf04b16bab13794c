#pragma once

#include <cstdint>

namespace nacre {

/// The least multiple of `unit` that is not below `n`.
constexpr uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace nacre
