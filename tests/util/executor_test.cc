// Goal: a thread pool runs every accepted task exactly once, in the order of acceptance when it has
// one thread, on as many threads as asked for, and drains before it ends.
// Method: counting tasks, tasks that wait for one another, tasks that schedule tasks.

#include "util/threads/executor.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

namespace nacre {
namespace {

TEST(ThreadPoolTest, RunsAllBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    const auto pool = NewThreadPool(3, "test");
    for (int i = 0; i < 1000; ++i) pool->Schedule([&ran] { ++ran; });
  }
  EXPECT_EQ(1000, ran);
}

TEST(ThreadPoolTest, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    const auto pool = NewThreadPool(1, "test");
    for (int i = 0; i < 100; ++i) pool->Schedule([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(100U, order.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(i, order[static_cast<size_t>(i)]);
}

TEST(ThreadPoolTest, RunsAsManyAtOnceAsItHasThreads) {
  constexpr int kThreads = 4;
  std::barrier together(kThreads);
  std::atomic<int> ran = 0;
  {
    const auto pool = NewThreadPool(kThreads, "test");
    for (int i = 0; i < kThreads; ++i) {
      pool->Schedule([&] {
        together.arrive_and_wait();  // Would hang if fewer ran at once.
        ++ran;
      });
    }
  }
  EXPECT_EQ(kThreads, ran);
}

TEST(ThreadPoolTest, GrowsAndDoesNotShrink) {
  constexpr int kThreads = 3;
  std::barrier together(kThreads);
  std::atomic<int> ran = 0;
  {
    const auto pool = NewThreadPool(1, "test");
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

TEST(ThreadPoolTest, TasksMayScheduleTasksUntilTheEnd) {
  std::atomic<int> ran = 0;
  {
    const auto pool = NewThreadPool(2, "test");
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
    const auto pool = NewThreadPool(2, "test");
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

TEST(ThreadPoolTest, SchedulesFromManyThreads) {
  std::atomic<int> ran = 0;
  {
    const auto pool = NewThreadPool(2, "test");
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) pool->Schedule([&ran] { ++ran; });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(2000, ran);
}

TEST(ThreadPoolTest, WhatATaskCapturedDiesWithIt) {
  const auto pool = NewThreadPool(1, "test");
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  std::atomic<bool> next_ran = false;
  pool->Schedule([captured = std::move(captured)] {});
  pool->Schedule([&next_ran] { next_ran = true; });
  while (!next_ran) std::this_thread::yield();
  EXPECT_TRUE(watch.expired());
}

TEST(ThreadPoolTest, ThreadsBearItsName) {
  std::string name;
  {
    const auto pool = NewThreadPool(1, "a-name-too-long-for-linux");
    // The name is set by the maker of the thread, which may be a moment later than its first task.
    pool->Schedule([&name] {
      char buffer[64] = {};
      for (int tries = 0; tries < 1000 && std::string(buffer) != "a-name-too-long"; ++tries) {
        ::pthread_getname_np(::pthread_self(), buffer, sizeof(buffer));
        std::this_thread::yield();
      }
      name = buffer;
    });
  }
  EXPECT_EQ("a-name-too-long", name);
}

}  // namespace
}  // namespace nacre
