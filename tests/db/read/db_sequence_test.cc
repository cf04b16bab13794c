// Goal: a database whose sequence numbers run out refuses writes by a clean answer, for good, and
// goes on reading; one that names absurd ones is not opened.
// Method: a restore of a checkpoint without tables, whose sequence is near the end.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "db/checkpoint/table_restorer.h"
#include "db/db_impl.h"
#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBSequenceTest : public testing::Test {
 protected:
  DBSequenceTest() : options_(SmallTableOptions(OpenTestPool())) {}

  Status MakeDatabaseAt(SequenceNumber sequence) {
    ManifestState state;
    state.comparator = options_.comparator->Name();
    state.num_levels = static_cast<uint32_t>(options_.num_levels);
    state.last_sequence = sequence;
    state.restoring = 1;
    std::unique_ptr<DBImpl> restored;
    NACRE_RETURN_IF_ERROR(DBImpl::OpenToRestore(
        options_, "db", {{kDefaultColumnFamilyName, options_}}, state, &restored));
    NACRE_RETURN_IF_ERROR(TableRestorer(restored->parts()).End());
    return restored->Close();
  }

  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBSequenceTest, NumbersRunOut) {
  ASSERT_TRUE(IsOk(MakeDatabaseAt(WriteSequencer::kLastGiven - 5)));
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(db_->Put({}, "k", std::to_string(i)))) << i;
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("k", "batch")));
  ASSERT_TRUE(IsOk(batch.Put("l", "batch")));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(IsFailure(db_->Put({}, "k", "5"), Status::Code::kAborted, "sequence numbers"));
    EXPECT_TRUE(IsFailure(db_->Write({}, &batch), Status::Code::kAborted, "sequence numbers"));
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "k", &value)));
    EXPECT_EQ(value, "4");
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->Close()));
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }
}

TEST_F(DBSequenceTest, AbsurdNumbersAreDamage) {
  EXPECT_TRUE(IsFailure(MakeDatabaseAt(kMaxSequenceNumber), Status::Code::kCorruption, "sequence"));
}

}  // namespace
}  // namespace nacre
