// Goal: the generator is xoshiro256** (so that seeds mean the same everywhere), and its ranges are
// kept and filled evenly.
// Method: the published algorithm with its state set by SplitMix64, written out again; counts.

#include "util/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "tests/support/seed.h"

namespace nacre {
namespace {

TEST(RandomTest, SeedsMeanTheSameForEver) {
  // SplitMix64 of 0 and xoshiro256** of what it gives: constants of the reference programs.
  Random random(0);
  EXPECT_EQ(0x99ec5f36cb75f2b4U, random.Next());
  EXPECT_EQ(0xbf6e1f784956452aU, random.Next());
  EXPECT_EQ(0x1a5f849d4933e6e0U, random.Next());
}

TEST(RandomTest, UniformIsUniform) {
  Random random(TestSeed(306));
  std::array<int, 10> counts = {};
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.Uniform(counts.size()));
  // Ten standard deviations.
  for (const int count : counts) EXPECT_NEAR(10'000, count, 950);
  EXPECT_EQ(0U, random.Uniform(1));
}

TEST(RandomTest, DoublesAreInTheUnitInterval) {
  Random random(TestSeed(307));
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = random.NextDouble();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(50'000, sum, 1000);
}

TEST(RandomTest, SkewedFavoursSmallNumbers) {
  Random random(TestSeed(308));
  int small = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t x = random.Skewed(20);
    ASSERT_LT(x, 1U << 20);
    small += x < 1024;
  }
  EXPECT_GT(small, 4000);
}

}  // namespace
}  // namespace nacre
