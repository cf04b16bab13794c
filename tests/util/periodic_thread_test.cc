// Goal: the work is done again and again until Stop, and Wake does not wait for the rest to end.
// Method: work that counts, with rests that are far longer or far shorter than the test.

#include "util/threads/periodic_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "util/clock.h"

namespace nacre {
namespace {

/// Returns once `done` says so; a test that hangs here has failed.
template <typename Done>
void Await(const Done& done) {
  while (!done()) Clock::System()->SleepFor(std::chrono::milliseconds(1));
}

constexpr std::chrono::hours kLong{1};
constexpr std::chrono::milliseconds kShort{1};

TEST(PeriodicThreadTest, WorksAgainAfterEachRestAlsoIfItThrows) {
  std::atomic<int> done{0};
  PeriodicThread thread;
  thread.Start("test", kShort, PeriodicThread::Begin::kWithRest, [&done] {
    ++done;
    throw std::runtime_error("this once");
  });
  Await([&done] { return done > 3; });
  thread.Stop();
  const int last = done;
  thread.Stop();
  EXPECT_EQ(done, last);
}

TEST(PeriodicThreadTest, BeginsAsItIsTold) {
  std::atomic<int> at_once{0};
  std::atomic<int> later{0};
  PeriodicThread works;
  PeriodicThread rests;
  works.Start("works", kLong, PeriodicThread::Begin::kWithWork, [&at_once] { ++at_once; });
  rests.Start("rests", kLong, PeriodicThread::Begin::kWithRest, [&later] { ++later; });
  Await([&at_once] { return at_once == 1; });
  EXPECT_EQ(later, 0);
  Await([&] {
    rests.Wake();
    return later > 0;
  });
  EXPECT_EQ(at_once, 1);
}

TEST(PeriodicThreadTest, LongWorkIsToldToStop) {
  std::atomic<bool> begun{false};
  PeriodicThread thread;
  thread.Start("test", kLong, PeriodicThread::Begin::kWithWork, [&] {
    begun = true;
    while (!thread.stopping()) Clock::System()->SleepFor(kShort);
  });
  Await([&begun] { return begun.load(); });
  thread.Stop();
  EXPECT_TRUE(thread.stopping());
}

TEST(PeriodicThreadTest, StopWithoutStartDoesNothing) {
  PeriodicThread thread;
  thread.Stop();
  EXPECT_TRUE(thread.stopping());
}

}  // namespace
}  // namespace nacre
