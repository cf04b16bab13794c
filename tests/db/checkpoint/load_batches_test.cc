// Goal: batches that are loaded behind a checkpoint leave the database as if it had been written as
// the other one was, with the same sequence numbers, however many threads insert them; and what
// does not belong there is refused, by its sequence. Method: a database with two families is
// written with updates of all kinds; it and the one that is restored from its checkpoint and from
// the batches are compared key by key.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "nacre/checkpoint.h"
#include "nacre/merge_operator.h"
#include "nacre/write_batch.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/coding.h"

namespace nacre {
namespace {

using Code = Status::Code;

/// The parameter is the number of threads.
class LoadBatchesTest : public CheckpointFixture, public testing::WithParamInterface<int> {
 protected:
  static constexpr uint64_t kLoadedKeys = 3000;

  void SetUp() override {
    pool_ = OpenTestPool({.nodes = 3});
    options_ = SmallTableOptions(pool_);
    options_.redundancy = "rs(2,1)";
    options_.create_if_missing = true;
    options_.disable_auto_compactions = true;  // They may drop what has a sequence number.
    options_.create_missing_column_families = true;
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", Families(), &handles_, &db_)));
    WriteMany(200);
    ASSERT_TRUE(IsOk(MakeCheckpoint()));
    from_ = db_->GetSnapshot();
  }
  void TearDown() override {
    db_->ReleaseSnapshot(from_);
    for (ColumnFamilyHandle* const handle : handles_) {
      EXPECT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
    }
  }
  std::vector<ColumnFamilyDescriptor> Families() const {
    return {{kDefaultColumnFamilyName, options_}, {"second", options_}};
  }
  static std::string LoadedKey(uint64_t i) { return "key" + std::to_string(i); }

  /// Writes batches, and keeps what the log has of them.
  void WriteMany(int count) {
    for (int n = 0; n < count; ++n) {
      WriteBatch batch;
      for (uint64_t i = random_.Uniform(12) + 1; i > 0; --i) {
        ColumnFamilyHandle* const family = handles_[random_.Uniform(2)];
        const std::string key = LoadedKey(random_.Uniform(kLoadedKeys));
        const uint64_t kind = random_.Uniform(40);
        Status status;
        if (kind == 0) {
          status = batch.DeleteRange(family, key, key + "5");
        } else if (kind < 6) {
          status = batch.Delete(family, key);
        } else if (kind < 12) {
          status = batch.Merge(family, key, "more");
        } else {
          status = batch.Put(family, key, TestValue(random_.Next(), random_.Uniform(300)));
        }
        ASSERT_TRUE(IsOk(status));
      }
      ASSERT_TRUE(IsOk(batch.PutLogData("not an update")));
      std::string bytes = batch.Data();
      EncodeFixed64(bytes.data(), db_->GetLatestSequenceNumber() + 1);
      ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
      batches_.push_back(std::move(bytes));
    }
  }
  /// Those behind what `db` has.
  std::vector<Slice> BatchesBehind(DB* db) const {
    std::vector<Slice> left;
    for (const std::string& batch : batches_) {
      if (DecodeFixed64(batch.data()) > db->GetLatestSequenceNumber()) left.push_back(batch);
    }
    return left;
  }
  /// Restores the checkpoint, with `then` behind it.
  Status RestoreThen(const std::function<Status(DB* db)>& then) {
    RestoreOptions restore;
    restore.threads = GetParam();
    restore.then = then;
    return Restore("copy", restore);
  }
  /// Behind a snapshot, as flushes forget sequence numbers that no snapshot asks for.
  static Status LoadAndFlush(DB* db, const std::vector<Slice>& batches) {
    const Snapshot* const snapshot = db->GetSnapshot();
    Status status = LoadBatches(db, batches, GetParam());
    if (status.ok()) status = db->Flush({});
    db->ReleaseSnapshot(snapshot);
    return status;
  }
  Status RestoreAll() {
    return RestoreThen([&](DB* db) { return LoadAndFlush(db, BatchesBehind(db)); });
  }
  /// Compares the databases.
  void CheckCopy() {
    std::vector<ColumnFamilyHandle*> copied;
    std::unique_ptr<DB> copy;
    ASSERT_TRUE(IsOk(DB::Open(options_, "copy", Families(), &copied, &copy)));
    EXPECT_EQ(copy->GetLatestSequenceNumber(), db_->GetLatestSequenceNumber());
    uint64_t compared = 0;
    for (size_t family = 0; family < handles_.size(); ++family) {
      for (uint64_t i = 0; i < kLoadedKeys; ++i) {
        const std::string key = LoadedKey(i);
        std::string expected;
        std::string found;
        const Status here = db_->Get({}, handles_[family], key, &expected);
        const Status there = copy->Get({}, copied[family], key, &found);
        ASSERT_EQ(there.ToString(), here.ToString()) << key;
        ASSERT_TRUE(found == expected) << key;
        if (!here.ok()) continue;  // Flushes drop deletions that have nothing below.
        const uint64_t sequence = SequenceOf(db_.get(), handles_[family], key);
        if (sequence <= from_->GetSequenceNumber()) continue;
        ++compared;
        ASSERT_EQ(SequenceOf(copy.get(), copied[family], key), sequence) << key;
      }
    }
    EXPECT_GT(compared, 0u);
    for (ColumnFamilyHandle* const handle : copied) {
      ASSERT_TRUE(IsOk(copy->DestroyColumnFamilyHandle(handle)));
    }
  }

