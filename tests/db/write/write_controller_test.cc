// Goal: writers go ahead, pay for their bytes, wait or are refused, by the state that flushes and
// compactions are in; a fault stops all of them for good.
// Method: a controller whose state the test sets; a clock that counts how long writers sleep.

#include "db/write/write_controller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Code = Status::Code;

/// The machine's clock, but the thread that made it does not sleep.
class SleeplessClock final : public Clock {
 public:
  uint64_t NowNanos() override { return Clock::System()->NowNanos(); }
  void SleepFor(std::chrono::nanoseconds duration) override {
    if (std::this_thread::get_id() != thread_) return Clock::System()->SleepFor(duration);
    slept_ += duration;
  }
  std::chrono::nanoseconds slept() const { return slept_; }
  /// Forgets the sleeps so far: the opening of the pool waits, too.
  void Restart() { slept_ = {}; }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::nanoseconds slept_{0};
};

/// Made before the pool, which uses it to its end.
struct WithClock {
  SleeplessClock clock_;
};

class WriteControllerTest : public WithClock, public PartsFixture {
 protected:
  WriteControllerTest() : PartsFixture({.clock = &clock_}) {}

  Status Admit(bool deletes = false, uint64_t bytes = 1000) {
    WriteOptions options;
    options.no_slowdown = true;  // It answers what it would wait for.
    return controller().Admit(options, bytes, deletes);
  }
  /// Lets `change` change the state of background work.
  template <typename Change>
  void Set(const Change& change) {
    MutexLock lock(&parts_->state.mutex);
    change(&parts_->state.work);
    controller().Update();
  }
  WriteController& controller() { return parts_->write_controller; }
};

TEST_F(WriteControllerTest, AdmitsWhileNothingIsBehind) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork*) {});
  EXPECT_EQ(controller().stall(), Stall::kNone);
  EXPECT_TRUE(IsOk(Admit()));
}

TEST_F(WriteControllerTest, DelaysByWhatWasWritten) {
  options_.level0_slowdown_writes_trigger = 0;
  options_.delayed_write_rate = 1000;  // Bytes a second.
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork*) {});
  ASSERT_EQ(controller().stall(), Stall::kDelay);
  EXPECT_EQ(controller().DelayedRate(), 1000u);
  clock_.Restart();
  EXPECT_TRUE(IsFailure(Admit(), Code::kIncomplete));
  EXPECT_EQ(clock_.slept().count(), 0);
  ASSERT_TRUE(IsOk(controller().Admit({}, /*bytes=*/500'000, /*deletes=*/false)));
  EXPECT_EQ(clock_.slept(), std::chrono::seconds(500));
  // As the clock has not gone on, the next one pays for both.
  ASSERT_TRUE(IsOk(controller().Admit({}, /*bytes=*/500'000, /*deletes=*/true)));
  EXPECT_GT(clock_.slept(), std::chrono::seconds(1200));
  EXPECT_LE(clock_.slept(), std::chrono::seconds(1500));
}

TEST_F(WriteControllerTest, StopsWhereLevel0IsTooLarge) {
  options_.level0_stop_writes_trigger = 0;
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork*) {});
  EXPECT_EQ(controller().stall(), Stall::kStop);
  EXPECT_TRUE(IsFailure(Admit(), Code::kIncomplete));
  ColumnFamilyOptions none = options_;
  none.disable_auto_compactions = true;
  MutexLock lock(&parts_->state.mutex);
  family()->SetOptions(none);
  controller().Update();
  EXPECT_EQ(controller().stall(), Stall::kNone) << "no compaction would end it";
}

TEST_F(WriteControllerTest, AFullPoolTakesDeletionsOnly) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork* work) {
    work->pool_full = true;
    work->flush_error = Status::NoSpace("full");
  });
  EXPECT_TRUE(IsFailure(Admit(/*deletes=*/false), Code::kNoSpace));
  EXPECT_TRUE(IsOk(Admit(/*deletes=*/true)));
  Set([](BackgroundWork* work) { work->memtable_full = true; });
  EXPECT_FALSE(Admit(/*deletes=*/true).ok()) << "there is no room for its MemTable";
  Set([](BackgroundWork* work) {
    work->memtable_full = false;
    work->pool_full = false;
  });
  EXPECT_TRUE(IsOk(Admit()));
}

TEST_F(WriteControllerTest, TellsWhatKeepsTheStallFromEnding) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork* work) { work->memtable_full = true; });
  EXPECT_TRUE(IsFailure(Admit(), Code::kIncomplete));
  Set([](BackgroundWork* work) { work->flush_error = Status::Unavailable("no nodes"); });
  EXPECT_TRUE(IsFailure(Admit(), Code::kUnavailable));
}

TEST_F(WriteControllerTest, TheFirstFaultStopsAllWrites) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Set([](BackgroundWork* work) { work->memtable_full = true; });
  Status waited;
  std::thread writer([&] { waited = controller().Admit({}, 10, /*deletes=*/false); });
  controller().StopFor(Status::Aborted("a write broke off"));
  writer.join();
  EXPECT_TRUE(IsFailure(waited, Code::kAborted, "broke off"));
  Set([](BackgroundWork* work) { work->memtable_full = false; });
  controller().StopFor(Status::Corruption("later"));
  EXPECT_TRUE(IsFailure(controller().fault(), Code::kAborted));
  EXPECT_TRUE(IsFailure(Admit(/*deletes=*/true), Code::kAborted));
}

TEST_F(WriteControllerTest, AClosingDatabaseTakesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  StopWork();
  EXPECT_EQ(controller().stall(), Stall::kClosed);
  EXPECT_TRUE(IsFailure(Admit(), Code::kShutdownInProgress));
}

}  // namespace
}  // namespace nacre
