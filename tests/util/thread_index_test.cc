// Goal: live threads never share an index, indexes stay small, and a slot passes from an ended
// thread to the next one with all that was written there.
// Method: threads held alive together by a barrier; generations of threads that each count in
// their slot without atomics (ThreadSanitizer sees a missing hand-over).

#include "util/thread_index.h"

#include <gtest/gtest.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre {
namespace {

TEST(ThreadIndexTest, StaysTheSameWithinAThread) {
  const size_t index = ThreadIndex::Current();
  EXPECT_LT(index, ThreadIndex::kMax);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(index, ThreadIndex::Current());
  EXPECT_GT(ThreadIndex::Limit(), index);
}

TEST(ThreadIndexTest, LiveThreadsDifferAndIndexesAreDense) {
  constexpr int kThreads = 100;
  const size_t mine = ThreadIndex::Current();
  for (int round = 0; round < 3; ++round) {
    Mutex mutex;
    std::set<size_t> seen = {mine};
    std::barrier all_have_one(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const size_t index = ThreadIndex::Current();
        {
          MutexLock lock(&mutex);
          EXPECT_TRUE(seen.insert(index).second) << index;
        }
        all_have_one.arrive_and_wait();
        EXPECT_EQ(index, ThreadIndex::Current());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(kThreads + 1U, seen.size());
    // No round needs more than the one before, whatever other threads of the process hold.
    EXPECT_LT(*seen.rbegin(), kThreads + 32U);
  }
  EXPECT_LT(ThreadIndex::Limit(), kThreads + 33U);
}

/// Uses the index when its thread ends, after or before the index is handed back.
struct UsesIndexOnExit {
  ~UsesIndexOnExit() { EXPECT_LT(ThreadIndex::Current(), ThreadIndex::kMax); }
  int touched = 0;
};

TEST(ThreadIndexTest, DestructorsOfThreadLocalsMayUseIt) {
  for (int i = 0; i < 2000; ++i) {
    std::thread([] {
      static thread_local UsesIndexOnExit before;
      before.touched = 1;
      ThreadIndex::Current();
    }).join();
  }
  // Each thread gave its index back, or there would be more by now.
  EXPECT_LT(ThreadIndex::Limit(), 200U);
}

struct Count {
  uint64_t value;
};

/// The last test of indexes, since their limit never falls.
TEST(ThreadIndexTest, ManyThousandsOfThreadsAtOnce) {
  constexpr size_t kThreads = 4200;
  Mutex mutex;
  CondVar changed(&mutex);
  std::set<size_t> seen;
  bool all_there = false;
  PerThread<Count> counts;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ++counts.Mine().value;
      MutexLock lock(&mutex);
      EXPECT_TRUE(seen.insert(ThreadIndex::Current()).second);
      while (!all_there) changed.Wait();
    });
  }
  for (bool there = false; !there;) {
    std::this_thread::yield();
    MutexLock lock(&mutex);
    there = all_there = seen.size() == kThreads;
    if (there) changed.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(*seen.rbegin(), kThreads + 100);
  uint64_t sum = 0;
  counts.ForEach([&sum](const Count& count) { sum += count.value; });
  EXPECT_EQ(sum, kThreads);
}

TEST(PerThreadTest, SlotsPassOnInOrder) {
  PerThread<Count> counts;
  constexpr int kGenerations = 20;
  constexpr int kThreads = 8;
  for (int generation = 0; generation < kGenerations; ++generation) {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&counts] {
        for (int i = 0; i < 100; ++i) ++counts.Mine().value;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  uint64_t sum = 0;
  counts.ForEach([&sum](const Count& count) {
    sum += count.value;
    EXPECT_EQ(0U, reinterpret_cast<uintptr_t>(&count) % 64);
  });
  EXPECT_EQ(uint64_t{kGenerations} * kThreads * 100, sum);
}

TEST(PerThreadTest, StartsAsZeros) {
  PerThread<Count> counts;
  EXPECT_EQ(0U, counts.Mine().value);
}

}  // namespace
}  // namespace nacre
