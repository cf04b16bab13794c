// Goal: whatever becomes of nodes, owners and the network between them, within what the redundancy
// takes, nothing acknowledged is lost, nothing is seen in half or after it was replaced, no two
// owners are acknowledged at once, and all works again soon after the faults end. And a seed
// replays exactly.
// Method: stories (tests/support/sim/sim_story.h), each of a seed and in a forked process of its
// own, with virtual time. NACRE_SIM_SEEDS says how many (400); `--seeds=N` and `--seed=S` run
// some without the rest of the tests, one alone with its event log. Many seeds end with a list of
// the named points (util/named_point.h) that none of them reached. `--flips`, `--scans`,
// `--splits`,
// `--small-rings`, `--followers`, `--families`, `--filters`, `--slow-repair` and `--stops` tell
// stories that have more of these.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/sim/sim_run.h"
#include "tests/support/sim/sim_story.h"
#include "util/clock.h"
#include "util/named_point.h"

namespace nacre::sim {
namespace {

constexpr uint64_t kSeeds = 200;
/// A part is not too much for a slow machine.
constexpr uint64_t kParts = 40;

/// Only a write without the log waits for one that is stuck there, and stories have none:
/// WriteCaseTest does. Nothing is mapped here: DBRepairTest has memory that ends.
constexpr std::array<std::string_view, 6> kPointsOfCases = {
    "write.given-up", "rebuild.memory-gone", "batch.", "keyspace.", "copy.", "reshaping."};

/// True if `argument` is `name` and a number.
bool Takes(std::string_view argument, std::string_view name, uint64_t* number) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const auto [end, error] =
      std::from_chars(argument.data(), argument.data() + argument.size(), *number);
  return error == std::errc() && end == argument.data() + argument.size();
}

void PrintFailure(const Outcome& outcome) {
  std::cout << "seed " << outcome.seed << " fails " << outcome.failure
            << "\nto replay it: ./run sim --seed=" << outcome.seed << "\n"
            << std::flush;
}

/// How much was simulated in how much time.
class Tally {
 public:
  void Add(const Outcome& outcome) {
    ++seeds_;
    failures_ += outcome.passed ? 0 : 1;
    virtual_seconds_ += static_cast<double>(outcome.virtual_nanos) * 1e-9;
    steps_ += outcome.steps;
    points_.resize(std::max(points_.size(), outcome.points.size()));
    for (size_t i = 0; i < outcome.points.size(); ++i) points_[i] += outcome.points[i];
  }
  void Print() const {
    const double real_seconds =
        static_cast<double>(Clock::System()->NowNanos() - begun_nanos_) * 1e-9;
    std::cout << std::fixed << std::setprecision(2) << seeds_ << " seeds, " << failures_
              << " failed; " << virtual_seconds_ / 3600 << " hours in " << real_seconds << " s ("
              << virtual_seconds_ / 3600 / real_seconds << " simulated hours per second), "
              << static_cast<double>(seeds_) / real_seconds << " seeds per second, "
              << static_cast<double>(steps_) * 1e-6 << " million steps\n"
              << std::flush;
  }
  /// Which named points were not reached; how many these are.
  size_t PrintPoints() const {
    size_t unreached = 0;
    const std::vector<const NamedPoint*> all = AllPoints();
    for (size_t i = 0; i < points_.size(); ++i) {
      const std::string_view name(all[i]->name);
      const bool elsewhere = std::any_of(kPointsOfCases.begin(), kPointsOfCases.end(),
                                         [=](auto point) { return name.starts_with(point); });
      if (points_[i] != 0 || elsewhere) continue;
      ++unreached;
      std::cout << "NOT REACHED: " << all[i]->name << " (" << all[i]->file << ":" << all[i]->line
                << ")\n";
    }
    return unreached;
  }
  uint64_t seeds() const { return seeds_; }
  uint64_t failures() const { return failures_; }

