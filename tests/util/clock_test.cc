// Goal: deadlines count down on whatever clock they are given and stop at zero.
// Method: a clock that moves by hand; the system's clock only for its order.

#include "util/clock.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

using std::chrono::nanoseconds;

class ManualClock : public Clock {
 public:
  uint64_t NowNanos() override { return now_; }
  void SleepFor(nanoseconds duration) override { now_ += static_cast<uint64_t>(duration.count()); }

 private:
  uint64_t now_ = 1000;
};

TEST(ClockTest, DeadlineCountsDown) {
  ManualClock clock;
  const Deadline deadline = Deadline::After(&clock, nanoseconds(50));
  EXPECT_EQ(nanoseconds(50), deadline.Remaining());
  EXPECT_FALSE(deadline.Expired());
  clock.SleepFor(nanoseconds(49));
  EXPECT_EQ(nanoseconds(1), deadline.Remaining());
  EXPECT_FALSE(deadline.Expired());
  clock.SleepFor(nanoseconds(1));
  EXPECT_TRUE(deadline.Expired());
  clock.SleepFor(nanoseconds(100));
  EXPECT_EQ(nanoseconds(0), deadline.Remaining());
}

TEST(ClockTest, SystemClockNeverGoesBack) {
  Clock* clock = Clock::System();
  uint64_t last = clock->NowNanos();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = clock->NowNanos();
    ASSERT_GE(now, last);
    last = now;
  }
  clock->SleepFor(std::chrono::milliseconds(2));
  EXPECT_GE(clock->NowNanos(), last + 2'000'000);
}

}  // namespace
}  // namespace nacre
