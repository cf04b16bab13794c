// Goal: a write that is refused takes no sequence number; every other one ends: published, or
// unsettled until the log has it, or published without entries if the log never took it, or, if it
// broke off between log and MemTable, as the last one.
// Method: the parts of a database on an embedded pool, with a log whose segments the test denies
// and whose nodes it kills.

#include "db/write/write_path.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "db/wal/log_space.h"
#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/throwing_comparator.h"

namespace nacre {
namespace {

using Code = Status::Code;

/// The committer's segments, if the test gives any.
class DeniedSpace final : public LogSpace {
 public:
  explicit DeniedSpace(LogSpace* space) : space_(space) {}
  Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) override {
    if (denied_.load()) return Status::NoSpace("denied");
    return space_->NewSegment(number, bytes, segment);
  }
  void Deny(bool denied) { denied_.store(denied); }

 private:
  LogSpace* const space_;
  std::atomic<bool> denied_{false};
};

class WritePathTest : public PartsFixture {
 protected:
  ~WritePathTest() override {
    armed = false;
    if (parts_ != nullptr && writes().log() != nullptr) writes().log()->Close();  // Before space_.
  }

  void OpenWithLog() {
    ASSERT_NO_FATAL_FAILURE(Open());
    space_ = std::make_unique<DeniedSpace>(&parts_->committer);
    ASSERT_TRUE(IsOk(writes().OpenLog(/*next_number=*/1, LogReadResult(), space_.get())));
  }
  /// The log's present segment, and its next one, lose a node; no other one is given.
  void LoseLog() {
    space_->Deny(true);
    for (const LogSegment& segment : parts_->committer.manifest()->segments()) {
      pool_->KillEmbeddedNode(segment.copies[0].start.node);
    }
  }
  SequenceNumber published() { return parts_->generations.sequencer()->LastPublished(); }
  WritePath& writes() { return parts_->writes; }

  std::unique_ptr<DeniedSpace> space_;
};

TEST_F(WritePathTest, PublishesWhatItInserts) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(Put("a", "1")));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("b", "2")));
  ASSERT_TRUE(IsOk(batch.Delete("a")));
  ASSERT_TRUE(IsOk(writes().Write({}, &batch)));
  EXPECT_EQ(published(), 3u);
  EXPECT_EQ(Get("a"), "(NotFound)");
  EXPECT_EQ(Get("b"), "2");
  EXPECT_FALSE(writes().IsLogged({})) << "there is no log";
}

TEST_F(WritePathTest, ARefusedWriteTakesNoNumber) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto write = [this](ValueType type, const Slice& key, const Slice& value) {
    return writes().WriteOne({}, family(), type, key, value);
  };
  EXPECT_TRUE(IsFailure(write(ValueType::kMerge, "a", "1"), Code::kNotSupported));
  EXPECT_TRUE(IsFailure(write(ValueType::kRangeDeletion, "b", "a"), Code::kInvalidArgument));
  WriteOptions contradictory;
  contradictory.disable_wal = contradictory.sync = true;
  EXPECT_TRUE(IsFailure(writes().WriteOne(contradictory, family(), ValueType::kValue, "a", "1"),
                        Code::kInvalidArgument));
  WriteBatch half;
  ASSERT_TRUE(IsOk(half.Put("a", "1")));
  ASSERT_TRUE(IsOk(half.Merge("a", "2")));
  EXPECT_TRUE(IsFailure(writes().Write({}, &half), Code::kNotSupported));
  EXPECT_TRUE(IsFailure(writes().Write({}, nullptr), Code::kInvalidArgument));
  EXPECT_EQ(published(), 0u);
  EXPECT_EQ(Get("a"), "(NotFound)");
}

TEST_F(WritePathTest, AStartedWriteIsSeenOnceItIsFinished) {
  ASSERT_NO_FATAL_FAILURE(Open());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "1")));
  StartedWrite started;
  ASSERT_TRUE(writes().Start({}, &batch, &started));
  EXPECT_EQ(Get("a"), "(NotFound)");
  ASSERT_TRUE(IsOk(writes().Finish({}, started)));
  EXPECT_EQ(Get("a"), "1");
  {
    MutexLock lock(&parts_->state.mutex);
    parts_->state.work.memtable_full = true;
    parts_->write_controller.Update();
  }
  EXPECT_FALSE(writes().Start({}, &batch, &started)) << "it would have to wait";
  EXPECT_EQ(published(), 1u);
}

TEST_F(WritePathTest, AWriteThatTheLogNeverTookHasNoEntries) {
  options_.manual_wal_flush = true;  // Writes do not await the log.
  ASSERT_NO_FATAL_FAILURE(OpenWithLog());
  ASSERT_TRUE(writes().IsLogged({}));
  LoseLog();
  ASSERT_TRUE(IsOk(Put("a", "1")));
  ASSERT_TRUE(IsFailure(writes().SyncLog(), Code::kNoSpace));
  EXPECT_TRUE(IsFailure(Put("b", "2"), Code::kNoSpace));
  EXPECT_EQ(published(), 2u) << "later writes do not wait for it";
  space_->Deny(false);
  ASSERT_TRUE(IsOk(Put("c", "3")));
  ASSERT_TRUE(IsOk(writes().SyncLog()));
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "(NotFound)");
  EXPECT_EQ(Get("c"), "3");
}

TEST_F(WritePathTest, AWriteThatNoNodeAcknowledgedIsSettledLater) {
  ASSERT_NO_FATAL_FAILURE(OpenWithLog());
  ASSERT_TRUE(IsOk(Put("a", "1")));
  LoseLog();
  EXPECT_FALSE(Put("a", "2").ok());
  EXPECT_EQ(published(), 1u);
  EXPECT_EQ(Get("a"), "1");
  EXPECT_FALSE(writes().Settle().ok());
  EXPECT_FALSE(writes().why_stuck()().ok());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("b", "3")));
  StartedWrite started;
  EXPECT_FALSE(writes().Start({}, &batch, &started)) << "it would have to settle first";
  space_->Deny(false);
  ASSERT_TRUE(IsOk(writes().Settle()));
  EXPECT_EQ(Get("a"), "2");
  EXPECT_TRUE(IsOk(writes().why_stuck()()));
  ASSERT_TRUE(IsOk(Put("b", "3")));
  EXPECT_EQ(Get("b"), "3");
}

TEST_F(WritePathTest, AWriteThatBreaksOffIsTheLastOne) {
  const ThrowingComparator comparator;
  options_.comparator = &comparator;
  ASSERT_NO_FATAL_FAILURE(OpenWithLog());
  ASSERT_TRUE(IsOk(Put("a", "1")));
  armed = true;
  EXPECT_TRUE(IsFailure(Put("poison", "2"), Code::kAborted));
  armed = false;
  EXPECT_EQ(published(), 1u) << "part of it may be in the MemTable";
  EXPECT_TRUE(IsFailure(parts_->write_controller.fault(), Code::kAborted));
  EXPECT_TRUE(IsFailure(Put("b", "3"), Code::kAborted));
  EXPECT_TRUE(IsFailure(writes().why_stuck()(), Code::kAborted));
  EXPECT_EQ(Get("a"), "1");
  parts_.reset();  // Before the comparator.
}

}  // namespace
}  // namespace nacre
