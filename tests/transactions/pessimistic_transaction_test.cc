// Goal: transactions with locks behave as RocksDB's: which transaction waits for which and for how
// long, what a snapshot forbids, how deadlocks are found, what expires, what save points give back,
// what names and states allow. Method: two or more parties in one thread with locks that are not
// waited for; where one has to wait, a thread of its own, of which the others know by
// GetWaitingTxns that it waits.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// What transactions are over.
enum class Base : uint8_t { kDatabase, kKeyspace };

/// Beyond what any test takes.
constexpr int64_t kForeverMs = 1'000'000;

class PessimisticTransactionTest : public testing::TestWithParam<Base> {
 protected:
  void SetUp() override { Open({}); }
  void Open(TransactionDBOptions db_options) {
    db_.reset();
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    db_options.default_lock_timeout = 0;
    db_options.transaction_lock_timeout = 0;
    const Options options = SmallTableOptions(pool_);
    if (GetParam() == Base::kDatabase) {
      ASSERT_TRUE(IsOk(TransactionDB::Open(options, db_options, "locked", &db_)));
    } else {
      ShardedOptions sharded(options);
      sharded.boundaries = {"b", "k", "l"};
      ASSERT_TRUE(IsOk(TransactionDB::Open(sharded, db_options, "locked", &db_)));
    }
  }
  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) {
    return db_->BeginTransaction(NoLog(), options);
  }
  std::unique_ptr<Transaction> BeginPatient() {
    TransactionOptions options;
    options.deadlock_detect = true;
    options.lock_timeout = kForeverMs;
    return Begin(options);
  }
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
  static Status Lock(Transaction* transaction, const std::string& key, bool exclusive = true) {
    const Status status =
        transaction->GetForUpdate({}, key, static_cast<std::string*>(nullptr), exclusive);
    return status;
  }
  static bool Waits(Transaction* transaction) {
    return !transaction->GetWaitingTxns(nullptr, nullptr).empty();
  }
  static testing::AssertionResult IsTimeout(const Status& status) {
    return IsFailure(status, Status::Code::kTimedOut, "lock timeout");
  }
  static testing::AssertionResult IsDeadlock(const Status& status) {
    return IsFailure(status, Status::Code::kBusy, "deadlock");
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<TransactionDB> db_;
};

// ---- Locks ------------------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, WhatIsWrittenIsLockedUntilTheEnd) {
  const std::unique_ptr<Transaction> one = Begin();
  const std::unique_ptr<Transaction> two = Begin();
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  EXPECT_TRUE(IsTimeout(two->Put("k", "two")));
  EXPECT_TRUE(IsTimeout(Lock(two.get(), "k", /*exclusive=*/false)));
  EXPECT_TRUE(IsTimeout(two->PutUntracked("k", "two")));
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "k", "plain")));
  EXPECT_TRUE(IsTimeout(db_->Delete(NoLog(), "k")));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("j", "batch")));
  ASSERT_TRUE(IsOk(batch.Put("k", "batch")));
  EXPECT_TRUE(IsTimeout(db_->Write(NoLog(), &batch)));
  EXPECT_EQ(Get("j"), "NotFound");
  std::string value;
  EXPECT_TRUE(two->Get({}, "k", &value).IsNotFound());  // No lock.
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("k"), "one");
  ASSERT_TRUE(IsOk(two->Put("k", "two")));
  ASSERT_TRUE(IsOk(two->Rollback()));
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
  EXPECT_EQ(Get("k"), "batch");
  EXPECT_TRUE(db_->GetLockStatusData().empty());
}

TEST_P(PessimisticTransactionTest, ATransactionThatIsDestroyedGivesUpItsLocks) {
  std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  one.reset();
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "plain")));
}

