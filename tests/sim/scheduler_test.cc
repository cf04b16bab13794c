// Goal: simulated threads run one at a time in an order that the seed decides, on virtual time;
// processes end and stand still as they are told to; and what cannot go on is a failure.
// Method: small scenarios, each in a forked process, which say in a few words what they saw.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sim/sim_run.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Three threads take turns by a mutex; the order of their turns.
std::string TakeTurns(Scheduler* /*scheduler*/, uint64_t /*seed*/) {
  Mutex mutex;
  std::string order;
  std::vector<Thread> threads;
  for (const char name : {'a', 'b', 'c'}) {
    threads.emplace_back("turns", [&mutex, &order, name] {
      for (int i = 0; i < 20; ++i) {
        MutexLock lock(&mutex);
        order += name;
      }
    });
  }
  for (Thread& thread : threads) thread.Join();
  return order;
}

TEST(SchedulerTest, TheSeedDecidesTheOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Outcome once = RunSeed(seed, TakeTurns);
    const Outcome again = RunSeed(seed, TakeTurns, {.ballast = 4321});
    ASSERT_TRUE(once.passed) << once.failure;
    EXPECT_EQ(once.summary.size(), 60u);
    EXPECT_EQ(once.summary, again.summary);
    EXPECT_EQ(once.digest, again.digest);
    orders.insert(once.summary);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(SchedulerTest, SleepTakesVirtualTimeOnly) {
  const Outcome outcome =
      RunSeed(1,
              [](Scheduler*, uint64_t) {
                const uint64_t before = Clock::System()->NowNanos();
                Clock::System()->SleepFor(hours(20));
                const uint64_t passed = Clock::System()->NowNanos() - before;
                return std::to_string(
                    passed / static_cast<uint64_t>(std::chrono::nanoseconds(hours(1)).count()));
              },
              {.nanos_max = ~uint64_t{0}, .seconds_max = 20});
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_EQ(outcome.summary, "20");
}

TEST(SchedulerTest, WhatGoesOnForTooLongIsAFailure) {
  const Outcome outcome = RunSeed(1, [](Scheduler*, uint64_t) {
    Clock::System()->SleepFor(hours(2));
    return std::string();
  });
  EXPECT_FALSE(outcome.passed);
  EXPECT_NE(outcome.failure.find("too long"), std::string::npos) << outcome.failure;
}

TEST(SchedulerTest, ADeadlockIsAFailureThatNamesThePlaces) {
  const Outcome outcome = RunSeed(1, [](Scheduler*, uint64_t) {
    Mutex first;
    Mutex second;
    const auto lock_both = [](Mutex* one, Mutex* other) {
      MutexLock outer(one);
      Clock::System()->SleepFor(milliseconds(1));
      MutexLock inner(other);
    };
    Thread thread("crossing", [&] { lock_both(&first, &second); });
    lock_both(&second, &first);
    thread.Join();
    return std::string();
  });
  EXPECT_FALSE(outcome.passed);
  EXPECT_NE(outcome.failure.find("nobody can go on"), std::string::npos) << outcome.failure;
  EXPECT_NE(outcome.failure.find("crossing         a mutex"), std::string::npos) << outcome.failure;
}

TEST(SchedulerTest, AWaitEndsByASignalOrItsTimeout) {
  const Outcome outcome = RunSeed(1, [](Scheduler*, uint64_t) {
    Mutex mutex;
    CondVar changed(&mutex);
    bool set = false;
    std::string seen;
    MutexLock lock(&mutex);
    seen += changed.WaitFor(milliseconds(5)) ? "signal " : "timeout ";
    Thread thread("setter", [&] {
      MutexLock inner(&mutex);
      set = true;
      changed.Signal();
    });
    while (!set) {
      if (!changed.WaitFor(seconds(60))) break;
    }
    seen += set ? "set" : "lost";
    MutexUnlock unlock(&mutex);
    thread.Join();
    return seen;
  });
  EXPECT_EQ(outcome.summary, "timeout set") << outcome.failure;
}

/// How often a thread of another process counts before, while and after something is done to it.
Outcome Count(const std::function<void(Scheduler*, ProcessId)>& begin,
              const std::function<void(Scheduler*, ProcessId)>& end) {
  return RunSeed(1, [&](Scheduler* scheduler, uint64_t) {
    static int count = 0;
    const ProcessId process = scheduler->NewProcess("other");
    static Thread thread;
    thread = scheduler->Start(process, "counter", [] {
      while (true) {
        ++count;
        Clock::System()->SleepFor(milliseconds(10));
      }
    });
    const auto count_for_a_second = [] {
      const int before = count;
      Clock::System()->SleepFor(seconds(1));
      return count == before ? "stands " : "counts ";
    };
    std::string seen = count_for_a_second();
    begin(scheduler, process);
    seen += count_for_a_second();
    end(scheduler, process);
    return seen + count_for_a_second();
  });
}

TEST(SchedulerTest, AStoppedProcessGoesOnWhenItIsContinued) {
  const Outcome outcome =
      Count([](Scheduler* scheduler, ProcessId process) { scheduler->Stop(process); },
            [](Scheduler* scheduler, ProcessId process) { scheduler->Continue(process); });
  EXPECT_EQ(outcome.summary, "counts stands counts ") << outcome.failure;
}

TEST(SchedulerTest, AKilledProcessDoesNot) {
  const Outcome outcome =
      Count([](Scheduler* scheduler, ProcessId process) { scheduler->Kill(process); },
            [](Scheduler* scheduler, ProcessId process) { scheduler->Kill(process); });
  EXPECT_EQ(outcome.summary, "counts stands stands ") << outcome.failure;
}

TEST(SchedulerTest, ClocksOfProcessesDriftAndLeap) {
  const Outcome outcome = RunSeed(1, [](Scheduler* scheduler, uint64_t) {
    const auto local_seconds = [] {
      const uint64_t before = Clock::System()->NowNanos();
      Clock::System()->SleepFor(milliseconds(1));
      return before / 1'000'000'000;
    };
    const uint64_t before = local_seconds();
    scheduler->Advance(scheduler->process(), seconds(100));
    const uint64_t leapt = local_seconds();
    scheduler->SetDrift(scheduler->process(), 1'000'000);
    const uint64_t true_before = scheduler->TrueNanos();
    Clock::System()->SleepFor(seconds(100));
    const uint64_t passed = (scheduler->TrueNanos() - true_before) / 1'000'000'000;
    return std::to_string(leapt - before) + " " + std::to_string(passed);
  });
  EXPECT_EQ(outcome.summary, "100 50") << outcome.failure;
}

TEST(SchedulerTest, ACrashEndsItsSeedOnly) {
  const Outcome crashed = RunSeed(1, [](Scheduler*, uint64_t) {
    std::raise(SIGKILL);
    return std::string();
  });
  EXPECT_FALSE(crashed.passed);
  EXPECT_NE(crashed.failure.find("Killed"), std::string::npos) << crashed.failure;
  EXPECT_TRUE(RunSeed(2, TakeTurns).passed);
}

}  // namespace
}  // namespace nacre::sim
