// Goal: DB::GetUpdatesSince gives out each batch of the log once, in the order of sequences, as it
// was written, while the owner writes, flushes, dies and is replaced; what has gone from the log is
// missing and nothing else; WAL_size_limit_MB has it stay. Method: an owner, and readers over
// clients of their own, on nacre-memnode processes.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/transaction_log.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// The bytes of a batch behind its sequence.
std::string UpdatesOf(const WriteBatch& batch) { return batch.Data().substr(sizeof(uint64_t)); }

class LogUpdatesTest : public testing::Test {
 protected:
  void SetUp() override {
    owner_pool_ = ConnectTestPool(nodes_.pool_uri());
    reader_pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(reader_pool_, nullptr);
    options_ = SmallTableOptions(owner_pool_);
    options_.redundancy = "rep(2)";
    options_.write_buffer_size = 256 << 10;
    options_.merge_operator.reset();
  }
  void OpenOwner() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  void OpenReader() {
    Options reading = options_;
    reading.pool = reader_pool_;
    ASSERT_TRUE(IsOk(DB::OpenAsSecondary(reading, "db", &reader_)));
  }
  /// A batch of one to five updates; its sequence is that of the first.
  void WriteOne() {
    WriteBatch batch;
    const uint64_t count = 1 + random_.Uniform(5);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(500));
      if (random_.OneIn(8)) {
        ASSERT_TRUE(IsOk(batch.Delete(key)));
      } else {
        ASSERT_TRUE(IsOk(batch.Put(key, TestValue(random_.Next(), random_.Uniform(1000)))));
      }
    }
    const uint64_t first = db_->GetLatestSequenceNumber() + 1;
    written_[first] = UpdatesOf(batch);
    ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  }
  void WriteMany(int batches) {
    for (int i = 0; i < batches; ++i) ASSERT_NO_FATAL_FAILURE(WriteOne());
  }
  /// All that `updates` has from where it is; sequences must follow one another.
  void Take(TransactionLogIterator* updates, uint64_t* next) {
    if (!updates->Valid()) updates->Next();
    for (; updates->Valid(); updates->Next()) {
      const BatchResult batch = updates->GetBatch();
      if (*next != 0) {
        ASSERT_EQ(batch.sequence, *next);
      }
      *next = batch.sequence + batch.write_batch->Count();
      ASSERT_FALSE(taken_.contains(batch.sequence));
      taken_[batch.sequence] = UpdatesOf(*batch.write_batch);
    }
    ASSERT_TRUE(IsOk(updates->status()));
  }

  MemnodeProcesses nodes_{3, {.size = "64MiB", .slab_size = "1MiB"}};
  std::shared_ptr<pool::PoolImpl> owner_pool_;
  std::shared_ptr<pool::PoolImpl> reader_pool_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<DB> reader_;
  std::map<uint64_t, std::string> written_;
  std::map<uint64_t, std::string> taken_;
  Random random_{TestSeed(1)};
};

TEST_F(LogUpdatesTest, GivesEachBatchOnceWhileTheOwnerWritesAndFlushes) {
  options_.WAL_size_limit_MB = 8;
  OpenOwner();
  WriteMany(10);
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(0, &updates)));
  uint64_t next = 0;
  for (int round = 0; round < 40; ++round) {
    WriteMany(30);
    if (random_.OneIn(6)) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    ASSERT_NO_FATAL_FAILURE(Take(updates.get(), &next));
  }
  ASSERT_TRUE(Eventually([&] {
    Take(updates.get(), &next);
    return HasFatalFailure() || next == db_->GetLatestSequenceNumber() + 1;
  }));
  EXPECT_TRUE(taken_ == written_);
}