TEST_P(PessimisticTransactionTest, SharedLocks) {
  const std::unique_ptr<Transaction> one = Begin();
  const std::unique_ptr<Transaction> two = Begin();
  ASSERT_TRUE(IsOk(Lock(one.get(), "k", /*exclusive=*/false)));
  ASSERT_TRUE(IsOk(Lock(two.get(), "k", /*exclusive=*/false)));
  const auto locks = db_->GetLockStatusData();
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks.begin()->first, 0U);
  EXPECT_EQ(locks.begin()->second.key, "k");
  EXPECT_EQ(locks.begin()->second.ids.size(), 2U);
  EXPECT_FALSE(locks.begin()->second.exclusive);
  EXPECT_TRUE(IsTimeout(one->Put("k", "one")));
  ASSERT_TRUE(IsOk(two->Rollback()));
  ASSERT_TRUE(IsOk(one->Put("k", "one")));  // Exclusive now.
  EXPECT_TRUE(IsTimeout(Lock(two.get(), "k", /*exclusive=*/false)));
}

TEST_P(PessimisticTransactionTest, WhoWaitsGetsTheLockWhenItIsGivenUp) {
  const std::unique_ptr<Transaction> one = Begin();
  const std::unique_ptr<Transaction> two = BeginPatient();
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  Status status;
  std::string value;
  Thread waiter("waiter", [&] { status = two->GetForUpdate({}, "k", &value); });
  EXPECT_TRUE(Eventually([&] { return Waits(two.get()); }));
  uint32_t family = 7;
  std::string key;
  EXPECT_EQ(two->GetWaitingTxns(&family, &key), std::vector<TransactionID>{one->GetID()});
  EXPECT_EQ(family, 0U);
  EXPECT_EQ(key, "k");
  EXPECT_TRUE(IsOk(one->Commit()));
  waiter.Join();
  EXPECT_TRUE(IsOk(status));
  EXPECT_EQ(value, "one");
}

TEST_P(PessimisticTransactionTest, AWaitEndsInTime) {
  const std::unique_ptr<Transaction> one = Begin();
  const std::unique_ptr<Transaction> two = Begin();
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  two->SetLockTimeout(20);
  EXPECT_TRUE(IsTimeout(two->Put("k", "two")));
}

TEST_P(PessimisticTransactionTest, NoMoreLocksThanAllowed) {
  TransactionDBOptions options;
  options.max_num_locks = 2;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("a", "v")));
  ASSERT_TRUE(IsOk(one->Put("b", "v")));
  ASSERT_TRUE(IsOk(one->Put("a", "w")));
  EXPECT_TRUE(IsFailure(one->Put("c", "v"), Status::Code::kBusy, "lock limit"));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_TRUE(IsOk(db_->Put(NoLog(), "c", "v")));
}

// ---- Snapshots --------------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, WritesSinceTheSnapshotAreConflicts) {
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "deleted", "old")));
  TransactionOptions options;
  options.set_snapshot = true;
  for (const bool flushed : {false, true}) {
    const std::unique_ptr<Transaction> one = Begin(options);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "other")));
    ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "deleted")));
    if (flushed) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    }
    EXPECT_TRUE(IsFailure(one->Put("k", "mine"), Status::Code::kBusy, "since the snapshot"));
    EXPECT_TRUE(IsFailure(Lock(one.get(), "deleted"), Status::Code::kBusy, "since the snapshot"));
    // The lock was not kept.
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "other")));
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), "deleted", "old")));
    EXPECT_TRUE(IsOk(one->PutUntracked("k", "mine")));
    EXPECT_TRUE(IsOk(one->Put("unwritten", "mine")));
    one->SetSnapshot();
    EXPECT_TRUE(IsOk(one->Put("k", "mine")));
    EXPECT_TRUE(IsOk(one->Commit()));
    EXPECT_EQ(Get("k"), "mine");
  }
}

