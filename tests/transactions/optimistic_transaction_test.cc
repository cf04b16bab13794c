// Goal: optimistic transactions behave as RocksDB's, over a database and over the shards of a
// keyspace: what others have written since it was tracked makes Commit answer Busy, wherever the
// entries that tell lie by then, and nothing else does.
// Method: two parties in one thread, in every order that matters; flushes and compactions in
// between take the entries out of memory and drop tombstones.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

enum class Below : uint8_t { kDatabase, kKeyspace };

class OptimisticTransactionTest : public testing::TestWithParam<Below> {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    if (GetParam() == Below::kDatabase) {
      ASSERT_TRUE(
          IsOk(OptimisticTransactionDB::Open(SmallTableOptions(pool_), "optimistic", &db_)));
    } else {
      ShardedOptions options(SmallTableOptions(pool_));
      options.boundaries = {"b", "k", "m", "mine5"};
      ASSERT_TRUE(IsOk(OptimisticTransactionDB::Open(options, "optimistic", &db_)));
    }
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
  }
  std::unique_ptr<Transaction> Begin(bool set_snapshot = false) {
    OptimisticTransactionOptions options;
    options.set_snapshot = set_snapshot;
    return db_->BeginTransaction(NoLog(), options);
  }
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
  static testing::AssertionResult IsConflict(const Status& status) {
    return IsFailure(status, Status::Code::kBusy, "others have written");
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<OptimisticTransactionDB> db_;
};

TEST_P(OptimisticTransactionTest, NothingIsSeenBeforeTheCommit) {
  const std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_TRUE(IsOk(transaction->Put("k", "new")));
  ASSERT_TRUE(IsOk(transaction->Put("l", "new")));
  std::string value;
  ASSERT_TRUE(IsOk(transaction->Get({}, "k", &value)));
  EXPECT_EQ(value, "new");
  EXPECT_EQ(Get("k"), "old");
  EXPECT_EQ(transaction->GetNumPuts(), 2U);
  EXPECT_EQ(transaction->GetNumKeys(), 2U);
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("k"), "new");
  EXPECT_EQ(Get("l"), "new");
}

TEST_P(OptimisticTransactionTest, RolledBackTransactionsLeaveNothing) {
  const std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_TRUE(IsOk(transaction->Put("k", "new")));
  ASSERT_TRUE(IsOk(transaction->Rollback()));
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("k"), "old");
}

TEST_P(OptimisticTransactionTest, WritesOfOthersAreConflicts) {
  const std::vector<std::pair<const char*, std::function<Status()>>> writes = {
      {"put", [this] { return db_->Put(NoLog(), "k", "other"); }},
      {"delete", [this] { return db_->Delete(NoLog(), "k"); }},
      {"batch",
       [this] {
         WriteBatch batch;
         NACRE_RETURN_IF_ERROR(batch.Put("k", "other"));
         return db_->Write(NoLog(), &batch);
       }},
      {"transaction",
       [this] {
         const std::unique_ptr<Transaction> other = Begin();
         NACRE_RETURN_IF_ERROR(other->Put("k", "other"));
         return other->Commit();
       }},
      {"past this object", [this] { return db_->GetBaseDB()->Put(NoLog(), "k", "other"); }},
      {"a range", [this] { return db_->GetBaseDB()->DeleteRange(NoLog(), "j", "l"); }},
      {"a range in a table",
       [this] {
         NACRE_RETURN_IF_ERROR(db_->GetBaseDB()->DeleteRange(NoLog(), "j", "l"));
         return db_->Flush({});
       }},
  };
  for (const auto& [name, write] : writes) {
    SCOPED_TRACE(name);
    for (const bool reads : {false, true}) {
      const std::unique_ptr<Transaction> transaction = Begin();
      if (reads) {
        std::string value;
        ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
        ASSERT_TRUE(IsOk(transaction->GetForUpdate({}, "k", &value)));
        ASSERT_TRUE(IsOk(transaction->Put("other", "new")));
      } else {
        ASSERT_TRUE(IsOk(transaction->Put("k", "new")));
      }
      ASSERT_TRUE(IsOk(write()));
      EXPECT_TRUE(IsConflict(transaction->Commit()));
      ASSERT_TRUE(IsOk(transaction->Rollback()));
      EXPECT_NE(Get("k"), "new");
    }
  }
}

TEST_P(OptimisticTransactionTest, WhatIsNotTrackedIsNoConflict) {
  const std::unique_ptr<Transaction> transaction = Begin();
  std::string value;
  ASSERT_TRUE(IsOk(transaction->Get({}, "k", &value)));
  ASSERT_TRUE(IsOk(transaction->PutUntracked("l", "mine")));
  ASSERT_TRUE(IsOk(transaction->Put("m", "mine")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "other")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "l", "other")));
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("l"), "mine");
}