TEST_F(LogUpdatesTest, GoesOnWithTheNextOwner) {
  options_.WAL_size_limit_MB = 8;
  OpenOwner();
  WriteMany(20);
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  uint64_t next = 1;
  for (int round = 0; round < 6; ++round) {
    WriteMany(60);
    if (random_.OneIn(2)) {
      ASSERT_NO_FATAL_FAILURE(Take(updates.get(), &next));
    }
    std::unique_ptr<DB> before;
    if (random_.OneIn(2)) {
      ASSERT_TRUE(IsOk(db_->Close()));
    } else {
      // It is taken over while it is open.
      before = std::move(db_);
      options_.take_over = true;
    }
    options_.pool = owner_pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NO_FATAL_FAILURE(OpenOwner());
  }
  WriteMany(20);
  ASSERT_TRUE(Eventually([&] {
    Take(updates.get(), &next);
    return HasFatalFailure() || next == db_->GetLatestSequenceNumber() + 1;
  }));
  EXPECT_TRUE(taken_ == written_);
}

TEST_F(LogUpdatesTest, AnOwnerHasThemToo) {
  options_.WAL_size_limit_MB = 8;
  OpenOwner();
  WriteMany(50);
  const uint64_t since = std::next(written_.begin(), 20)->first;
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(db_->GetUpdatesSince(since, &updates)));
  uint64_t next = since;
  ASSERT_NO_FATAL_FAILURE(Take(updates.get(), &next));
  written_.erase(written_.begin(), written_.find(since));
  EXPECT_TRUE(taken_ == written_);
}

TEST_F(LogUpdatesTest, WhatHasGoneFromTheLogIsMissing) {
  OpenOwner();
  WriteMany(300);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const uint64_t flushed = db_->GetLatestSequenceNumber();
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  for (; updates->Valid(); updates->Next()) {
    const BatchResult batch = updates->GetBatch();
    EXPECT_GT(batch.sequence, 1u) << "the memory of its log had been given back";
  }
  ASSERT_TRUE(IsOk(updates->status()));
  EXPECT_EQ(updates->LatestSequence(), flushed);
  WriteMany(1);
  ASSERT_TRUE(Eventually([&] {
    updates->Next();
    return updates->Valid();
  }));
  EXPECT_EQ(updates->GetBatch().sequence, flushed + 1);
}

TEST_F(LogUpdatesTest, WritesWithoutTheLogAreLeftOut) {
  OpenOwner();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(db_->GetUpdatesSince(1, &updates)));
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "b", "2")));
  ASSERT_TRUE(IsOk(db_->Put({}, "c", "3")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Put({}, "d", "4")));
  std::vector<uint64_t> sequences;
  ASSERT_TRUE(Eventually([&] {
    if (!updates->Valid()) updates->Next();
    for (; updates->Valid(); updates->Next()) sequences.push_back(updates->GetBatch().sequence);
    return !sequences.empty() && sequences.back() == 4;
  })) << testing::PrintToString(sequences)
      << " " << updates->status().ToString();
  EXPECT_TRUE(std::find(sequences.begin(), sequences.end(), 2u) == sequences.end());
}

TEST_F(LogUpdatesTest, ADatabaseThatIsClosedHasThemOnceItIsOpened) {
  OpenOwner();
  WriteMany(20);
  ASSERT_TRUE(IsOk(db_->Close()));
  const uint64_t flushed = written_.rbegin()->first;
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  EXPECT_FALSE(updates->Valid());
  EXPECT_GE(updates->LatestSequence(), flushed);
  written_.clear();
  OpenOwner();
  WriteMany(20);
  uint64_t next = written_.begin()->first;
  ASSERT_TRUE(Eventually([&] {
    Take(updates.get(), &next);
    return HasFatalFailure() || next == db_->GetLatestSequenceNumber() + 1;
  }));
  EXPECT_TRUE(taken_ == written_);
}

TEST_F(LogUpdatesTest, ADestroyedDatabaseIsAborted) {
  OpenOwner();
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_TRUE(IsOk(DestroyDB("db", options_)));
  EXPECT_TRUE(Eventually([&] {
    updates->Next();
    return updates->status().IsAborted();
  })) << updates->status().ToString();
}

TEST(LogUpdatesOfEmbeddedTest, ThereIsNoLog) {
  Options options = SmallTableOptions(OpenTestPool());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  std::unique_ptr<TransactionLogIterator> updates;
  const Status status = db->GetUpdatesSince(1, &updates);
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
}

}  // namespace
}  // namespace nacre