TEST_P(PessimisticTransactionTest, ReadsForUpdateWithoutValidation) {
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
  TransactionOptions options;
  options.set_snapshot = true;
  const std::unique_ptr<Transaction> one = Begin(options);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "new")));
  std::string value;
  ReadOptions with_snapshot;
  with_snapshot.snapshot = one->GetSnapshot();
  EXPECT_TRUE(IsFailure(
      one->GetForUpdate(with_snapshot, "k", &value, /*exclusive=*/true, /*do_validate=*/false),
      Status::Code::kInvalidArgument, "snapshot"));
  ASSERT_TRUE(IsOk(one->GetForUpdate({}, "k", &value, /*exclusive=*/true, /*do_validate=*/false)));
  EXPECT_EQ(value, "new");
  EXPECT_TRUE(IsOk(one->Put(nullptr, "k", "mine", /*assume_tracked=*/true)));
  EXPECT_TRUE(IsFailure(one->Put(nullptr, "l", "mine", /*assume_tracked=*/true),
                        Status::Code::kInvalidArgument, "assume_tracked"));
}

TEST_P(PessimisticTransactionTest, ASharedLockStaysWhenItCannotBecomeExclusive) {
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "old")));
  TransactionOptions options;
  options.set_snapshot = true;
  const std::unique_ptr<Transaction> one = Begin(options);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "new")));
  ASSERT_TRUE(IsOk(one->GetForUpdate({}, "k", static_cast<std::string*>(nullptr),
                                     /*exclusive=*/false, /*do_validate=*/false)));
  EXPECT_TRUE(IsFailure(one->Put("k", "mine"), Status::Code::kBusy, "since the snapshot"));
  const std::unique_ptr<Transaction> two = Begin();
  EXPECT_TRUE(IsOk(Lock(two.get(), "k", /*exclusive=*/false)));
  EXPECT_TRUE(IsTimeout(two->Put("k", "two")));
}

// ---- Deadlocks --------------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, ARingOfWaitsIsFound) {
  constexpr size_t kRing = 4;
  std::vector<std::unique_ptr<Transaction>> ring;
  std::vector<Status> statuses(kRing);
  std::vector<Thread> threads;
  for (size_t i = 0; i < kRing; ++i) {
    ring.push_back(BeginPatient());
    ASSERT_TRUE(IsOk(ring[i]->Put("k" + std::to_string(i), "v")));
  }
  for (size_t i = 0; i + 1 < kRing; ++i) {
    threads.emplace_back("waiter", [&, i] {
      statuses[i] = ring[i]->Put("k" + std::to_string(i + 1), "v");
      EXPECT_TRUE(IsOk(ring[i]->Rollback()));
    });
    EXPECT_TRUE(Eventually([&] { return Waits(ring[i].get()); }));
  }
  EXPECT_TRUE(IsDeadlock(ring[kRing - 1]->Put("k0", "v")));
  const std::vector<DeadlockPath> deadlocks = db_->GetDeadlockInfoBuffer();
  ASSERT_EQ(deadlocks.size(), 1U);
  ASSERT_EQ(deadlocks[0].path.size(), kRing);
  for (size_t i = 0; i < kRing; ++i) {
    const size_t party = (i + kRing - 1) % kRing;
    EXPECT_EQ(deadlocks[0].path[i].m_txn_id, ring[party]->GetID());
    EXPECT_EQ(deadlocks[0].path[i].m_waiting_key, "k" + std::to_string((party + 1) % kRing));
  }
  EXPECT_TRUE(IsOk(ring[kRing - 1]->Rollback()));
  for (Thread& thread : threads) thread.Join();
  for (size_t i = 0; i + 1 < kRing; ++i) EXPECT_TRUE(IsOk(statuses[i])) << i;
}

TEST_P(PessimisticTransactionTest, TwoThatShareALockAndBothWantItAlone) {
  const std::unique_ptr<Transaction> one = BeginPatient();
  const std::unique_ptr<Transaction> two = BeginPatient();
  ASSERT_TRUE(IsOk(Lock(one.get(), "k", /*exclusive=*/false)));
  ASSERT_TRUE(IsOk(Lock(two.get(), "k", /*exclusive=*/false)));
  Status status;
  Thread waiter("waiter", [&] { status = one->Put("k", "one"); });
  EXPECT_TRUE(Eventually([&] { return Waits(one.get()); }));
  EXPECT_TRUE(IsDeadlock(two->Put("k", "two")));
  EXPECT_TRUE(IsOk(two->Rollback()));
  waiter.Join();
  EXPECT_TRUE(IsOk(status));
}