TEST_P(OptimisticTransactionTest, ASnapshotCountsFromWhenItWasTaken) {
  std::unique_ptr<Transaction> transaction = Begin(/*set_snapshot=*/true);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "other")));
  ASSERT_TRUE(IsOk(transaction->Put("k", "new")));
  ReadOptions options;
  options.snapshot = transaction->GetSnapshot();
  std::string value;
  ASSERT_TRUE(IsOk(transaction->GetForUpdate(options, "k", &value)));
  EXPECT_EQ(value, "new");
  EXPECT_TRUE(IsConflict(transaction->Commit()));

  transaction = Begin();
  transaction->SetSnapshotOnNextOperation();
  EXPECT_EQ(transaction->GetSnapshot(), nullptr);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "other again")));
  ASSERT_TRUE(IsOk(transaction->Put("k", "new")));
  EXPECT_NE(transaction->GetSnapshot(), nullptr);
  EXPECT_TRUE(IsOk(transaction->Commit()));
}

TEST_P(OptimisticTransactionTest, ConflictsAreFoundInTablesToo) {
  for (const bool deleted : {false, true}) {
    for (const bool compacted : {false, true}) {
      SCOPED_TRACE(std::string(deleted ? "deleted" : "put") + (compacted ? ", compacted" : ""));
      // A put that is younger than the first thing that was tracked, and older than the last: its
      // tombstone would go with it if only the first one's state was kept.
      const std::unique_ptr<Transaction> transaction = Begin();
      ASSERT_TRUE(IsOk(transaction->Put("first", "new")));
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
      ASSERT_TRUE(IsOk(transaction->GetForUpdate({}, "k", static_cast<std::string*>(nullptr))));
      ASSERT_TRUE(IsOk(deleted ? db_->Delete(NoLog(), "k") : db_->Put(NoLog(), "k", "other")));
      ASSERT_TRUE(IsOk(db_->Flush({})));
      if (compacted) {
        ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      }
      EXPECT_TRUE(IsConflict(transaction->Commit()));
    }
  }
}

TEST_P(OptimisticTransactionTest, FlushesAreNoConflicts) {
  for (const bool set_snapshot : {false, true}) {
    const std::unique_ptr<Transaction> transaction = Begin(set_snapshot);
    std::string value;
    ASSERT_TRUE(IsOk(transaction->GetForUpdate({}, "k", &value)));
    ASSERT_TRUE(IsOk(transaction->Put("k", value + "er")));
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "j", "beside it")));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    EXPECT_TRUE(IsOk(transaction->Commit()));
  }
  EXPECT_EQ(Get("k"), "olderer");
}

TEST_P(OptimisticTransactionTest, ManyTrackedKeysUnderWritesOfOthers) {
  const std::unique_ptr<Transaction> transaction = Begin();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "other" + std::to_string(i), "v")));
    ASSERT_TRUE(IsOk(transaction->Put("mine" + std::to_string(i), "v")));
  }
  EXPECT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("mine99"), "v");
}

TEST_P(OptimisticTransactionTest, SavePointsAndUndoneReads) {
  const std::unique_ptr<Transaction> transaction = Begin();
  EXPECT_TRUE(transaction->RollbackToSavePoint().IsNotFound());
  ASSERT_TRUE(IsOk(transaction->Put("a", "1")));
  transaction->SetSavePoint();
  ASSERT_TRUE(IsOk(transaction->Put("k", "1")));
  std::string value;
  ASSERT_TRUE(transaction->GetForUpdate({}, "b", &value).IsNotFound());
  ASSERT_TRUE(IsOk(transaction->RollbackToSavePoint()));
  EXPECT_EQ(transaction->GetNumKeys(), 1U);
  ASSERT_TRUE(transaction->GetForUpdate({}, "c", &value).IsNotFound());
  transaction->UndoGetForUpdate("c");
  transaction->UndoGetForUpdate("a");  // It was written.
  EXPECT_EQ(transaction->GetNumKeys(), 1U);
  for (const char* key : {"k", "b", "c"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "other")));
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("k"), "other");
}

TEST_P(OptimisticTransactionTest, IteratorsSeeTheTransaction) {
  const std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_TRUE(IsOk(transaction->Put("a", "new")));
  ASSERT_TRUE(IsOk(transaction->Delete("k")));
  transaction->DisableIndexing();
  ASSERT_TRUE(IsOk(transaction->Put("b", "not indexed")));
  transaction->EnableIndexing();
  const std::unique_ptr<Iterator> iterator = transaction->GetIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), Slice("a"));
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("b"), "not indexed");
}

TEST_P(OptimisticTransactionTest, ABatchAsATransaction) {
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "1")));
  ASSERT_TRUE(IsOk(batch.Delete("k")));
  const std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_TRUE(IsOk(transaction->RebuildFromWriteBatch(&batch)));
  EXPECT_EQ(transaction->GetNumKeys(), 2U);
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("a"), "1");
  std::string value;
  EXPECT_TRUE(db_->Get({}, "k", &value).IsNotFound());
}