 private:
  const uint64_t begun_nanos_ = Clock::System()->NowNanos();
  uint64_t seeds_ = 0;
  uint64_t failures_ = 0;
  uint64_t steps_ = 0;
  std::vector<uint64_t> points_;  ///< How often each of AllPoints() was reached.
  double virtual_seconds_ = 0;
};

TEST(SimTest, ASeedReplaysExactly) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Outcome once = RunSeed(seed, TellStory);
    ASSERT_TRUE(once.passed) << once.failure;
    const Outcome again = RunSeed(seed, TellStory, {.ballast = 123'456});
    EXPECT_EQ(once.digest, again.digest);
    EXPECT_EQ(once.steps, again.steps);
    EXPECT_EQ(once.virtual_nanos, again.virtual_nanos);
    EXPECT_EQ(once.summary, again.summary);
  }
}

/// A part of the seeds, so that several processors may have some.
class SimStories : public testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Parts, SimStories, testing::Range<uint64_t>(0, kParts));

TEST_P(SimStories, EndWell) {
  uint64_t seeds = kSeeds;
  if (const char* text = std::getenv("NACRE_SIM_SEEDS"); text != nullptr) {
    ASSERT_TRUE(Takes(text, "", &seeds)) << "NACRE_SIM_SEEDS is no number: " << text;
  }
  const uint64_t each = (seeds + kParts - 1) / kParts;
  Tally tally;
  RunSeeds(1 + GetParam() * each, each, TellStory, {}, [&](const Outcome& outcome) {
    tally.Add(outcome);
    if (!outcome.passed) PrintFailure(outcome);
    return tally.failures() < 5;
  });
  tally.Print();
  EXPECT_EQ(tally.failures(), 0u);
}

int RunOne(uint64_t seed, const Scenario& stories) {
  const Outcome outcome = RunSeed(seed, stories, {.log = true});
  if (!outcome.passed) PrintFailure(outcome);
  std::cout << "seed " << seed << ": " << outcome.summary << "; digest " << std::hex
            << outcome.digest << std::dec << " after " << outcome.steps << " steps\n";
  return outcome.passed ? 0 : 1;
}

int RunMany(uint64_t first, uint64_t count, const Scenario& stories) {
  const RunOptions options{.jobs = static_cast<int>(std::thread::hardware_concurrency())};
  Tally tally;
  RunSeeds(first, count, stories, options, [&](const Outcome& outcome) {
    tally.Add(outcome);
    if (!outcome.passed) PrintFailure(outcome);
    if (tally.seeds() % kSeeds == 0) tally.Print();
    return tally.failures() < 20;
  });
  if (tally.seeds() % kSeeds != 0) tally.Print();
  // Fewer need not reach everything.
  const size_t unreached = count < kSeeds ? 0 : tally.PrintPoints();
  return tally.failures() == 0 && unreached == 0 ? 0 : 1;
}

}  // namespace
}  // namespace nacre::sim

int main(int argc, char** argv) {
  nacre::sim::FixAddresses(argv);
  uint64_t seeds = 0;
  uint64_t seed = 0;
  uint64_t first = 1;
  nacre::sim::StoryOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    options.many_flips |= argument == "--flips";
    options.many_scans |= argument == "--scans";
    options.many_splits |= argument == "--splits";
    options.small_rings |= argument == "--small-rings";
    options.many_followers |= argument == "--followers";
    options.many_families |= argument == "--families";
    options.many_stops |= argument == "--stops";
    options.heavy_tails |= argument == "--tails";
    options.one_family |= argument == "--one-family";
    options.filters |= argument == "--filters";
    options.slow_repair |= argument == "--slow-repair";
    nacre::sim::Takes(argv[i], "--seeds=", &seeds);
    nacre::sim::Takes(argv[i], "--seed=", &seed);
    nacre::sim::Takes(argv[i], "--first=", &first);
  }
  const auto stories = [=](nacre::sim::Scheduler* scheduler, uint64_t each) {
    return nacre::sim::TellStoryWith(options, scheduler, each);
  };
  if (seed != 0) return nacre::sim::RunOne(seed, stories);
  if (seeds != 0) return nacre::sim::RunMany(first, seeds, stories);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
