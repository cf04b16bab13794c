// Goal: repair keeps to the limit that there is now, whatever it was before.

#include "db/redundancy/repair_pace.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(RepairPaceTest, WhatWasSpentIsPaidForAtTheLimitOfTheMoment) {
  RepairPace pace;
  EXPECT_EQ(pace.ReadyNanos(1), 0u);
  pace.Spend(10'000, 5 * kSecond);
  EXPECT_EQ(pace.ReadyNanos(1000), 15 * kSecond);
  EXPECT_EQ(pace.ReadyNanos(4000), 5 * kSecond + 2 * kSecond + kSecond / 2);
  EXPECT_EQ(pace.ReadyNanos(0), 0u);
  pace.GiveBack(8000);
  EXPECT_EQ(pace.ReadyNanos(1000), 7 * kSecond);
  pace.GiveBack(8000);
  EXPECT_EQ(pace.ReadyNanos(1000), 5 * kSecond);
}

TEST(RepairPaceTest, LargeTablesAtALowLimitDoNotOverflow) {
  RepairPace pace;
  pace.Spend(uint64_t{1} << 40, kSecond);
  EXPECT_EQ(pace.ReadyNanos(uint64_t{1} << 20), kSecond + (uint64_t{1} << 20) * kSecond);
}

}  // namespace
}  // namespace nacre
