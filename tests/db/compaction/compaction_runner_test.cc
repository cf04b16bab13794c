// Goal: a compaction is one change that leaves no mark on its tables, whether it worked or not; one
// begins when it is due and nothing stands against it.
// Method: the parts of a database on an embedded pool; automatic compactions are held, and the test
// runs what it picks, with and without room for the outputs.

#include "db/compaction/compaction_runner.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Code = Status::Code;

class CompactionRunnerTest : public PartsFixture {
 protected:
  CompactionRunnerTest() : PartsFixture({.nodes = 2, .node_bytes = 40 << 20}) {}
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    MutexLock lock(&parts_->state.mutex);
    ++parts_->state.work.compactions_held;
  }

  /// Two flushes, which make a compaction of level 0 due.
  void MakeDue() {
    ASSERT_TRUE(IsOk(FlushKeys("key", 100)));
    ASSERT_TRUE(IsOk(FlushKeys("key", 50)));
    ASSERT_EQ(version()->level0_runs(), 2);
  }
  /// Null if none is due whose tables are not marked.
  std::unique_ptr<Compaction> Pick() {
    MutexLock lock(&parts_->state.mutex);
    std::unique_ptr<Compaction> picked = family()->picker().Pick(family()->current_view()->version);
    if (picked != nullptr) picked->family = parts_->state.default_family;
    return picked;
  }
  int running() {
    MutexLock lock(&parts_->state.mutex);
    return parts_->state.work.compactions_running;
  }
  Status compaction_error() {
    MutexLock lock(&parts_->state.mutex);
    return parts_->state.work.compaction_error;
  }
  uint64_t used_bytes() { return parts_->context.space.Usage().used_bytes; }
};

TEST_F(CompactionRunnerTest, ACompactionIsOneChange) {
  ASSERT_NO_FATAL_FAILURE(MakeDue());
  const std::unique_ptr<Compaction> picked = Pick();
  ASSERT_NE(picked, nullptr);
  EXPECT_EQ(Pick(), nullptr) << "its tables are marked";
  const uint64_t before = parts_->committer.manifest()->version();
  ASSERT_TRUE(IsOk(parts_->compactions.RunAndCommit(picked.get())));
  EXPECT_EQ(parts_->committer.manifest()->version(), before + 1);
  EXPECT_EQ(version()->level0_runs(), 0);
  EXPECT_GT(version()->LevelBytes(1), 0u);
  EXPECT_EQ(parts_->context.counters.compactions.load(), 1u);
  EXPECT_EQ(Get("key99"), TestValue(99, 100));
  EXPECT_EQ(Get("key1"), TestValue(1, 100));
}

TEST_F(CompactionRunnerTest, AFailureChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(MakeDue());
  ASSERT_NO_FATAL_FAILURE(FillPool(64 << 10, /*left=*/0));
  const uint64_t used = used_bytes();
  const uint64_t before = parts_->committer.manifest()->version();
  EXPECT_TRUE(IsFailure(parts_->compactions.RunAndCommit(Pick().get()), Code::kNoSpace));
  EXPECT_TRUE(IsFailure(compaction_error(), Code::kNoSpace));
  EXPECT_EQ(parts_->committer.manifest()->version(), before);
  EXPECT_EQ(version()->level0_runs(), 2);
  EXPECT_EQ(used_bytes(), used) << "what it had reserved is free";
  EmptyPool();
  const std::unique_ptr<Compaction> again = Pick();
  ASSERT_NE(again, nullptr) << "their tables are still marked";
  ASSERT_TRUE(IsOk(parts_->compactions.RunAndCommit(again.get())));
  EXPECT_TRUE(IsOk(compaction_error()));
}

TEST_F(CompactionRunnerTest, OneBeginsWhenNothingStandsAgainstIt) {
  ASSERT_NO_FATAL_FAILURE(MakeDue());
  {
    MutexLock lock(&parts_->state.mutex);
    parts_->compactions.Schedule();
  }
  EXPECT_EQ(running(), 0) << "they are held";
  {
    MutexLock lock(&parts_->state.mutex);
    --parts_->state.work.compactions_held;
    parts_->compactions.Schedule();
  }
  ASSERT_TRUE(Eventually([this] { return version()->level0_runs() == 0 && running() == 0; }));
  MutexLock lock(&parts_->state.mutex);
  parts_->compactions.Schedule();
  EXPECT_EQ(parts_->state.work.compactions_running, 0) << "none is due";
}

TEST_F(CompactionRunnerTest, MakesRoomByMergingLevel0Early) {
  ASSERT_TRUE(IsOk(FlushKeys("key", 100)));
  ASSERT_EQ(Pick(), nullptr) << "one flush makes none due";
  {
    MutexLock lock(&parts_->state.mutex);
    ++parts_->state.work.manual_compactions;
  }
  parts_->compactions.MakeRoom();
  EXPECT_EQ(version()->level0_runs(), 1) << "another call is at it";
  {
    MutexLock lock(&parts_->state.mutex);
    --parts_->state.work.manual_compactions;
  }
  parts_->compactions.MakeRoom();
  EXPECT_EQ(version()->level0_runs(), 0);
  MutexLock lock(&parts_->state.mutex);
  EXPECT_EQ(parts_->state.work.manual_compactions, 0);
  EXPECT_EQ(parts_->state.work.compactions_held, 1) << "it is the test that holds them";
}

}  // namespace
}  // namespace nacre
