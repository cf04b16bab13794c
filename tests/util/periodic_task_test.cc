// Goal: the work is done again and again until Stop, and Wake does not wait for the rest to end.
// Method: work that counts, with rests that are far longer or far shorter than the test.

#include "util/threads/periodic_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "util/clock.h"
#include "util/threads/task_threads.h"

namespace nacre {
namespace {

/// Returns once `done` says so; a test that hangs here has failed.
template <typename Done>
void Await(const Done& done) {
  while (!done()) Clock::System()->SleepFor(std::chrono::milliseconds(1));
}

constexpr std::chrono::hours kLong{1};
constexpr std::chrono::milliseconds kShort{1};

TEST(PeriodicTaskTest, WorksAgainAfterEachRestAlsoIfItThrows) {
  std::atomic<int> done{0};
  TaskThreads threads;
  PeriodicTask task;
  task.Start({&threads}, "test", kShort, PeriodicTask::Begin::kWithRest, [&done] {
    ++done;
    throw std::runtime_error("this once");
  });
  Await([&done] { return done > 3; });
  task.Stop();
  const int last = done;
  task.Stop();
  EXPECT_EQ(done, last);
}

TEST(PeriodicTaskTest, BeginsAsItIsTold) {
  std::atomic<int> at_once{0};
  std::atomic<int> later{0};
  TaskThreads threads;
  PeriodicTask works;
  PeriodicTask rests;
  works.Start({&threads}, "works", kLong, PeriodicTask::Begin::kWithWork,
              [&at_once] { ++at_once; });
  rests.Start({&threads}, "rests", kLong, PeriodicTask::Begin::kWithRest, [&later] { ++later; });
  Await([&at_once] { return at_once == 1; });
  EXPECT_EQ(later, 0);
  Await([&] {
    rests.Wake();
    return later > 0;
  });
  EXPECT_EQ(at_once, 1);
}

TEST(PeriodicTaskTest, LongWorkIsToldToStop) {
  std::atomic<bool> begun{false};
  TaskThreads threads;
  PeriodicTask task;
  task.Start({&threads}, "test", kLong, PeriodicTask::Begin::kWithWork, [&] {
    begun = true;
    while (!task.stopping()) Clock::System()->SleepFor(kShort);
  });
  Await([&begun] { return begun.load(); });
  task.Stop();
  EXPECT_TRUE(task.stopping());
}

TEST(PeriodicTaskTest, AWakeWhileItWorksHasItWorkOnceMore) {
  TaskThreads threads;
  std::atomic<int> begun{0};
  std::atomic<bool> may_end{false};
  PeriodicTask task;
  task.Start({&threads}, "test", kLong, PeriodicTask::Begin::kWithWork, [&] {
    ++begun;
    while (!may_end) Clock::System()->SleepFor(kShort);
  });
  Await([&begun] { return begun == 1; });
  task.Wake();
  may_end = true;
  Await([&begun] { return begun == 2; });
}

TEST(PeriodicTaskTest, OneThatWaitsForItsTurnIsStoppedAtOnce) {
  TaskThreads threads;
  const std::unique_ptr<Executor> turns = threads.NewExecutor(1, "turns");
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> second{false};
  turns->Schedule([&] {
    begun = true;
    while (!may_end) Clock::System()->SleepFor(kShort);
  });
  Await([&begun] { return begun.load(); });
  {
    PeriodicTask task;
    task.Start({&threads, turns.get()}, "test", kLong, PeriodicTask::Begin::kWithWork,
               [&second] { second = true; });
  }
  may_end = true;
  std::atomic<bool> third{false};
  turns->Schedule([&third] { third = true; });
  Await([&third] { return third.load(); });
  EXPECT_FALSE(second);
}

TEST(PeriodicTaskTest, ManyThatRestTakeFewThreads) {
  constexpr int kTasks = 200;
  TaskThreads threads;
  std::atomic<int> done{0};
  std::vector<std::unique_ptr<PeriodicTask>> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(std::make_unique<PeriodicTask>());
    tasks.back()->Start({&threads}, "test", kShort, PeriodicTask::Begin::kWithRest,
                        [&done] { ++done; });
  }
  Await([&done] { return done > 20 * kTasks; });
  tasks.clear();
  EXPECT_LT(threads.most(), size_t{kTasks / 2});
}

TEST(PeriodicTaskTest, StopWithoutStartDoesNothing) {
  TaskThreads threads;
  PeriodicTask task;
  task.Stop();
  EXPECT_TRUE(task.stopping());
}

}  // namespace
}  // namespace nacre
