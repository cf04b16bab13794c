// Goal: a range deletion hides what is older and nothing else, from reads, iterators, snapshots,
// followers and later owners, wherever it and what it hides lie; what is hidden goes when it is
// compacted, and so does the range deletion at the bottom.
// Method: nacre-memnode processes; random updates and range deletions beside a model; single cases
// of what has ends that touch.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "pool/pool_impl.h"
#include "tests/support/model/modelled_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class DBRangeDeletionTest : public ModelledDBTest {
 protected:
  DBRangeDeletionTest() : ModelledDBTest(4200, AllKeys()) {}

  void Start() {
    StartNodes();
    ASSERT_NO_FATAL_FAILURE(Open());
  }

  static std::vector<std::string> AllKeys() {
    std::vector<std::string> keys;
    for (uint64_t n = 0; n < 310; ++n) keys.push_back(Key(n));
    return keys;
  }
  static std::string Key(uint64_t n) { return "key" + std::to_string(1000 + n); }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(IsOk(db_->Put({}, key, value)));
    model_.Put(key, value);
  }
  void DeleteRange(const std::string& begin, const std::string& end) {
    ASSERT_TRUE(IsOk(db_->DeleteRange({}, begin, end)));
    model_.DeleteRange(begin, end);
  }
  void Write() {
    const uint64_t n = random_.Uniform(300);
    switch (random_.Uniform(12)) {
      case 0: {
        const uint64_t length = random_.Skewed(6);
        if (random_.OneIn(2)) return DeleteRange(Key(n), Key(n + length));
        WriteBatch batch;
        ASSERT_TRUE(IsOk(batch.Put(Key(n), "gone at once")));
        ASSERT_TRUE(IsOk(batch.DeleteRange(Key(n), Key(n + length))));
        ASSERT_TRUE(IsOk(batch.Put(Key(n + 1), "stays")));
        ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
        model_.Put(Key(n), "gone at once");
        model_.DeleteRange(Key(n), Key(n + length));
        model_.Put(Key(n + 1), "stays");
        return;
      }
      case 1:
        ASSERT_TRUE(IsOk(db_->Delete({}, Key(n))));
        model_.Delete(Key(n));
        return;
      default:
        return Put(Key(n), TestValue(random_.Next(), random_.Uniform(300)));
    }
  }
};

TEST_F(DBRangeDeletionTest, SurvivesFlushesCompactionsOwnersAndFollowers) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options_, "db", &follower)));
  std::unique_ptr<DB> predecessor;
  uint64_t fallbacks = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(Write());
    const Snapshot* const snapshot = db_->GetSnapshot();
    const uint64_t time = model_.Now();
    for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(Write());
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
    ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(follower.get(), nullptr, model_.Now()));
    if (round % 4 == 3) {  // The next owner finds all of it in the log.
      db_->ReleaseSnapshot(snapshot);
      options_.take_over = true;
      options_.compaction = round == 3 ? CompactionSite::kCompute : CompactionSite::kAuto;
      fallbacks += GetNumber(db_.get(), "nacre.flush.fallback.range-deletions");
      predecessor = std::move(db_);
      ASSERT_NO_FATAL_FAILURE(Open());
      predecessor.reset();
      ASSERT_NO_FATAL_FAILURE(ExpectModel());
      continue;
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
    if (round % 2 == 0) {
      const std::string begin = Key(random_.Uniform(300));
      const Slice begin_slice(begin);
      ASSERT_TRUE(IsOk(db_->CompactRange({}, round % 4 == 0 ? &begin_slice : nullptr, nullptr)));
      ASSERT_NO_FATAL_FAILURE(ExpectModel());
      ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
    }
    ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(follower.get(), nullptr, model_.Now()));
    db_->ReleaseSnapshot(snapshot);
  }
  EXPECT_GT(fallbacks, 0U);
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(DeleteRange("", "z"));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  EXPECT_EQ(0U, GetNumber(db_.get(), "nacre.num-live-tables"))
      << GetTextProperty(db_.get(), "nacre.sstables");
}

TEST_F(DBRangeDeletionTest, BeginIsIncludedAndEndIsNot) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (uint64_t n = 0; n < 30; ++n) ASSERT_NO_FATAL_FAILURE(Put(Key(n), "old"));
  ASSERT_NO_FATAL_FAILURE(DeleteRange(Key(10), Key(20)));
  ASSERT_NO_FATAL_FAILURE(DeleteRange(Key(25), Key(25)));
  for (int i = 0; i < 3; ++i) {
    std::string value;
    EXPECT_TRUE(IsOk(db_->Get({}, Key(9), &value)));
    EXPECT_TRUE(db_->Get({}, Key(10), &value).IsNotFound());
    EXPECT_TRUE(db_->Get({}, Key(19), &value).IsNotFound());
    EXPECT_TRUE(IsOk(db_->Get({}, Key(20), &value)));
    EXPECT_TRUE(IsOk(db_->Get({}, Key(25), &value)));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_TRUE(IsOk(i == 0 ? db_->Flush({}) : db_->CompactRange({}, nullptr, nullptr)));
  }
  EXPECT_TRUE(db_->DeleteRange({}, "b", "a").IsInvalidArgument());
  EXPECT_EQ(20U, GetNumber(db_.get(), "nacre.estimate-num-keys"));
}

TEST_F(DBRangeDeletionTest, TablesThatTouchAtTheEndOfARangeAreBothRead) {
  ASSERT_NO_FATAL_FAILURE(Start());
  // A table below, of which the range deletion takes a part that ends where another table begins.
  for (uint64_t n = 0; n < 300; ++n) ASSERT_NO_FATAL_FAILURE(Put(Key(n), TestValue(n, 2000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const Snapshot* const snapshot = db_->GetSnapshot();
  const uint64_t time = model_.Now();
  for (uint64_t n = 0; n < 290; n += 10) {
    ASSERT_NO_FATAL_FAILURE(DeleteRange(Key(n), Key(n + 5)));
    ASSERT_NO_FATAL_FAILURE(Put(Key(n + 5), "at the end"));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_GT(GetNumber(db_.get(), "nacre.num-live-tables"), 3U);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  ASSERT_NO_FATAL_FAILURE(ExpectModel(db_.get(), snapshot, time));
  db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

TEST_F(DBRangeDeletionTest, AFullCompactionLeavesNothingOfThousands) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int round = 0; round < 3; ++round) {
    for (uint64_t n = 0; n < 300; ++n) ASSERT_NO_FATAL_FAILURE(Put(Key(n), "value"));
    for (uint64_t n = 0; n < 1000; ++n) {
      const uint64_t at = random_.Uniform(300);
      ASSERT_NO_FATAL_FAILURE(DeleteRange(Key(at), Key(at + 1 + random_.Uniform(4))));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  EXPECT_EQ(model_.Visible(model_.Now()).size(), GetNumber(db_.get(), "nacre.estimate-num-keys"));
  EXPECT_EQ(0U, GetNumber(db_.get(), "nacre.num-tombstones"));
}

}  // namespace
}  // namespace nacre
