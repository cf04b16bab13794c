// Goal: what is counted and timed is right: percentiles, limits of a run, JSON text.
// Method: against exact percentiles of seeded samples; a clock that the test moves.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "db_bench/cycle_clock.h"
#include "db_bench/op_budget.h"
#include "db_bench/report/json_report.h"
#include "db_bench/report/latency.h"
#include "db_bench/report/op_recorder.h"
#include "db_bench/report/report.h"
#include "tests/support/seed.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

class ManualClock final : public Clock {
 public:
  uint64_t NowNanos() override { return nanos_; }
  void SleepFor(std::chrono::nanoseconds duration) override {
    nanos_ += static_cast<uint64_t>(duration.count());
  }

 private:
  uint64_t nanos_ = 1;
};

TEST(LatencyCountsTest, EmptyIsZero) {
  EXPECT_EQ(LatencyCounts().PercentileNanos(50), 0);
  EXPECT_EQ(LatencyCounts().PercentileNanos(99.9), 0);
}

TEST(LatencyCountsTest, WithinABucketOfTheExactPercentile) {
  Random random(TestSeed(1));
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> samples;
    LatencyCounts first;
    LatencyCounts second;
    const size_t count = 1 + random.Uniform(5000);
    for (size_t i = 0; i < count; ++i) {
      samples.push_back(random.Skewed(40));
      (random.OneIn(2) ? first : second).Add(samples.back());
    }
    std::sort(samples.begin(), samples.end());
    first.Merge(second);
    ASSERT_EQ(first.count(), count);
    for (const double p : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const double rank = std::max(1.0, static_cast<double>(count) * p / 100);
      const auto index = static_cast<size_t>(std::max(0.0, std::ceil(rank) - 1));
      const auto exact = static_cast<double>(samples[std::min(index, count - 1)]);
      EXPECT_NEAR(first.PercentileNanos(p), exact, exact / 32 + 0.5) << p;
    }
  }
}

TEST(LatencyCountsTest, TakesWhatIsBeyondItsRange) {
  LatencyCounts counts;
  counts.Add(UINT64_MAX);
  counts.Add(0);
  EXPECT_EQ(counts.count(), 2u);
  EXPECT_EQ(counts.PercentileNanos(1), 0);
  EXPECT_GT(counts.PercentileNanos(99), 1e12);
}

TEST(OpBudgetTest, CountsExactlyAndCutsTheLastBatch) {
  ManualClock clock;
  const std::atomic<bool> stop{false};
  OpBudget budget(&clock, &stop, 25, 0, 1000);
  EXPECT_EQ(budget.Take(10), 10u);
  EXPECT_EQ(budget.Take(10), 10u);
  EXPECT_EQ(budget.Take(10), 5u);
  EXPECT_EQ(budget.Take(10), 0u);
  OpBudget none(&clock, &stop, 0, 0, 1000);
  EXPECT_EQ(none.Take(), 0u);
}

TEST(OpBudgetTest, TimeDecidesAloneAndIsLookedAtNowAndThen) {
  ManualClock clock;
  const std::atomic<bool> stop{false};
  OpBudget budget(&clock, &stop, 1, 2, 100);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(budget.Take(), 1u);
  clock.SleepFor(std::chrono::seconds(2));
  uint64_t after = 0;
  while (budget.Take() != 0) ++after;
  EXPECT_LE(after, 100u);
  EXPECT_EQ(budget.Take(1000), 0u);
}

TEST(OpBudgetTest, BatchLargerThanTheIntervalBetweenChecks) {
  ManualClock clock;
  const std::atomic<bool> stop{false};
  OpBudget budget(&clock, &stop, 1, 2, 10);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(budget.Take(1000), 1000u);
  clock.SleepFor(std::chrono::seconds(2));
  EXPECT_EQ(budget.Take(1000), 0u);
}

TEST(OpBudgetTest, StopEndsIt) {
  ManualClock clock;
  std::atomic<bool> stop{false};
  OpBudget budget(&clock, &stop, 1000, 0, 1000);
  EXPECT_EQ(budget.Take(), 1u);
  stop = true;
  EXPECT_EQ(budget.Take(), 0u);
}

TEST(OpRecorderTest, CountsAllAndTimesOneInAPeriod) {
  const CycleClock cycles(Clock::System());
  for (const uint64_t period : {0, 1, 2, 17}) {
    OpRecorder recorder({.clock = Clock::System(), .cycles = &cycles, .sample_period = period});
    recorder.Start();
    for (int i = 0; i < 1700; ++i) recorder.FinishedOps(2, OpType::kRead);
    recorder.Stop();
    EXPECT_EQ(recorder.done(), 3400u);
    const double expected = period == 0 ? 0 : 1700.0 / static_cast<double>(period);
    EXPECT_NEAR(static_cast<double>(recorder.latencies().count()), expected, 1) << period;
    EXPECT_GE(recorder.finish_nanos(), recorder.start_nanos());
    EXPECT_EQ(recorder.histogram(OpType::kRead), nullptr);
  }
}

TEST(OpRecorderTest, HistogramsByType) {
  const CycleClock cycles(Clock::System());
  OpRecorder recorder(
      {.clock = Clock::System(), .cycles = &cycles, .sample_period = 1, .histogram = true});
  recorder.Start();
  for (int i = 0; i < 30; ++i) recorder.FinishedOps(1, OpType::kRead);
  for (int i = 0; i < 5; ++i) recorder.FinishedOps(1, OpType::kWrite);
  recorder.Stop();
  EXPECT_EQ(recorder.histogram(OpType::kRead)->count(), 30u);
  EXPECT_EQ(recorder.histogram(OpType::kWrite)->count(), 5u);
  EXPECT_EQ(recorder.histogram(OpType::kSeek), nullptr);
}

TEST(CycleClockTest, AgreesWithTheClock) {
  const CycleClock cycles(Clock::System());
  const uint64_t ticks = cycles.Now();
  const uint64_t nanos = Clock::System()->NowNanos();
  Clock::System()->SleepFor(std::chrono::milliseconds(50));
  const uint64_t nanos_passed = Clock::System()->NowNanos() - nanos;
  const uint64_t measured = cycles.ToNanos(cycles.Now() - ticks);
  // Loose: the thread may be put aside between the two looks.
  EXPECT_GT(measured, nanos_passed / 2);
}

TEST(JsonReportTest, StringsAreEscaped) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x7f\xff"), R"("a\"b\\c\u000a\u007f\u00ff")");
}

TEST(ReportTest, NotesAsInRocksDB) {
  BenchmarkResult result;
  result.ops = 10;
  result.lookups = 9;
  result.found = 4;
  EXPECT_EQ(NoteText(result), "");
  result.note = ResultNote::kFound;
  EXPECT_EQ(NoteText(result), "(4 of 9 found)");
  result.note = ResultNote::kMixed;
  EXPECT_EQ(NoteText(result), "( reads:9 writes:1 total:10 found:4)");
}

}  // namespace
}  // namespace nacre::bench
