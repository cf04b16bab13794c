// Goal: repair takes more as long as all nodes answer as usual, gives way as soon as one does not,
// and stays within its bounds; what has become usual is no reason to give way.
// Method: answers that are made up.

#include "db/redundancy/adaptive_repair_rate.h"

#include <gtest/gtest.h>

#include <vector>

namespace nacre {
namespace {

using Answers = std::vector<AdaptiveRepairRate::Answer>;

constexpr uint64_t kUsual = 50'000;
constexpr uint64_t kLate = 20'000'000;

TEST(AdaptiveRepairRateTest, TakesWhatNodesHaveLeft) {
  AdaptiveRepairRate rate;
  EXPECT_EQ(rate.bytes_per_second(), AdaptiveRepairRate::kFirst);
  uint64_t before = rate.bytes_per_second();
  for (int i = 0; i < 100; ++i) {
    rate.Heard(Answers{{0, kUsual}, {1, 2 * kUsual}});
    EXPECT_GE(rate.bytes_per_second(), before);
    before = rate.bytes_per_second();
  }
  EXPECT_EQ(before, AdaptiveRepairRate::kMost);
}

TEST(AdaptiveRepairRateTest, GivesWayWhenOneIsLate) {
  AdaptiveRepairRate rate;
  for (int i = 0; i < 10; ++i) rate.Heard(Answers{{0, kUsual}, {1, kUsual}});
  const uint64_t grown = rate.bytes_per_second();
  EXPECT_GT(grown, AdaptiveRepairRate::kFirst);
  rate.Heard(Answers{{0, kUsual}, {1, kLate}});
  EXPECT_EQ(rate.bytes_per_second(), grown / 2);
  for (int i = 0; i < 20; ++i) rate.Heard(Answers{{0, kUsual}, {1, kLate}});
  EXPECT_EQ(rate.bytes_per_second(), AdaptiveRepairRate::kLeast);
  // It is not late any more.
  rate.Heard(Answers{{0, kUsual}, {1, kUsual}});
  EXPECT_GT(rate.bytes_per_second(), AdaptiveRepairRate::kLeast);
}

TEST(AdaptiveRepairRateTest, ALittleLaterIsNotLate) {
  AdaptiveRepairRate rate;
  rate.Heard(Answers{{0, kUsual}});
  const uint64_t before = rate.bytes_per_second();
  rate.Heard(Answers{{0, 15 * kUsual}});
  EXPECT_GT(rate.bytes_per_second(), before);
}

TEST(AdaptiveRepairRateTest, WhatIsSlowForGoodBecomesUsual) {
  AdaptiveRepairRate rate;
  rate.Heard(Answers{{0, kUsual}});
  for (int i = 0; i < 1000; ++i) rate.Heard(Answers{{0, kLate}});
  EXPECT_GT(rate.bytes_per_second(), AdaptiveRepairRate::kLeast);
  // A node that has been slow from the beginning is not late.
  AdaptiveRepairRate other;
  other.Heard(Answers{{7, kLate}});
  other.Heard(Answers{{7, kLate}});
  EXPECT_GT(other.bytes_per_second(), AdaptiveRepairRate::kFirst);
}

TEST(AdaptiveRepairRateTest, WithoutAnAnswerNothingIsKnown) {
  AdaptiveRepairRate rate;
  rate.Heard({});
  EXPECT_GE(rate.bytes_per_second(), AdaptiveRepairRate::kFirst);
  rate.Heard(Answers{{0, 0}});
  rate.Heard(Answers{{0, UINT64_MAX / 8}});
  EXPECT_LE(rate.bytes_per_second(), AdaptiveRepairRate::kFirst);
}

}  // namespace
}  // namespace nacre
