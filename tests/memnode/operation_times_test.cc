// Goal: times of operations are told a quarter too long at most, whatever their size, and counts
// never wrap around while several threads add to them and age them.
// Method: single times around each edge of a step, many random ones against a sorted list, and
// threads.

#include "pool/connect/operation_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// What a lone operation is told to have taken.
nanoseconds Told(nanoseconds took) {
  OperationTimes times;
  times.Add(took);
  EXPECT_EQ(times.count(), 1u);
  EXPECT_EQ(times.Within(0.01), times.Within(1));
  return times.Within(0.5);
}

void ExpectClose(nanoseconds told, nanoseconds took) {
  EXPECT_GT(told, took);
  EXPECT_LE(told, std::max<nanoseconds>(took + took / 4, took + microseconds(1)));
}

TEST(OperationTimesTest, NothingTakesNoTime) {
  const OperationTimes times;
  EXPECT_EQ(times.count(), 0u);
  EXPECT_EQ(times.Within(0.5), nanoseconds(0));
}

TEST(OperationTimesTest, EdgesOfStepsAreToldWithinAQuarter) {
  for (int power = 0; power < 26; ++power) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const nanoseconds edge = microseconds((4 + quarter) << power) / 4;
      for (const nanoseconds took : {edge - nanoseconds(1), edge, edge + nanoseconds(1)}) {
        ExpectClose(Told(took), took);
      }
    }
  }
  EXPECT_EQ(Told(microseconds(4)), microseconds(5));
  EXPECT_EQ(Told(microseconds(5) - nanoseconds(1)), microseconds(5));
  EXPECT_EQ(Told(microseconds(5)), microseconds(6));
  EXPECT_EQ(Told(microseconds(8)), microseconds(10));
}

TEST(OperationTimesTest, WhatIsOutOfBoundsCountsInTheLastStep) {
  EXPECT_EQ(Told(nanoseconds(-1)), microseconds(1));
  EXPECT_EQ(Told(nanoseconds(0)), microseconds(1));
  EXPECT_EQ(Told(std::chrono::hours(1)), Told(std::chrono::hours(100)));
  EXPECT_GE(Told(std::chrono::hours(1)), std::chrono::minutes(1));
}

TEST(OperationTimesTest, SharesAreThoseOfASortedList) {
  Random random(TestSeed(811));
  OperationTimes times;
  std::vector<nanoseconds> sorted;
  for (int i = 0; i < 10'000; ++i) {
    // As many of each order of magnitude.
    sorted.emplace_back(random.Uniform(uint64_t{1000} << random.Uniform(20)));
    times.Add(sorted.back());
  }
  std::sort(sorted.begin(), sorted.end());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto ended =
        static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1;
    ExpectClose(times.Within(share), sorted[ended]);
  }
}

TEST(OperationTimesTest, WhatIsOldCountsForLess) {
  OperationTimes times;
  for (int i = 0; i < 1000; ++i) times.Add(microseconds(1000));
  times.Age();
  EXPECT_EQ(times.count(), 500u);
  for (int i = 0; i < 600; ++i) times.Add(microseconds(10));
  ExpectClose(times.Within(0.5), microseconds(10));
  ExpectClose(times.Within(0.9), microseconds(1000));
  for (int i = 0; i < 20; ++i) times.Age();
  EXPECT_EQ(times.count(), 0u);
}

TEST(OperationTimesTest, ThreadsThatAgeAtOnceTakeNoMoreThanThereIs) {
  constexpr int kRounds = 20'000;
  OperationTimes times;
  std::atomic<int> arrived{0};
  const auto age = [&] {
    for (int round = 1; round <= kRounds; ++round) {
      times.Add(microseconds(10));
      arrived.fetch_add(1);
      while (arrived.load() < 2 * round) std::this_thread::yield();
      times.Age();
      // Two were added in each round, of which half stays at most, and half of that.
      if (times.count() > 4) break;
    }
    arrived.store(2 * kRounds);
  };
  std::thread other(age);
  age();
  other.join();
  EXPECT_LE(times.count(), 4u);
}

TEST(OperationTimesTest, WhatIsAddedWhileOthersAgeIsCounted) {
  constexpr uint64_t kAdded = 100'000;
  OperationTimes times;
  std::atomic<int> adding{2};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < kAdded; ++n) times.Add(microseconds(n % 64));
      adding.fetch_sub(1);
    });
  }
  uint64_t most = 0;
  while (adding.load() > 0) {
    times.Age();
    most = std::max(most, times.count());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2 * kAdded);
  EXPECT_LE(times.count(), 2 * kAdded);
}

}  // namespace
}  // namespace nacre::pool
