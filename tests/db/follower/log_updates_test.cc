// Goal: DB::GetUpdatesSince gives out each batch of the log once, in the order of sequences, as it
// was written, while the owner writes, flushes, dies and is replaced; what has gone from the log is
// missing and nothing else; WAL_size_limit_MB has it stay, and so does what a reader has not
// acknowledged, up to a bound. Method: an owner, and readers over clients of their own, on
// nacre-memnode processes.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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

TEST_F(LogUpdatesTest, WhatAReaderHasNotAcknowledgedStays) {
  options_.max_archive_lag_MB = 16;
  OpenOwner();
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  const auto acknowledge = [&](uint64_t sequence) {
    ASSERT_TRUE(IsOk(updates->Acknowledge(/*reader=*/5, sequence, /*restorable=*/false)));
  };
  ASSERT_NO_FATAL_FAILURE(acknowledge(0));
  const auto number = [&](const char* property) {
    uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty(property, &value));
    return value;
  };
  ASSERT_TRUE(Eventually([&] { return number("nacre.log.readers") == 1; }));
  // All of it goes into tables, and the reader has read none of it.
  for (int flush = 0; flush < 4; ++flush) {
    WriteMany(400);
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  EXPECT_GT(number("nacre.log.kept-bytes"), 0u);
  // The next owner keeps it, though it does not read it; a node is lost as well.
  nodes_[2].Kill();
  std::unique_ptr<DB> before = std::move(db_);
  options_.take_over = true;
  options_.pool = owner_pool_ = ConnectTestPool(nodes_.pool_uri());
  OpenOwner();
  WriteMany(50);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  uint64_t next = 1;
  ASSERT_TRUE(Eventually([&] {
    Take(updates.get(), &next);
    return HasFatalFailure() || next == db_->GetLatestSequenceNumber() + 1;
  }));
  EXPECT_TRUE(taken_ == written_);
  EXPECT_GT(number("nacre.log.kept-bytes"), 0u);
  ASSERT_NO_FATAL_FAILURE(acknowledge(next - 1));
  EXPECT_TRUE(Eventually([&] { return number("nacre.log.kept-bytes") == 0; }));
}

TEST_F(LogUpdatesTest, AReaderThatIsTooFarBehindHoldsNothingBack) {
  options_.max_archive_lag_MB = 1;
  OpenOwner();
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  EXPECT_TRUE(IsFailure(updates->Acknowledge(0, 1, true), Status::Code::kInvalidArgument));
  ASSERT_TRUE(IsOk(updates->Acknowledge(5, 0, false)));
  uint64_t kept = 0;
  for (int flush = 0; flush < 12; ++flush) {
    WriteMany(400);
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(db_->GetIntProperty("nacre.log.kept-bytes", &kept));
    EXPECT_LE(kept, uint64_t{1} << 20);
  }
  updates->Next();
  ASSERT_TRUE(updates->Valid()) << updates->status().ToString();
  EXPECT_GT(updates->GetBatch().sequence, 1u) << "that is in no log any more";
}

TEST_F(LogUpdatesTest, AFullPoolGivesUpWhatIsKeptForReaders) {
  options_.max_archive_lag_MB = 1000;
  options_.redundancy = "rep(3)";
  OpenOwner();
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  ASSERT_TRUE(IsOk(updates->Acknowledge(5, 0, false)));
  // Each node has 64 MiB, of which the tables need few: the keys are the same again and again.
  const std::string value(1000, 'v');
  for (int i = 0; i < 120'000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(i % 1000), value))) << i;
  }
  uint64_t kept = 0;
  ASSERT_TRUE(db_->GetIntProperty("nacre.log.kept-bytes", &kept));
  EXPECT_LT(kept, uint64_t{64} << 20);
}

TEST_F(LogUpdatesTest, AWaitForAnArchiveEndsOnceOneHasItAll) {
  OpenOwner();
  WriteMany(10);
  const uint64_t last = db_->GetLatestSequenceNumber();
  constexpr std::chrono::milliseconds kShort{20};
  EXPECT_TRUE(IsFailure(db_->WaitForArchive(last, kShort), Status::Code::kUnavailable));
  OpenReader();
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(reader_->GetUpdatesSince(1, &updates)));
  ASSERT_TRUE(IsOk(updates->Acknowledge(5, last, /*restorable=*/false)));
  EXPECT_TRUE(IsFailure(db_->WaitForArchive(last, kShort), Status::Code::kTimedOut));
  Status waited;
  std::thread waiter(
      [&] { waited = db_->WaitForArchive(last, std::chrono::milliseconds(60'000)); });
  ASSERT_TRUE(IsOk(updates->Acknowledge(5, last - 1, /*restorable=*/true)));
  ASSERT_TRUE(IsOk(updates->Acknowledge(6, last, /*restorable=*/true)));
  waiter.join();
  EXPECT_TRUE(IsOk(waited));
  EXPECT_TRUE(IsFailure(db_->WaitForArchive(last + 1, kShort), Status::Code::kTimedOut));
  EXPECT_TRUE(IsFailure(reader_->WaitForArchive(last, kShort), Status::Code::kNotSupported));
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
  EXPECT_TRUE(
      IsFailure(db->WaitForArchive(1, std::chrono::milliseconds(1)), Status::Code::kNotSupported));
}

}  // namespace
}  // namespace nacre
