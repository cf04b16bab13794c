// Goal: a change is durable before it is current; what a failed change was to add is freed, but not
// while the change may be durable; after a change that cannot be made current none is committed.
// Method: a committer on an embedded pool, without a database around it.

#include "db/commit/state_committer.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "pool/databases.h"
#include "table/format/write_batch_format.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class StateCommitterTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = SmallTableOptions(pool_);
    pool::DatabaseLease lease;
    ASSERT_TRUE(
        IsOk(pool_->client()->databases()->Open("committed", {.create_if_missing = true}, &lease)));
    ManifestState initial;
    initial.comparator = options_.comparator->Name();
    initial.num_levels = static_cast<uint32_t>(options_.num_levels);
    initial.slab_bytes = pool_->client()->options().slab_bytes;
    initial.database_id = lease.database_id;
    for (const auto& [node, slabs] : lease.slabs) {
      initial.nodes[node] = pool_->client()->instance_id(node);
    }
    RedundancyPolicy redundancy;
    ASSERT_TRUE(IsOk(RedundancyPolicy::Parse("rep(2)", &redundancy)));
    context_ = std::make_unique<DatabaseContext>(
        /*db=*/nullptr, options_, "committed", redundancy, pool_, lease, initial.slab_bytes,
        /*first_table_id=*/1, [this] { return state_->Versions(); });
    state_ = std::make_unique<DatabaseState>(context_.get(), options_, initial);
    auto families = std::make_shared<ColumnFamilySet>();
    families->by_id[kDefaultFamily] = state_->default_family;
    {
      MutexLock lock(&state_->mutex);
      state_->InstallView(
          state_->default_family.get(), {},
          std::make_shared<Version>(&state_->default_family->comparator(), options_.num_levels));
      state_->InstallFamilies(std::move(families));
    }
    committer_ = std::make_unique<StateCommitter>(context_.get(), state_.get(),
                                                  [this](const Status& why) { stopped_ = why; });
    ASSERT_TRUE(IsOk(committer_->Open(std::move(initial), /*image=*/nullptr, /*previous=*/{})));
  }
  void TearDown() override {
    if (committer_ != nullptr && committer_->manifest() != nullptr) committer_->manifest()->Close();
    if (context_ != nullptr) context_->events.Stop();
  }

  Status CommitNothing() {
    MutexLock commit(&committer_->mutex);
    ManifestEdit edit;
    return committer_->CommitEdit(&edit);
  }

  const std::shared_ptr<pool::PoolImpl> pool_ = OpenTestPool();
  Options options_;
  Status stopped_;
  std::unique_ptr<DatabaseContext> context_;
  std::unique_ptr<DatabaseState> state_;
  std::unique_ptr<StateCommitter> committer_;
};

TEST_F(StateCommitterTest, MakesAChangeCurrentOnceItIsDurable) {
  const uint64_t before = committer_->manifest()->version();
  ManifestEdit edit;
  uint64_t durable = 0;
  ASSERT_TRUE(
      IsOk(committer_->Commit({}, &edit, [&] { durable = committer_->manifest()->version(); })));
  EXPECT_EQ(durable, before + 1);
  MutexLock lock(&state_->mutex);
  EXPECT_EQ(state_->manifest_version, durable);
}

TEST_F(StateCommitterTest, FreesWhatAFailedChangeWasToAddOnceItIsCertain) {
  bool certain = false;
  bool uncertain = false;
  {
    MutexLock commit(&committer_->mutex);
    committer_->Free(Status::NoSpace("full"), [&certain] { certain = true; });
    committer_->Free(Status::TimedOut("no answer"), [&uncertain] { uncertain = true; });
  }
  EXPECT_TRUE(certain);
  EXPECT_FALSE(uncertain);
  ASSERT_TRUE(IsOk(CommitNothing()));
  EXPECT_TRUE(uncertain);
}

TEST_F(StateCommitterTest, RecordsSegmentsOfTheLogUntilTheyAreDropped) {
  const auto bytes = [this] {
    uint64_t sum = 0;
    for (const auto& [node, of_node] : context_->copy_bytes.ByNode()) sum += of_node;
    return sum;
  };
  const uint64_t without = bytes();
  LogSegment segment;
  ASSERT_TRUE(IsOk(committer_->NewSegment(/*number=*/7, /*bytes=*/64 << 10, &segment)));
  EXPECT_EQ(segment.copies.size(), 2u);
  ASSERT_EQ(committer_->manifest()->segments().size(), 1u);
  EXPECT_EQ(committer_->manifest()->segments()[0].number, 7u);
  EXPECT_GE(bytes(), without + (2 * 64 << 10));
  committer_->RecordState();  // Which stays.
  ASSERT_TRUE(IsOk(committer_->DropLog(/*last=*/12)));
  EXPECT_EQ(committer_->manifest()->segments().size(), 1u);
  EXPECT_EQ(committer_->manifest()->last_sequence(), 12u);
}

TEST_F(StateCommitterTest, CommitsNothingAfterAChangeThatCannotBeMadeCurrent) {
  ManifestEdit edit;
  EXPECT_THROW(
      committer_->Commit({}, &edit, [] { throw std::runtime_error("no memory"); }).IgnoreError(),
      std::runtime_error);
  EXPECT_FALSE(stopped_.ok());
  EXPECT_FALSE(CommitNothing().ok());
}

}  // namespace
}  // namespace nacre
