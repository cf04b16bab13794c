#pragma once

#include <cstddef>

namespace nacre {

/// How many rounds a randomised test runs: `rounds` in a plain build, fewer where a sanitizer makes
/// each of them dearer, times the environment's NACRE_TEST_SCALE if that is set (a soak test is
/// NACRE_TEST_SCALE=100). At least 1.
size_t Scaled(size_t rounds);

}  // namespace nacre