TEST_P(PessimisticTransactionTest, WhoJoinsASharedLockIsWaitedForToo) {
  const std::unique_ptr<Transaction> one = BeginPatient();
  const std::unique_ptr<Transaction> two = BeginPatient();
  const std::unique_ptr<Transaction> three = BeginPatient();
  ASSERT_TRUE(IsOk(Lock(one.get(), "k", /*exclusive=*/false)));
  ASSERT_TRUE(IsOk(two->Put("j", "two")));
  Status status;
  Thread waiter("waiter", [&] { status = two->Put("k", "two"); });
  EXPECT_TRUE(Eventually([&] { return Waits(two.get()); }));
  ASSERT_TRUE(IsOk(Lock(three.get(), "k", /*exclusive=*/false)));
  EXPECT_TRUE(Eventually([&] { return two->GetWaitingTxns(nullptr, nullptr).size() == 2; }));
  EXPECT_TRUE(IsDeadlock(three->Put("j", "three")));
  EXPECT_TRUE(IsOk(three->Rollback()));
  EXPECT_TRUE(IsOk(one->Rollback()));
  waiter.Join();
  EXPECT_TRUE(IsOk(status));
}

TEST_P(PessimisticTransactionTest, ARowThatIsTooLongIsTakenForADeadlock) {
  const std::unique_ptr<Transaction> last = BeginPatient();
  const std::unique_ptr<Transaction> middle = BeginPatient();
  TransactionOptions options;
  options.deadlock_detect = true;
  options.deadlock_detect_depth = 1;
  options.lock_timeout = kForeverMs;
  const std::unique_ptr<Transaction> first = Begin(options);
  ASSERT_TRUE(IsOk(last->Put("a", "v")));
  ASSERT_TRUE(IsOk(middle->Put("b", "v")));
  Status status;
  Thread waiter("waiter", [&] { status = middle->Put("a", "v"); });
  EXPECT_TRUE(Eventually([&] { return Waits(middle.get()); }));
  EXPECT_TRUE(IsDeadlock(first->Put("b", "v")));
  const std::vector<DeadlockPath> deadlocks = db_->GetDeadlockInfoBuffer();
  ASSERT_EQ(deadlocks.size(), 1U);
  EXPECT_TRUE(deadlocks[0].limit_exceeded);
  EXPECT_TRUE(deadlocks[0].path.empty());
  db_->SetDeadlockInfoBufferSize(0);
  EXPECT_TRUE(db_->GetDeadlockInfoBuffer().empty());
  EXPECT_TRUE(IsOk(last->Rollback()));
  waiter.Join();
  EXPECT_TRUE(IsOk(status));
}

// ---- Expiration -------------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, LocksOfExpiredTransactionsAreTaken) {
  TransactionOptions options;
  options.expiration = 0;
  const std::unique_ptr<Transaction> one = Begin(options);
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  const std::unique_ptr<Transaction> two = Begin();
  ASSERT_TRUE(IsOk(two->Put("k", "two")));
  EXPECT_EQ(one->GetState(), Transaction::LOCKS_STOLEN);
  EXPECT_TRUE(IsFailure(one->Put("l", "one"), Status::Code::kAborted, "expired"));
  EXPECT_TRUE(IsFailure(one->Commit(), Status::Code::kAborted, "expired"));
  EXPECT_TRUE(IsOk(one->Rollback()));
  // What was taken is not given up by the one that was robbed.
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "k", "plain")));
  ASSERT_TRUE(IsOk(two->Commit()));
  EXPECT_EQ(Get("k"), "two");
}

