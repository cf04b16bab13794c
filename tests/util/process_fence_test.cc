// Goal: of two threads that store, fence and load crosswise, one lightly and one heavily, at least
// one sees the other, before the process has prepared and after, and across processes.
// Method: rounds of the litmus test of store buffers, each thread in its own loop, with as little
// between store and load as there can be; without the fences some of the rounds see neither.

#include "util/threads/process_fence.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <thread>

namespace nacre {
namespace {

/// Places of their own, as far from one another as lines that are fetched in pairs.
struct Places {
  alignas(128) std::atomic<uint32_t> light{0};
  alignas(128) std::atomic<uint32_t> heavy{0};
  alignas(128) std::atomic<uint32_t> light_saw{0};
  alignas(128) std::atomic<uint32_t> round{0};
  alignas(128) std::atomic<uint32_t> done{0};
};

constexpr uint32_t kRounds = 10'000;

/// Spins for a while: the threads should run into one another, not one behind the other.
template <typename Condition>
void SpinUntil(const Condition& condition) {
  for (uint32_t i = 0; !condition(); ++i) {
    if (i % 4096 == 4095) std::this_thread::yield();
  }
}

void RunLight(Places* places) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    SpinUntil([&] { return places->round.load(std::memory_order_acquire) == round; });
    places->light.store(round, std::memory_order_relaxed);
    ProcessFence::LightFence();
    places->light_saw.store(places->heavy.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
    places->done.store(round, std::memory_order_release);
  }
}

/// Rounds in which neither saw the other.
uint32_t RunHeavy(Places* places) {
  uint32_t missed = 0;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    places->round.store(round, std::memory_order_release);
    // The other one hears of the round only after a while, which differs by machine.
    volatile uint32_t passed = 0;
    while (passed < round % 256) passed = passed + 1;
    places->heavy.store(round, std::memory_order_relaxed);
    ProcessFence::HeavyFence();
    const uint32_t saw = places->light.load(std::memory_order_relaxed);
    SpinUntil([&] { return places->done.load(std::memory_order_acquire) == round; });
    const bool light_saw = places->light_saw.load(std::memory_order_relaxed) == round;
    missed += saw != round && !light_saw ? 1 : 0;
  }
  return missed;
}

uint32_t RunThreads() {
  Places places;
  std::thread light(RunLight, &places);
  const uint32_t missed = RunHeavy(&places);
  light.join();
  return missed;
}

TEST(ProcessFenceTest, OneOfTwoThreadsSeesTheOther) {
  EXPECT_EQ(RunThreads(), 0u);
  ProcessFence::Prepare();
  EXPECT_EQ(RunThreads(), 0u);
  ProcessFence::Prepare();
  EXPECT_EQ(RunThreads(), 0u);
}

TEST(ProcessFenceTest, OneOfTwoProcessesSeesTheOther) {
  void* const memory =
      ::mmap(nullptr, sizeof(Places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const places = new (memory) Places;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ProcessFence::Prepare();
    RunLight(places);
    ::_exit(0);
  }
  EXPECT_EQ(RunHeavy(places), 0u);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(memory, sizeof(Places));
}

}  // namespace
}  // namespace nacre
