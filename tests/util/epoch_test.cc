// Goal: nothing is destroyed while a reader that found it is pinned; everything is destroyed in
// the end, exactly once.
// Method: single-threaded cases for each rule; then readers and writers hammer a few shared
// pointers whose objects are poisoned on destruction (AddressSanitizer and ThreadSanitizer see a
// use that the poison misses).

#include "util/threads/epoch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/seed.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(EpochTest, WithoutGuardsRetiringDestroysAtOnce) {
  EpochDomain domain;
  int destroyed = 0;
  domain.Retire([&] { ++destroyed; });
  EXPECT_EQ(1, destroyed);
}

TEST(EpochTest, GuardsHoldWhatWasRetiredUnderThem) {
  EpochDomain domain;
  int destroyed = 0;
  {
    EpochDomain::Guard guard(&domain);
    domain.Retire([&] { ++destroyed; });
    domain.Collect();
    EXPECT_EQ(0, destroyed);
  }
  EXPECT_EQ(0, destroyed);  // Ending a guard costs nothing, and so collects nothing.
  domain.Collect();
  EXPECT_EQ(1, destroyed);
  domain.Collect();
  EXPECT_EQ(1, destroyed);
}

TEST(EpochTest, NestedGuardsPinAsTheOuterOne) {
  EpochDomain domain;
  int destroyed = 0;
  {
    EpochDomain::Guard outer(&domain);
    domain.Retire([&] { ++destroyed; });
    {
      EpochDomain::Guard inner(&domain);
      domain.Collect();
    }
    domain.Collect();
    EXPECT_EQ(0, destroyed);
  }
  domain.Collect();
  EXPECT_EQ(1, destroyed);
}

