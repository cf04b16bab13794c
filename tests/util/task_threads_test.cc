// Goal: an executor runs every accepted task exactly once, in the order of acceptance when it runs
// one at a time, as many at once as asked for, and drains before it ends; no task of shared threads
// waits for the end of another executor's, and they end when there is nothing to do.
// Method: counting tasks, tasks that wait for one another, tasks that schedule tasks.

#include "util/threads/task_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "util/clock.h"

namespace nacre {
namespace {

TEST(TaskThreadsTest, RunsAllBeforeItEnds) {
  TaskThreads threads;
  std::atomic<int> ran = 0;
  {
    const auto pool = threads.NewExecutor(3, "test");
    for (int i = 0; i < 1000; ++i) pool->Schedule([&ran] { ++ran; });
  }
  EXPECT_EQ(1000, ran);
}

TEST(TaskThreadsTest, OneThreadKeepsTheOrder) {
  TaskThreads threads;
  std::vector<int> order;
  {
    const auto pool = threads.NewExecutor(1, "test");
    for (int i = 0; i < 100; ++i) pool->Schedule([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(100U, order.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(i, order[static_cast<size_t>(i)]);
}

TEST(TaskThreadsTest, RunsAsManyAtOnceAsItMay) {
  TaskThreads threads;
  constexpr int kThreads = 4;
  std::barrier together(kThreads);
  std::atomic<int> ran = 0;
  {
    const auto pool = threads.NewExecutor(kThreads, "test");
    for (int i = 0; i < kThreads; ++i) {
      pool->Schedule([&] {
        together.arrive_and_wait();  // Would hang if fewer ran at once.
        ++ran;
      });
    }
  }
  EXPECT_EQ(kThreads, ran);
}

TEST(TaskThreadsTest, GrowsAndDoesNotShrink) {
  TaskThreads threads;
  constexpr int kThreads = 3;
  std::barrier together(kThreads);
  std::atomic<int> ran = 0;
  {
    const auto pool = threads.NewExecutor(1, "test");
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kThreads; ++i) {
        pool->Schedule([&] {
          together.arrive_and_wait();  // The first ones are waiting already.
          ++ran;
        });
      }
      pool->Grow(round == 0 ? kThreads : 1);
    }
  }
  EXPECT_EQ(2 * kThreads, ran);
}

TEST(TaskThreadsTest, TasksMayScheduleTasksUntilTheEnd) {
  TaskThreads threads;
  std::atomic<int> ran = 0;
  {
    const auto pool = threads.NewExecutor(2, "test");
    std::function<void(int)> chain = [&](int left) {
      ++ran;
      if (left > 0) pool->Schedule([&chain, left] { chain(left - 1); });
    };
    pool->Schedule([&chain] { chain(50); });
    while (ran < 51) std::this_thread::yield();
  }
  EXPECT_EQ(51, ran);

  // The same, cut short by the end of the pool: what is accepted is still run.
  ran = 0;
  Executor* raw = nullptr;
  {
    const auto pool = threads.NewExecutor(2, "test");
    raw = pool.get();
    std::function<void(int)>* chain = new std::function<void(int)>;
    *chain = [&ran, raw, chain](int left) {
      ++ran;
      if (left > 0) {
        raw->Schedule([chain, left] { (*chain)(left - 1); });
      } else {
        delete chain;
      }
    };
    pool->Schedule([chain] { (*chain)(50); });
  }
  EXPECT_EQ(51, ran);
}

TEST(TaskThreadsTest, SchedulesFromManyThreads) {
  TaskThreads threads;
  std::atomic<int> ran = 0;
  {
    const auto pool = threads.NewExecutor(2, "test");
    std::vector<std::thread> callers;
    callers.reserve(4);
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&] {
        for (int i = 0; i < 500; ++i) pool->Schedule([&ran] { ++ran; });
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_EQ(2000, ran);
}

TEST(TaskThreadsTest, WhatATaskCapturedDiesWithIt) {
  TaskThreads threads;
  const auto pool = threads.NewExecutor(1, "test");
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  std::atomic<bool> next_ran = false;
  pool->Schedule([captured = std::move(captured)] {});
  pool->Schedule([&next_ran] { next_ran = true; });
  while (!next_ran) std::this_thread::yield();
  EXPECT_TRUE(watch.expired());
}

TEST(TaskThreadsTest, ThreadsBearItsNameMeanwhile) {
  TaskThreads threads;
  std::string name;
  {
    const auto pool = threads.NewExecutor(1, "a-name-too-long-for-linux");
    pool->Schedule([&name] {
      char buffer[64] = {};
      ::pthread_getname_np(::pthread_self(), buffer, sizeof(buffer));
      name = buffer;
    });
  }
  EXPECT_EQ("a-name-too-long", name);
}

TEST(TaskThreadsTest, TasksOfDifferentExecutorsDoNotWaitForOneAnother) {
  constexpr int kExecutors = 40;
  TaskThreads threads;
  std::barrier together(kExecutors);
  std::vector<std::unique_ptr<Executor>> executors;
  for (int i = 0; i < kExecutors; ++i) {
    executors.push_back(threads.NewExecutor(1, "test"));
    executors.back()->Schedule([&together] { together.arrive_and_wait(); });
  }
  executors.clear();
  EXPECT_EQ(size_t{kExecutors}, threads.most());
}

TEST(TaskThreadsTest, ThreadsServeAgainAndEndWhenThereIsNothingToDo) {
  TaskThreads threads;
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> ran = false;
    threads.ticks()->Schedule([&ran] { ran = true; });
    while (!ran) std::this_thread::yield();
  }
  EXPECT_LT(threads.most(), size_t{50});
  while (threads.count() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::atomic<bool> ran = false;
  threads.ticks()->Schedule([&ran] { ran = true; });
  while (!ran) std::this_thread::yield();
}

TEST(TaskThreadsTest, CallsWhatIsDueInItsOrder) {
  TaskThreads threads;
  const uint64_t now = Clock::System()->NowNanos();
  std::mutex mutex;
  std::vector<int> order;
  const auto call = [&](int number, uint64_t nanos) {
    threads.CallAt(nanos, [&, number] {
      const std::lock_guard lock(mutex);
      order.push_back(number);
    });
  };
  call(0, now + 3'600'000'000'000);
  call(3, now + 40'000'000);
  call(2, now + 20'000'000);
  call(1, now);
  for (;;) {
    std::this_thread::yield();
    const std::lock_guard lock(mutex);
    if (order.size() == 3) break;
  }
  EXPECT_EQ((std::vector<int>{1, 2, 3}), order);
}

}  // namespace
}  // namespace nacre