TEST_P(OptimisticTransactionTest, AKeyOfAnotherFamilyIsAnotherKey) {
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily({}, "family", &family)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), family, "k", "of family")));
  std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_TRUE(IsOk(transaction->Put(family, "k", "new")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "of default")));
  ASSERT_TRUE(IsOk(transaction->Commit()));
  EXPECT_EQ(Get("k"), "of default");
  transaction = Begin();
  std::string value;
  ASSERT_TRUE(IsOk(transaction->GetForUpdate({}, family, "k", &value)));
  EXPECT_EQ(value, "new");
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), family, "k", "other")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_TRUE(IsConflict(transaction->Commit()));
  ASSERT_TRUE(IsOk(transaction->Rollback()));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
}

TEST_P(OptimisticTransactionTest, WhatIsNotThere) {
  const std::unique_ptr<Transaction> transaction = Begin();
  EXPECT_TRUE(IsFailure(transaction->Prepare(), Status::Code::kNotSupported));
  EXPECT_TRUE(IsFailure(transaction->SetName("n"), Status::Code::kNotSupported));
  if (GetParam() == Below::kKeyspace) return;  // It has no buckets, which ranges do not fit into.
  EXPECT_TRUE(IsFailure(db_->DeleteRange(NoLog(), "a", "b"), Status::Code::kNotSupported));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.DeleteRange("a", "b")));
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), &batch), Status::Code::kNotSupported, "DeleteRange"));
}

INSTANTIATE_TEST_SUITE_P(Over, OptimisticTransactionTest,
                         testing::Values(Below::kDatabase, Below::kKeyspace),
                         [](const testing::TestParamInfo<Below>& below) {
                           return below.param == Below::kDatabase ? "Database" : "Keyspace";
                         });

// ---- Of keyspaces alone -------------------------------------------------------------------------

class ShardedTransactionTest : public testing::Test {
 protected:
  void SetUp() override {
    ShardedOptions options(SmallTableOptions(OpenTestPool()));
    options.boundaries = {"m"};
    ASSERT_TRUE(IsOk(OptimisticTransactionDB::Open(options, "keys", &db_)));
    keyspace_ = static_cast<ShardedDB*>(db_->GetBaseDB());
    ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
    ASSERT_TRUE(IsOk(db_->Put({}, "z", "1")));
  }
  Status ReadBoth(Transaction* transaction) {
    std::string value;
    NACRE_RETURN_IF_ERROR(transaction->GetForUpdate({}, "a", &value));
    return transaction->GetForUpdate({}, "z", &value);
  }

  std::unique_ptr<OptimisticTransactionDB> db_;
  ShardedDB* keyspace_ = nullptr;
};

TEST_F(ShardedTransactionTest, WhatIsOnlyReadIsCheckedInItsShardToo) {
  for (const bool writes : {false, true}) {
    for (const char* const changed : {"", "a", "z"}) {
      SCOPED_TRACE(std::string(writes ? "writes, changed: " : "reads, changed: ") + changed);
      const std::unique_ptr<Transaction> transaction = db_->BeginTransaction({});
      ASSERT_TRUE(IsOk(ReadBoth(transaction.get())));
      if (writes) {
        ASSERT_TRUE(IsOk(transaction->Put("zz", "new")));
      }
      if (*changed != 0) {
        ASSERT_TRUE(IsOk(db_->Put({}, changed, "other")));
      }
      const Status status = transaction->Commit();
      EXPECT_TRUE(*changed == 0 ? IsOk(status) : IsFailure(status, Status::Code::kBusy));
      // Nothing holds the keys any more.
      ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
      ASSERT_TRUE(IsOk(db_->Put({}, "z", "1")));
    }
  }
}

TEST_F(ShardedTransactionTest, AShardThatWasSplitCountsAsWritten) {
  const std::unique_ptr<Transaction> transaction = db_->BeginTransaction({});
  ASSERT_TRUE(IsOk(ReadBoth(transaction.get())));
  ASSERT_TRUE(IsOk(transaction->Put("b", "new")));
  ASSERT_TRUE(IsOk(keyspace_->SplitShard(keyspace_->GetShards()[1].id, "x")));
  EXPECT_TRUE(IsFailure(transaction->Commit(), Status::Code::kBusy, "has moved"));
  ASSERT_TRUE(IsOk(transaction->Rollback()));
  // It begins anew.
  ASSERT_TRUE(IsOk(ReadBoth(transaction.get())));
  ASSERT_TRUE(IsOk(transaction->Put("b", "new")));
  ASSERT_TRUE(IsOk(transaction->Put("z", "new")));
  ASSERT_TRUE(IsOk(transaction->Commit()));
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, "z", &value)));
  EXPECT_EQ(value, "new");
}

}  // namespace
}  // namespace nacre
