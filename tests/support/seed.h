#pragma once

#include <cstdint>

namespace nacre {

/// The seed of a randomised test: the environment's NACRE_TEST_SEED if set, else `default_seed`.
/// Prints it, so that the log of a failed run says how to replay it:
///
///     NACRE_TEST_SEED=42 build/release/bin/db_tests --gtest_filter=Suite.Test
///
/// A run is replayed only if all of its randomness comes from this number.
uint64_t TestSeed(uint64_t default_seed);

}  // namespace nacre
