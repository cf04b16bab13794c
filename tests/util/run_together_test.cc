// Goal: RunTogether runs each call once, no more than it may at a time, and has the caller know
// what the first of them has thrown. Method: calls that count themselves, and where not all of them
// are to run at once wait for those that may.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

constexpr size_t kCalls = 100;

TEST(RunTogetherTest, AllAreRunOnceAndSoManyAtATime) {
  for (const size_t at_once : {size_t{1}, size_t{3}, kCalls, SIZE_MAX}) {
    const size_t expected = std::min(at_once, kCalls);
    std::array<std::atomic<int>, kCalls> runs{};
    Mutex mutex;
    CondVar changed(&mutex);
    size_t now = 0;
    size_t most = 0;
    RunTogether(
        "test", kCalls,
        [&](size_t i) {
          ++runs[i];
          const MutexLock lock(&mutex);
          most = std::max(most, ++now);
          changed.SignalAll();
          // The first ones wait for one another, which shows that they run together.
          while (most < expected) changed.Wait();
          --now;
        },
        at_once);
    EXPECT_EQ(most, expected);
    for (const auto& each : runs) EXPECT_EQ(each, 1);
  }
}

TEST(RunTogetherTest, TheCallerGetsWhatTheFirstHasThrown) {
  for (const size_t at_once : {size_t{2}, kCalls}) {
    std::atomic<size_t> ended{0};
    const auto work = [&](size_t i) {
      ++ended;
      if (i % 7 == 5) throw std::runtime_error(std::to_string(i));
    };
    try {
      RunTogether("test", kCalls, work, at_once);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "5");
    }
    EXPECT_EQ(ended, kCalls);
  }
}

TEST(RunTogetherTest, NothingIsRunOfNothing) {
  RunTogether("test", 0, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace nacre
