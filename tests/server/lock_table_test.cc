// Goal: the locks of keys exclude what they are meant to exclude, are granted in the order in which
// they were asked for, and are all granted in the end.
// Method: coroutines on several loops that look at what else holds the slot; run by TSan, too.

#include "server/store/lock_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/task.h"
#include "server/loop/event_loop.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre::server {
namespace {

constexpr size_t kModes = 3;

/// What holds a slot, and what its locks protect.
struct Protected {
  std::array<std::atomic<int>, kModes> holders{};
  int changes = 0;
};

class LockTableTest : public testing::Test {
 protected:
  static constexpr size_t kFew = 4;

  Task<void> LockAndUnlock(EventLoop* loop, uint64_t seed, int rounds) {
    Random random(seed);
    for (int i = 0; i < rounds; ++i) {
      std::vector<SlotLock> locks;
      for (uint64_t n = 1 + random.Uniform(2); n > 0; --n) {
        locks.push_back({random.Uniform(kFew), static_cast<LockMode>(random.Uniform(kModes))});
      }
      LockTable::Normalize(&locks);
      for (const SlotLock& lock : locks) {
        const bool tries = random.OneIn(2);
        if (!tries || !table_.TryLock(lock)) co_await table_.Lock(loop, lock);
        Enter(lock);
      }
      if (random.OneIn(3)) co_await Yield(loop);
      for (const SlotLock& lock : locks) {
        Leave(lock);
        table_.Unlock(lock);
      }
      // Without waits the stack would grow where there are no tail calls.
      if (i % 16 == 0) co_await Yield(loop);
    }
    ended_.fetch_add(1);
  }
  void Enter(const SlotLock& lock) {
    Protected& slot = protected_[lock.slot];
    slot.holders[static_cast<size_t>(lock.mode)].fetch_add(1);
    for (size_t mode = 0; mode < kModes; ++mode) {
      const int holders = slot.holders[mode].load();
      const bool own = mode == static_cast<size_t>(lock.mode);
      if (own ? lock.mode == LockMode::kChange && holders != 1 : holders != 0) wrong_.fetch_add(1);
    }
    if (lock.mode == LockMode::kChange) {
      ++slot.changes;
    } else if (slot.changes < 0) {
      wrong_.fetch_add(1);
    }
  }
  void Leave(const SlotLock& lock) {
    protected_[lock.slot].holders[static_cast<size_t>(lock.mode)].fetch_sub(1);
  }
  Task<void> LockAndNote(EventLoop* loop, LockMode mode, std::string name) {
    co_await table_.Lock(loop, {0, mode});
    granted_ += name;
  }

  LockTable table_;
  std::array<Protected, kFew> protected_{};
  std::atomic<int> wrong_{0};
  std::atomic<int> ended_{0};
  std::string granted_;
};

TEST_F(LockTableTest, LocksOfManyLoopsExcludeOneAnother) {
  constexpr int kLoops = 3;
  constexpr int kTasks = 20;
  std::vector<std::unique_ptr<EventLoop>> loops;
  std::vector<std::thread> threads;
  uint64_t seed = TestSeed(1);
  for (int i = 0; i < kLoops; ++i) {
    loops.push_back(std::make_unique<EventLoop>(Clock::System()));
    EventLoop* const loop = loops.back().get();
    ASSERT_TRUE(IsOk(loop->Open()));
    for (int task = 0; task < kTasks; ++task) {
      loop->Post([this, loop, seed] { loop->Spawn(LockAndUnlock(loop, seed, 2000)); });
      ++seed;
    }
  }
  for (const auto& loop : loops) threads.emplace_back([&loop] { loop->Run(); });
  while (ended_.load() < kLoops * kTasks) std::this_thread::yield();
  for (const auto& loop : loops) loop->Stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_.load(), 0);
  // All is as it was: each lock is to be had.
  for (size_t slot = 0; slot < kFew; ++slot) EXPECT_TRUE(table_.TryLock({slot, LockMode::kChange}));
}

TEST_F(LockTableTest, LocksAreGrantedInTheOrderOfTheRequests) {
  EventLoop loop(Clock::System());
  ASSERT_TRUE(IsOk(loop.Open()));
  const SlotLock read{0, LockMode::kRead};
  const SlotLock change{0, LockMode::kChange};
  // What is granted in one turn of the loop runs in the next one.
  const auto later = [&](std::function<void()> work) {
    loop.AtTurnEnd([&loop, work = std::move(work)] { loop.AtTurnEnd(work); });
  };
  ASSERT_TRUE(table_.TryLock(change));
  EXPECT_FALSE(table_.TryLock(read));
  loop.Post([&] {
    loop.Spawn(LockAndNote(&loop, LockMode::kRead, "r"));
    loop.Spawn(LockAndNote(&loop, LockMode::kRead, "R"));
    loop.Spawn(LockAndNote(&loop, LockMode::kChange, "c"));
    loop.Spawn(LockAndNote(&loop, LockMode::kRead, "x"));
    table_.Unlock(change);
    later([&] {
      EXPECT_EQ(granted_, "rR");
      // One that would be admitted comes behind those that wait.
      EXPECT_FALSE(table_.TryLock(read));
      table_.Unlock(read);
      table_.Unlock(read);
      later([&] {
        EXPECT_EQ(granted_, "rRc");
        table_.Unlock(change);
        loop.Stop();
      });
    });
  });
  loop.Run();
  EXPECT_EQ(granted_, "rRcx");
}

}  // namespace
}  // namespace nacre::server
