#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// What became of one seed.
struct Outcome {
  uint64_t seed = 0;
  bool passed = false;
  uint64_t digest = 0;         ///< Digest of all that happened, in order.
  uint64_t steps = 0;          ///< Scheduling points.
  uint64_t virtual_nanos = 0;  ///< That passed in the simulation.
  std::string failure{};       ///< Why it did not pass.
  std::string summary{};       ///< What the scenario says of itself.
  /// How often each of AllPoints() was reached.
  std::vector<uint32_t> points{};
};

/// What is called at each named point that a thread reaches (util/named_point.h), in the
/// simulation; null: nothing. A scenario may set it; a point is a scheduling point in any case.
using PointVisitor = std::function<void(const char* name)>;
void SetPointVisitor(PointVisitor visitor);

/// What a scenario is given: it runs as the first thread of the simulation, and ends by returning a
/// summary, or by `Scheduler::Fail`.
using Scenario = std::function<std::string(Scheduler* scheduler, uint64_t seed)>;

struct RunOptions {
  int jobs = 1;  ///< Seeds at once.
  /// The event log goes to standard error.
  bool log = false;
  /// Bytes that each run has allocated before it begins: what depends on addresses shows.
  size_t ballast = 0;
  /// Virtual time that a seed may take.
  uint64_t nanos_max = SchedulerOptions().nanos_max;
  /// Real time that a seed may take.
  int seconds_max = 120;
};

/// Runs each seed in a process of its own, forked from this one, which has a single thread: so each
/// finds all static objects as they were, and ends whatever it has left behind. Calls `each` in the
/// order in which they end; false ends it all.
void RunSeeds(uint64_t first, uint64_t count, const Scenario& scenario, const RunOptions& options,
              const std::function<bool(const Outcome&)>& each);

/// The same for one.
Outcome RunSeed(uint64_t seed, const Scenario& scenario, const RunOptions& options = {});

/// Executes this binary once more without the randomness of addresses, if there is any, so that a
/// seed finds the same ones in each run.
void FixAddresses(char** argv);

}  // namespace nacre::sim