TEST_P(PessimisticTransactionTest, ExpiredTransactionsCannotCommit) {
  TransactionOptions options;
  options.expiration = 0;
  const std::unique_ptr<Transaction> one = Begin(options);
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  EXPECT_TRUE(IsFailure(one->Commit(), Status::Code::kAborted, "expired"));
  EXPECT_EQ(Get("k"), "NotFound");
  options.expiration = kForeverMs;
  const std::unique_ptr<Transaction> two = Begin(options);
  EXPECT_TRUE(IsOk(one->Rollback()));
  ASSERT_TRUE(IsOk(two->Put("k", "two")));
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "k", "plain")));
  EXPECT_TRUE(IsOk(two->Commit()));
}

// ---- Save points ------------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, SavePointsGiveBackTheirLocks) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("a", "1")));
  one->SetSavePoint();
  ASSERT_TRUE(IsOk(one->Put("a", "2")));
  ASSERT_TRUE(IsOk(one->Put("b", "2")));
  one->SetSavePoint();
  ASSERT_TRUE(IsOk(one->Put("c", "3")));
  ASSERT_TRUE(IsOk(one->PopSavePoint()));
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "c", "plain")));
  ASSERT_TRUE(IsOk(one->RollbackToSavePoint()));
  EXPECT_TRUE(one->RollbackToSavePoint().IsNotFound());
  EXPECT_TRUE(one->PopSavePoint().IsNotFound());
  EXPECT_EQ(one->GetNumPuts(), 1U);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "b", "plain")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "c", "plain")));
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "a", "plain")));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "plain");
}

TEST_P(PessimisticTransactionTest, UndoneReadsGiveBackTheirLocks) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(Lock(one.get(), "k")));
  ASSERT_TRUE(IsOk(Lock(one.get(), "k")));
  one->UndoGetForUpdate("k");
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "k", "plain")));
  one->UndoGetForUpdate("k");
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "plain")));
  ASSERT_TRUE(IsOk(Lock(one.get(), "k")));
  one->SetSavePoint();
  one->UndoGetForUpdate("k");  // It was read before the save point.
  EXPECT_TRUE(IsTimeout(db_->Put(NoLog(), "k", "plain")));
}

// ---- States and limits ------------------------------------------------------------------------

TEST_P(PessimisticTransactionTest, EndedTransactionsTakeNothing) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("k", "1")));
  ASSERT_TRUE(IsOk(one->Rollback()));
  ASSERT_TRUE(IsOk(one->Put("k", "2")));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(one->GetState(), Transaction::COMMITTED);
  EXPECT_TRUE(IsFailure(one->Commit(), Status::Code::kInvalidArgument, "committed"));
  EXPECT_TRUE(IsFailure(one->Rollback(), Status::Code::kInvalidArgument, "committed"));
  EXPECT_TRUE(IsFailure(one->Put("k", "3"), Status::Code::kInvalidArgument, "committed"));
  EXPECT_EQ(Get("k"), "2");
}

TEST_P(PessimisticTransactionTest, Names) {
  std::unique_ptr<Transaction> one = Begin();
  const std::unique_ptr<Transaction> two = Begin();
  EXPECT_TRUE(IsFailure(one->SetName(""), Status::Code::kInvalidArgument, "512"));
  EXPECT_TRUE(IsFailure(one->SetName(std::string(513, 'n')), Status::Code::kInvalidArgument));
  ASSERT_TRUE(IsOk(one->SetName("x")));
  EXPECT_TRUE(IsFailure(one->SetName("y"), Status::Code::kInvalidArgument, "named x"));
  EXPECT_TRUE(IsFailure(two->SetName("x"), Status::Code::kInvalidArgument, "named x"));
  EXPECT_EQ(db_->GetTransactionByName("x"), one.get());
  EXPECT_EQ(db_->GetTransactionByName("y"), nullptr);
  one.reset();
  EXPECT_EQ(db_->GetTransactionByName("x"), nullptr);
  EXPECT_TRUE(IsOk(two->SetName("x")));
}

