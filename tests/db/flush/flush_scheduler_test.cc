// Goal: generations are flushed in their order, by one change each, and no longer than they are
// wanted; a pool that has no room takes deletions only until it has some again.
// Method: the parts of a database on an embedded pool, with background work paused where a test
// looks at what waits, and with space that is reserved for nothing.

#include "db/flush/flush_scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Code = Status::Code;

class FlushSchedulerTest : public PartsFixture {
 protected:
  FlushSchedulerTest() : PartsFixture({.nodes = 2, .node_bytes = 40 << 20}) {
    options_.disable_auto_compactions = true;
  }
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open()); }

  Status Flush(bool wait = true, const ColumnFamily* only = nullptr) {
    FlushOptions options;
    options.wait = wait;
    return parts_->flushes.Flush(options, only);
  }
  SequenceNumber flushed() {
    MutexLock lock(&parts_->state.mutex);
    return parts_->state.flushed;
  }
  uint64_t manifest_version() { return parts_->committer.manifest()->version(); }
};

TEST_F(FlushSchedulerTest, AFlushIsOneChangeAfterWhichTablesHaveAll) {
  ASSERT_TRUE(IsOk(Put("a", "1")));
  ASSERT_TRUE(IsOk(Put("b", "2")));
  const uint64_t before = manifest_version();
  const uint16_t generation = parts_->generations.sequencer()->generation();
  ASSERT_TRUE(IsOk(Flush()));
  EXPECT_EQ(manifest_version(), before + 1);
  EXPECT_EQ(version()->level0_runs(), 1);
  EXPECT_EQ(ended_generations(), 0u);
  EXPECT_EQ(flushed(), 2u);
  EXPECT_EQ(parts_->committer.manifest()->last_sequence(), 2u);
  EXPECT_EQ(family()->FindMemTable(generation), nullptr);
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(FlushSchedulerTest, FlushesNothingThatIsNotThere) {
  const uint64_t before = manifest_version();
  ASSERT_TRUE(IsOk(Flush()));
  parts_->flushes.FlushWritten();
  EXPECT_EQ(ended_generations(), 0u);
  ASSERT_TRUE(IsOk(Put("a", "1")));
  const auto other = std::make_shared<ColumnFamily>(7, "other", options_, 7, nullptr);
  ASSERT_TRUE(IsOk(Flush(/*wait=*/true, other.get())));
  EXPECT_EQ(manifest_version(), before);
}

TEST_F(FlushSchedulerTest, GenerationsWaitInOrderWhileWorkIsPaused) {
  ASSERT_TRUE(IsOk(parts_->state.PauseWork()));
  ASSERT_TRUE(IsOk(Put("a", "1")));
  ASSERT_TRUE(IsOk(Flush(/*wait=*/false)));
  ASSERT_TRUE(IsOk(Put("a", "2")));
  parts_->flushes.FlushWritten();
  EXPECT_EQ(ended_generations(), 1u) << "one waits to be flushed already";
  ASSERT_TRUE(IsOk(Flush(/*wait=*/false)));
  EXPECT_EQ(ended_generations(), 2u);
  EXPECT_EQ(version()->level0_runs(), 0);
  ASSERT_TRUE(IsOk(parts_->state.ContinueWork()));
  ASSERT_TRUE(Eventually([this] { return ended_generations() == 0; }));
  EXPECT_EQ(version()->level0_runs(), 2);
  EXPECT_EQ(flushed(), 2u);
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(FlushSchedulerTest, AFullPoolTakesDeletionsUntilThereIsRoom) {
  ASSERT_TRUE(IsOk(FlushKeys("key", 100)));
  ASSERT_TRUE(IsOk(Put("a", std::string(10'000, 'a'))));
  ASSERT_NO_FATAL_FAILURE(FillPool(64 << 10, /*left=*/0));
  EXPECT_TRUE(IsFailure(Flush(), Code::kNoSpace));
  EXPECT_EQ(ended_generations(), 1u);
  EXPECT_EQ(Get("a"), std::string(10'000, 'a'));
  EXPECT_TRUE(IsFailure(Put("b", "1"), Code::kNoSpace));
  EXPECT_TRUE(IsOk(parts_->writes.WriteOne({}, family(), ValueType::kDeletion, "key1", Slice())));
  EmptyPool();
  ASSERT_TRUE(Eventually([this] { return parts_->write_controller.stall() == Stall::kNone; }));
  EXPECT_EQ(ended_generations(), 0u);
  EXPECT_EQ(version()->level0_runs(), 2);
  EXPECT_TRUE(IsOk(Put("b", "1")));
  EXPECT_EQ(Get("key1"), "(NotFound)");
}

TEST_F(FlushSchedulerTest, AClosingDatabaseFlushesNoMore) {
  ASSERT_TRUE(IsOk(Put("a", "1")));
  StopWork();
  EXPECT_TRUE(IsFailure(Flush(), Code::kShutdownInProgress));
  parts_->flushes.FlushWritten();
  EXPECT_EQ(ended_generations(), 0u);
}

}  // namespace
}  // namespace nacre