TEST(EpochTest, GuardsOfOtherThreadsHoldAndLaterOnesDoNot) {
  EpochDomain domain;
  std::atomic<int> step = 0;
  std::atomic<int> destroyed = 0;
  std::thread reader([&] {
    {
      EpochDomain::Guard guard(&domain);
      step = 1;
      while (step != 2) std::this_thread::yield();
    }
    EpochDomain::Guard later(&domain);
    step = 3;
    while (step != 4) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  domain.Retire([&] { ++destroyed; });
  EXPECT_EQ(0, destroyed);
  step = 2;
  while (step != 3) std::this_thread::yield();
  domain.Collect();
  EXPECT_EQ(1, destroyed);
  domain.Retire([&] { ++destroyed; });
  EXPECT_EQ(1, destroyed);
  step = 4;
  reader.join();
}

TEST(EpochTest, DomainsAreIndependent) {
  EpochDomain one;
  EpochDomain two;
  int destroyed = 0;
  EpochDomain::Guard guard(&one);
  two.Retire([&] { ++destroyed; });
  EXPECT_EQ(1, destroyed);
}

TEST(EpochTest, DestroyingMayRetireMore) {
  int destroyed = 0;
  {
    EpochDomain domain;
    domain.Retire([&] {
      ++destroyed;
      domain.Retire([&] { ++destroyed; });
    });
    EXPECT_EQ(2, destroyed);
    EpochDomain::Guard guard(&domain);
    domain.Retire([&] {
      ++destroyed;
      domain.Retire([&] { ++destroyed; });
    });
    EXPECT_EQ(2, destroyed);
  }
  EXPECT_EQ(4, destroyed);
}

Deadline Soon() { return Deadline::After(Clock::System(), std::chrono::seconds(60)); }

TEST(EpochTest, GuardsAreAwaitedOrTheDeadlineIs) {
  EpochDomain domain;
  EXPECT_TRUE(domain.AwaitGuards(Soon()));
  {
    EpochDomain::Guard guard(&domain);
    EXPECT_FALSE(
        domain.AwaitGuards(Deadline::After(Clock::System(), std::chrono::milliseconds(5))));
  }
  EXPECT_TRUE(domain.AwaitGuards(Soon()));
}

TEST(EpochTest, PinsFenceWhileTheyAreAwaitedOften) {
  EpochDomain domain;
  EXPECT_FALSE(domain.fencing());
  for (int i = 0; i < 1000 && !domain.fencing(); ++i) EXPECT_TRUE(domain.AwaitGuards(Soon()));
  EXPECT_TRUE(domain.fencing());
  domain.RelaxIfQuiet(Clock::System()->NowNanos());
  EXPECT_TRUE(domain.fencing());
  domain.RelaxIfQuiet(Clock::System()->NowNanos() + 1'000'000'000);
  EXPECT_FALSE(domain.fencing());
}

// A writer that keeps readers out, waits for those inside and then writes alone, however often pins
// begin to fence and stop.
TEST(EpochTest, NobodyIsInsideBehindAnAwait) {
  constexpr int kWrites = 1'000'000;
  constexpr int kLooks = 500;
  EpochDomain domain;
  std::atomic<bool> done = false;
  alignas(64) std::atomic<bool> held = false;
  // Not atomic, as nothing but the domain keeps readers and writer apart.
  alignas(64) volatile uint64_t shared = 0;
  std::atomic<uint64_t> reads = 0;
  std::vector<std::thread> threads;
  // As many threads as processors, so that they run at the same time.
  threads.emplace_back([&] {
    uint64_t mine = 0;
    for (uint64_t round = 0; !done.load(std::memory_order_relaxed); ++round) {
      if (round % 64 == 0) domain.RelaxIfQuiet(Clock::System()->NowNanos() + 1'000'000'000);
      EpochDomain::Guard guard(&domain);
      if (held.load(std::memory_order_seq_cst)) continue;
      const uint64_t seen = shared;
      for (int look = 0; look < kLooks; ++look) ASSERT_EQ(seen, shared);
      ++mine;
    }
    reads += mine;
  });
  for (int i = 0; i < kWrites; ++i) {
    held.store(true, std::memory_order_seq_cst);
    ASSERT_TRUE(domain.AwaitGuards(Soon()));
    for (int write = 0; write < 4; ++write) shared = shared + 1;
    held.store(false, std::memory_order_seq_cst);
    // So that the reader meets the next one at any point.
    for (int pause = i % 256; pause > 0; --pause) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reads.load(), 0U);
}

class Object {
 public:
  static constexpr uint64_t kAlive = 0x600d600d600d600d;

  explicit Object(std::atomic<int64_t>* live) : live_(live) { ++*live_; }
  ~Object() {
    for (uint64_t& word : words_) word = 0xdeaddeaddeaddead;
    --*live_;
  }
  bool Intact() const {
    for (const uint64_t word : words_) {
      if (word != kAlive) return false;
    }
    return true;
  }

 private:
  std::atomic<int64_t>* live_;
  uint64_t words_[4] = {kAlive, kAlive, kAlive, kAlive};
};

TEST(EpochTest, ReadersNeverSeeADestroyedObject) {
  const uint64_t seed = TestSeed(313);
  constexpr size_t kPointers = 4;
  constexpr int kWriters = 2;
  constexpr int kReaders = 3;
  constexpr int kSwaps = 10'000;
  std::atomic<int64_t> live = 0;
  std::atomic<uint64_t> reads = 0;
  {
    EpochDomain domain;
    std::atomic<Object*> shared[kPointers];
    for (auto& pointer : shared) pointer = new Object(&live);
    std::atomic<int> writing = kWriters;
    std::barrier start(kWriters + kReaders);
    std::vector<std::thread> threads;
    for (uint64_t w = 0; w < kWriters; ++w) {
      threads.emplace_back([&, w] {
        Random random(seed + w);
        start.arrive_and_wait();
        for (int i = 0; i < kSwaps; ++i) {
          auto& pointer = shared[random.Uniform(kPointers)];
          Object* old = pointer.exchange(new Object(&live), std::memory_order_acq_rel);
          domain.Retire([old] { delete old; });
        }
        --writing;
      });
    }
    for (uint64_t r = 0; r < kReaders; ++r) {
      threads.emplace_back([&, r] {
        Random random(seed + 100 + r);
        start.arrive_and_wait();
        uint64_t mine = 0;
        do {
          EpochDomain::Guard guard(&domain);
          const Object* object = shared[random.Uniform(kPointers)].load(std::memory_order_acquire);
          for (int look = 0; look < 3; ++look) {
            ASSERT_TRUE(object->Intact());
            if (random.OneIn(64)) std::this_thread::yield();
            EpochDomain::Guard nested(&domain);
            ++mine;
          }
        } while (writing.load() > 0);
        reads += mine;
      });
    }
    for (std::thread& thread : threads) thread.join();
    domain.Collect();
    EXPECT_EQ(static_cast<int64_t>(kPointers), live.load());
    for (auto& pointer : shared) delete pointer.load();
  }
  EXPECT_EQ(0, live.load());
  EXPECT_GT(reads.load(), 0U);
}

}  // namespace
}  // namespace nacre
