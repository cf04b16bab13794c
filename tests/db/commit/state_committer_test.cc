// Goal: a change is durable before it is current; what a failed change was to add is freed, but not
// while the change may be durable; after a change that cannot be made current none is committed.
// Method: the committer of a database on an embedded pool, whose other parts do nothing.

#include "db/commit/state_committer.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

class StateCommitterTest : public PartsFixture {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open()); }

  Status CommitNothing() {
    MutexLock commit(&committer().mutex);
    ManifestEdit edit;
    return committer().CommitEdit(&edit);
  }
  StateCommitter& committer() { return parts_->committer; }
};

TEST_F(StateCommitterTest, MakesAChangeCurrentOnceItIsDurable) {
  const uint64_t before = committer().manifest()->version();
  ManifestEdit edit;
  uint64_t durable = 0;
  ASSERT_TRUE(
      IsOk(committer().Commit({}, &edit, [&] { durable = committer().manifest()->version(); })));
  EXPECT_EQ(durable, before + 1);
  MutexLock lock(&parts_->state.mutex);
  EXPECT_EQ(parts_->state.manifest_version, durable);
}

TEST_F(StateCommitterTest, FreesWhatAFailedChangeWasToAddOnceItIsCertain) {
  bool certain = false;
  bool uncertain = false;
  {
    MutexLock commit(&committer().mutex);
    committer().Free(Status::NoSpace("full"), [&certain] { certain = true; });
    committer().Free(Status::TimedOut("no answer"), [&uncertain] { uncertain = true; });
  }
  EXPECT_TRUE(certain);
  EXPECT_FALSE(uncertain);
  ASSERT_TRUE(IsOk(CommitNothing()));
  EXPECT_TRUE(uncertain);
}

TEST_F(StateCommitterTest, RecordsSegmentsOfTheLogUntilTheyAreDropped) {
  const auto bytes = [this] {
    uint64_t sum = 0;
    for (const auto& [node, of_node] : parts_->context.copy_bytes.ByNode()) sum += of_node;
    return sum;
  };
  const uint64_t without = bytes();
  LogSegment segment;
  ASSERT_TRUE(IsOk(committer().NewSegment(/*number=*/7, /*bytes=*/64 << 10, &segment)));
  EXPECT_EQ(segment.copies.size(), 2u);
  ASSERT_EQ(committer().manifest()->segments().size(), 1u);
  EXPECT_EQ(committer().manifest()->segments()[0].number, 7u);
  EXPECT_GE(bytes(), without + (2 * 64 << 10));
  committer().RecordState();  // Which stays.
  ASSERT_TRUE(IsOk(committer().DropLog(/*last=*/12)));
  // An archive may need it: the nodes have not been asked yet.
  EXPECT_EQ(committer().manifest()->segments().size(), 2u);
  parts_->context.log_readers.HeardAll();
  ASSERT_TRUE(IsOk(committer().DropLog(/*last=*/12)));
  EXPECT_EQ(committer().manifest()->segments().size(), 1u);
  EXPECT_EQ(committer().manifest()->last_sequence(), 12u);
}

TEST_F(StateCommitterTest, CommitsNothingAfterAChangeThatCannotBeMadeCurrent) {
  ManifestEdit edit;
  EXPECT_THROW(
      committer().Commit({}, &edit, [] { throw std::runtime_error("no memory"); }).IgnoreError(),
      std::runtime_error);
  EXPECT_FALSE(parts_->write_controller.fault().ok());
  EXPECT_FALSE(CommitNothing().ok());
}

}  // namespace
}  // namespace nacre