  std::vector<ColumnFamilyHandle*> handles_;
  const Snapshot* from_ = nullptr;  ///< As of the checkpoint.
  std::vector<std::string> batches_;

 private:
  static uint64_t SequenceOf(DB* db, ColumnFamilyHandle* family, const std::string& key) {
    SequenceNumber sequence = 0;
    EXPECT_TRUE(IsOk(dynamic_cast<DBImpl*>(db)->key_sequences().Latest(family->GetID(), key,
                                                                       /*known=*/0, &sequence)));
    return sequence;
  }
};

INSTANTIATE_TEST_SUITE_P(Threads, LoadBatchesTest, testing::Values(1, 4));

TEST_P(LoadBatchesTest, AreAsIfTheyHadBeenWritten) {
  ASSERT_NO_FATAL_FAILURE(WriteMany(3000));
  ASSERT_TRUE(IsOk(RestoreAll()));
  ASSERT_NO_FATAL_FAILURE(CheckCopy());
}

TEST_P(LoadBatchesTest, GoOnWhereTheyWere) {
  ASSERT_NO_FATAL_FAILURE(WriteMany(3000));
  uint64_t reached = 0;
  for (const size_t count : {100, 1700}) {
    const Status status = RestoreThen([&](DB* db) -> Status {
      EXPECT_GE(db->GetLatestSequenceNumber(), reached);
      std::vector<Slice> some = BatchesBehind(db);
      some.resize(count);
      NACRE_RETURN_IF_ERROR(LoadAndFlush(db, some));
      reached = db->GetLatestSequenceNumber();
      return Status::Aborted("as after a kill");
    });
    ASSERT_TRUE(IsFailure(status, Code::kAborted, "as after a kill"));
    std::unique_ptr<DB> half;
    ASSERT_TRUE(DB::Open(options_, "copy", &half).IsIncomplete());
  }
  ASSERT_TRUE(IsOk(RestoreAll()));
  ASSERT_NO_FATAL_FAILURE(CheckCopy());
}

TEST_P(LoadBatchesTest, WhatDoesNotBelongThereIsRefused) {
  ASSERT_NO_FATAL_FAILURE(WriteMany(300));
  std::vector<Status> answers;
  const auto load = [&](DB* db, const std::vector<Slice>& batches) {
    answers.push_back(LoadBatches(db, batches, GetParam()));
  };
  ASSERT_TRUE(IsOk(RestoreThen([&](DB* db) -> Status {
    const std::vector<Slice> left = BatchesBehind(db);
    load(db, {left[0], left[2]});
    std::string of_no_family = left[1].ToString();
    of_no_family.resize(12);
    EncodeFixed32(of_no_family.data() + 8, 1);
    of_no_family += std::string("\x05\x63\x01k\x01v", 6);  // A value of family 99.
    EncodeFixed64(of_no_family.data(), db->GetLatestSequenceNumber() + 1);
    load(db, {of_no_family});
    std::string cut = left[1].ToString();
    cut.resize(cut.size() - 1);
    EncodeFixed64(cut.data(), db->GetLatestSequenceNumber() + 1);
    load(db, {cut});
    load(db, {Slice("short")});
    answers.push_back(LoadBatches(db, left, 65));
    return LoadAndFlush(db, BatchesBehind(db));
  })));
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(IsFailure(answers[0], Code::kInvalidArgument, "follows"));
  EXPECT_TRUE(IsFailure(answers[1], Code::kInvalidArgument, "column family 99"));
  EXPECT_TRUE(IsFailure(answers[2], Code::kCorruption, "sequence"));
  EXPECT_TRUE(IsFailure(answers[3], Code::kCorruption, "5 bytes"));
  EXPECT_TRUE(IsFailure(answers[4], Code::kInvalidArgument, "threads is 65"));
  ASSERT_NO_FATAL_FAILURE(CheckCopy());
  EXPECT_TRUE(IsFailure(LoadBatches(db_.get(), {}, GetParam()), Code::kNotSupported, "restored"));
}

}  // namespace
}  // namespace nacre
