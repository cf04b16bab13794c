// Goal: a thread's PerfContext counts what its level says, its own operations only, and nothing
// while it is off.
// Method: the steps that operations take, by hand, in two threads.

#include "nacre/perf_context.h"

#include <gtest/gtest.h>

#include <thread>

#include "util/perf_step.h"

namespace nacre {
namespace {

class PerfContextTest : public testing::Test {
 protected:
  void SetUp() override { get_perf_context()->Reset(); }
  ~PerfContextTest() override { SetPerfLevel(kDisable); }

  static void Step() {
    CountPerf(&PerfContext::remote_read_count, 3);
    const PerfTimer timer(&PerfContext::write_wal_time);
    const uint64_t start = perf_internal::NowNanos();
    while (perf_internal::NowNanos() == start) {
    }
  }
};

TEST_F(PerfContextTest, EachLevelCountsMore) {
  EXPECT_EQ(GetPerfLevel(), kDisable);
  Step();
  EXPECT_EQ(get_perf_context()->remote_read_count, 0u);
  SetPerfLevel(kEnableCount);
  Step();
  EXPECT_EQ(get_perf_context()->remote_read_count, 3u);
  EXPECT_EQ(get_perf_context()->write_wal_time, 0u);
  SetPerfLevel(kEnableTimeExceptForMutex);
  Step();
  EXPECT_EQ(get_perf_context()->remote_read_count, 6u);
  EXPECT_GT(get_perf_context()->write_wal_time, 0u);
  get_perf_context()->Reset();
  EXPECT_EQ(get_perf_context()->remote_read_count, 0u);
  EXPECT_EQ(get_perf_context()->write_wal_time, 0u);
}

TEST_F(PerfContextTest, WhatIsNoLevelChangesNothing) {
  SetPerfLevel(kEnableCount);
  SetPerfLevel(kOutOfBounds);
  EXPECT_EQ(GetPerfLevel(), kEnableCount);
  SetPerfLevel(kUninitialized);
  EXPECT_EQ(GetPerfLevel(), kEnableCount);
}

TEST_F(PerfContextTest, ATimerThatWasStoppedAddsOnce) {
  SetPerfLevel(kEnableTime);
  uint64_t once = 0;
  {
    PerfTimer timer(&PerfContext::write_wal_time);
    timer.Stop();
    once = get_perf_context()->write_wal_time;
    const uint64_t start = perf_internal::NowNanos();
    while (perf_internal::NowNanos() == start) {
    }
  }
  EXPECT_EQ(get_perf_context()->write_wal_time, once);
}

TEST_F(PerfContextTest, EachThreadHasItsOwn) {
  SetPerfLevel(kEnableCount);
  Step();
  std::thread([] {
    EXPECT_EQ(GetPerfLevel(), kDisable);
    EXPECT_EQ(get_perf_context()->remote_read_count, 0u);
    SetPerfLevel(kEnableTime);
    Step();
  }).join();
  EXPECT_EQ(GetPerfLevel(), kEnableCount);
  EXPECT_EQ(get_perf_context()->remote_read_count, 3u);
}

TEST_F(PerfContextTest, Text) {
  PerfContext context;
  EXPECT_EQ(context.ToString(/*exclude_zero_counters=*/true), "");
  context.get_read_bytes = 7;
  context.remote_read_count = 2;
  EXPECT_EQ(context.ToString(/*exclude_zero_counters=*/true),
            "get_read_bytes = 7, remote_read_count = 2");
  const std::string all = context.ToString();
  EXPECT_NE(all.find("internal_key_skipped_count = 0, "), std::string::npos) << all;
}

}  // namespace
}  // namespace nacre