TEST_P(PessimisticTransactionTest, BatchesThatGrowTooLong) {
  TransactionOptions options;
  options.max_write_batch_size = 64;
  const std::unique_ptr<Transaction> one = Begin(options);
  ASSERT_TRUE(IsOk(one->Put("k", "value")));
  EXPECT_TRUE(IsFailure(one->Put("l", std::string(64, 'v')), Status::Code::kAborted, "64 bytes"));
  EXPECT_TRUE(IsOk(one->Commit()));
}

TEST_P(PessimisticTransactionTest, WithoutConcurrencyControl) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("k", "one")));
  TransactionOptions options;
  options.skip_concurrency_control = true;
  const std::unique_ptr<Transaction> two = Begin(options);
  ASSERT_TRUE(IsOk(two->Put("k", "two")));
  ASSERT_TRUE(IsOk(two->Commit()));
  TransactionDBWriteOptimizations optimizations;
  optimizations.skip_concurrency_control = true;
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("l", "batch")));
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), optimizations, &batch)));
  EXPECT_EQ(Get("k"), "two");
  EXPECT_EQ(Get("l"), "batch");
}

TEST_P(PessimisticTransactionTest, RangesAreRefused) {
  EXPECT_TRUE(IsFailure(db_->DeleteRange(NoLog(), "a", "b"), Status::Code::kNotSupported));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.DeleteRange("a", "b")));
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), &batch), Status::Code::kNotSupported, "DeleteRange"));
}

INSTANTIATE_TEST_SUITE_P(Over, PessimisticTransactionTest,
                         testing::Values(Base::kDatabase, Base::kKeyspace),
                         [](const testing::TestParamInfo<Base>& below) {
                           return below.param == Base::kDatabase ? "Database" : "Keyspace";
                         });

// What is different over a keyspace.
TEST(ShardedLocksTest, ShardsAreSplitBetweenALockAndItsCommit) {
  const auto pool = OpenTestPool();
  ASSERT_NE(pool, nullptr);
  ShardedOptions options(SmallTableOptions(pool));
  std::unique_ptr<TransactionDB> db;
  ASSERT_TRUE(IsOk(TransactionDB::Open(options, {}, "locked", &db)));
  auto* const keyspace = static_cast<ShardedDB*>(db->GetBaseDB());
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "a", "1")));
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "z", "1")));
  const auto both = db->BeginTransaction(NoLog(), {});
  const auto at_snapshot = db->BeginTransaction(NoLog(), {.set_snapshot = true});
  std::string value;
  ASSERT_TRUE(IsOk(both->GetForUpdate({}, "a", &value)));
  ASSERT_TRUE(IsOk(both->Put("a", "2")));
  ASSERT_TRUE(IsOk(keyspace->SplitShard(keyspace->GetShards()[0].id, "m")));
  ASSERT_TRUE(IsOk(both->Put("z", "2")));
  // Its snapshot is gone with the shard.
  EXPECT_TRUE(IsFailure(at_snapshot->Put("b", "3"), Status::Code::kBusy, "since the snapshot"));
  EXPECT_TRUE(db->Put(NoLog(), "a", "plain").IsTimedOut());
  ASSERT_TRUE(IsOk(both->Commit()));
  for (const char* key : {"a", "z"}) {
    ASSERT_TRUE(IsOk(db->Get({}, key, &value)));
    EXPECT_EQ(value, "2");
  }
}

TEST(ShardedLocksTest, WhatIsNotThere) {
  const auto pool = OpenTestPool();
  ASSERT_NE(pool, nullptr);
  ShardedOptions options(SmallTableOptions(pool));
  options.coordinator = "etcd:127.0.0.1:1";
  std::unique_ptr<TransactionDB> shared;
  EXPECT_TRUE(IsFailure(TransactionDB::Open(options, {.max_num_locks = 10}, "locked", &shared),
                        Status::Code::kNotSupported, "max_num_locks"));
}

}  // namespace
}  // namespace nacre
