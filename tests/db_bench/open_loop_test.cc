// Goal: an open loop starts operations when they are to start, and a pause shows in the latencies
// of all operations that fell into it. Method: times of arrival against their rate and
// distribution; a loop whose operation sleeps, which may only make latencies longer than what is
// asked for; the distribution as text, read back.

#include "db_bench/open_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/cycle_clock.h"
#include "db_bench/op_budget.h"
#include "db_bench/report/latency_files.h"
#include "db_bench/report/op_recorder.h"
#include "tests/support/seed.h"
#include "util/clock.h"

namespace nacre::bench {
namespace {

BenchConfig Config(Arrivals arrivals, double ops_per_second, int threads = 1) {
  BenchConfig config;
  config.arrivals = arrivals;
  config.target_ops_per_second = ops_per_second;
  config.threads = threads;
  return config;
}

TEST(ArrivalTimesTest, ConstantGaps) {
  ArrivalTimes times(Config(Arrivals::kConstant, 1000, 4), 1);
  EXPECT_DOUBLE_EQ(times.Next(1), 0);
  EXPECT_DOUBLE_EQ(times.Next(1), 4e6);
  EXPECT_DOUBLE_EQ(times.Next(10), 8e6);
  EXPECT_DOUBLE_EQ(times.Next(1), 48e6);
}

TEST(ArrivalTimesTest, PoissonGapsAreExponential) {
  constexpr int kCount = 200'000;
  constexpr double kMean = 1e6;
  ArrivalTimes times(Config(Arrivals::kPoisson, 1000), TestSeed(1));
  double last = times.Next(1);
  EXPECT_EQ(last, 0);
  double sum = 0;
  // Shares of gaps below 0.1, 1 and 3 means.
  const std::vector<double> bounds = {0.1, 1, 3};
  std::vector<int> below(bounds.size());
  for (int i = 0; i < kCount; ++i) {
    const double next = times.Next(1);
    const double gap = (next - last) / kMean;
    ASSERT_GE(gap, 0);
    last = next;
    sum += gap;
    for (size_t j = 0; j < bounds.size(); ++j) below[j] += gap < bounds[j] ? 1 : 0;
  }
  const double deviation = 6 / std::sqrt(kCount);
  EXPECT_NEAR(sum / kCount, 1, deviation);
  for (size_t j = 0; j < bounds.size(); ++j) {
    EXPECT_NEAR(static_cast<double>(below[j]) / kCount, 1 - std::exp(-bounds[j]), deviation);
  }
}

TEST(ArrivalTimesTest, SeedReplays) {
  const BenchConfig config = Config(Arrivals::kPoisson, 1000);
  ArrivalTimes first(config, 3);
  ArrivalTimes same(config, 3);
  ArrivalTimes other(config, 4);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double time = first.Next(1);
    EXPECT_EQ(time, same.Next(1));
    differs = differs || time != other.Next(1);
  }
  EXPECT_TRUE(differs);
}

class OpenLoopTest : public testing::Test {
 protected:
  const CycleClock cycles_{Clock::System()};
  const std::atomic<bool> stop_{false};
  OpRecorder recorder_{{.clock = Clock::System(), .cycles = &cycles_, .sample_period = 1}};
};

TEST_F(OpenLoopTest, NothingStartsEarly) {
  constexpr uint64_t kOps = 50;
  OpenLoop loop(Config(Arrivals::kConstant, 1000), 1, &cycles_, Clock::System(), &stop_,
                &recorder_);
  OpBudget budget(Clock::System(), &stop_, kOps, 0, 1000, &loop);
  recorder_.Start();
  while (budget.Take() != 0) recorder_.FinishedOps(1, OpType::kRead);
  recorder_.Stop();
  EXPECT_EQ(recorder_.latencies().count(), kOps);
  // The two clocks differ by less than a hundredth.
  EXPECT_GT(recorder_.finish_nanos() - recorder_.start_nanos(), (kOps - 1) * 990'000);
}

TEST_F(OpenLoopTest, PauseShowsInAllThatFellIntoIt) {
  constexpr uint64_t kOps = 1000;
  OpenLoop loop(Config(Arrivals::kConstant, 20'000), 1, &cycles_, Clock::System(), &stop_,
                &recorder_);
  OpBudget budget(Clock::System(), &stop_, kOps, 0, 1000, &loop);
  recorder_.Start();
  for (uint64_t i = 0; budget.Take() != 0; ++i) {
    if (i == 0) Clock::System()->SleepFor(std::chrono::milliseconds(50));
    recorder_.FinishedOps(1, OpType::kRead);
  }
  recorder_.Stop();
  // All 1,000 were to start in the 50 ms: the first waited 50 ms, and the last not at all.
  EXPECT_EQ(recorder_.latencies().count(), kOps);
  EXPECT_GT(recorder_.latencies().PercentileNanos(50), 24e6);
  EXPECT_GT(recorder_.latencies().PercentileNanos(90), 44e6);
  EXPECT_GT(recorder_.latencies(OpType::kRead)->max_nanos(), 49'000'000u);
  EXPECT_EQ(recorder_.latencies(OpType::kWrite), nullptr);
}

TEST_F(OpenLoopTest, StopEndsAWait) {
  const std::atomic<bool> stop{true};
  OpenLoop loop(Config(Arrivals::kConstant, 0.001), 1, &cycles_, Clock::System(), &stop,
                &recorder_);
  OpBudget budget(Clock::System(), &stop, 10, 0, 1000, &loop);
  EXPECT_EQ(budget.Take(), 0u);
  EXPECT_EQ(budget.Take(), 0u);
}

TEST(HdrTextTest, HasEachPercentileOnce) {
  LatencyCounts counts;
  for (uint64_t i = 1; i <= 1000; ++i) counts.Add(i * 1000);
  std::istringstream lines(HdrText(counts));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  double value = 0;
  double share = 0;
  double last_share = 0;
  unsigned long total = 0;
  while (std::getline(lines, line) && line[0] != '#') {
    ASSERT_GE(std::sscanf(line.c_str(), "%lf %lf %lu", &value, &share, &total), 3) << line;
    EXPECT_GT(share, last_share);
    EXPECT_NEAR(value, share * 1000, share * 1000 / 64 + 0.1);
    EXPECT_DOUBLE_EQ(static_cast<double>(total) / 1000, share);
    last_share = share;
  }
  EXPECT_EQ(value, 1000);
  EXPECT_EQ(share, 1);
  double mean = 0;
  double deviation = 0;
  ASSERT_EQ(std::sscanf(line.c_str(), "#[Mean = %lf, StdDeviation = %lf]", &mean, &deviation), 2);
  EXPECT_NEAR(mean, 500.5, 2);
  EXPECT_NEAR(deviation, 288.7, 2);
  std::getline(lines, line);
  EXPECT_EQ(line, "#[Max     =     1000.000, Total count    =         1000]");
}

}  // namespace
}  // namespace nacre::bench
