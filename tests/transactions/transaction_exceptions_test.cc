// Goal: what comparators, merge operators and notifiers throw, and a lack of memory, is a Status
// for the caller of a transaction or an indexed batch. The step that failed has changed nothing: no
// update is in the batch but not in its index, and no lock is leaked. Method: callbacks that throw
// at a key while they are armed; and each allocation of a step fails once, after which the
// transaction is compared with a model of the calls that answered OK, other transactions take its
// keys, and nothing may be locked at the end.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "nacre/merge_operator.h"
#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/transaction_db.h"
#include "nacre/utilities/write_batch_with_index.h"
#include "tests/support/failing_allocation.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "tests/support/throwing_comparator.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

class ThrowingOperator final : public MergeOperator {
 public:
  const char* Name() const override { return "nacre.test.ThrowingOperator"; }
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    if (armed.load()) throw std::runtime_error("met poison");
    if (in.existing_value != nullptr) out->new_value = in.existing_value->ToString();
    for (const Slice& operand : in.operand_list) out->new_value += operand.ToString();
    return true;
  }
};

class ThrowingNotifier final : public TransactionNotifier {
 public:
  void SnapshotCreated(const Snapshot* /*snapshot*/) override {
    throw std::runtime_error("met poison");
  }
};

testing::AssertionResult MetPoison(const Status& status) {
  return IsFailure(status, Status::Code::kAborted, "met poison");
}

class ExceptionsTest : public testing::Test {
 protected:
  ExceptionsTest() {
    options_ = SmallTableOptions(OpenTestPool());
    options_.merge_operator = std::make_shared<ThrowingOperator>();
    options_.comparator = &comparator_;
  }
  ~ExceptionsTest() override { armed = false; }

  /// A table that is newer than all snapshots so far, and may have any key: checks of keys look
  /// into it, and compare there. (A MemTable finds keys without comparing them.)
  static void WriteNewTable(DB* db) {
    for (const char* key : {"b", "y"}) ASSERT_TRUE(IsOk(db->Put(NoLog(), key, "new")));
    ASSERT_TRUE(IsOk(db->Flush({})));
  }

  const ThrowingComparator comparator_;
  Options options_;
};

// ---- Indexed batches --------------------------------------------------------------------------

class BatchExceptionsTest : public ExceptionsTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(IsOk(DB::Open(options_, "batches", &db_)));
    for (const char* key : {"b", "y"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "below")));
    for (const char* key : {"a", "z"}) ASSERT_TRUE(IsOk(batch_.Put(key, "1")));
  }
  std::string KeysOfBatch() {
    std::string keys;
    const std::unique_ptr<WBWIIterator> iterator = batch_.NewIterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys += iterator->Entry().key.ToString() + " ";
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return keys;
  }
  std::string KeysOfBoth() {
    std::string keys;
    const std::unique_ptr<Iterator> iterator = batch_.NewIteratorWithBase(db_->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys += iterator->key().ToString() + " ";
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return keys;
  }

  std::unique_ptr<DB> db_;
  WriteBatchWithIndex batch_{&comparator_, 0, /*overwrite_key=*/true};
};

TEST_F(BatchExceptionsTest, AnUpdateThatCannotBeIndexedIsNotInTheBatch) {
  const std::string before = batch_.GetWriteBatch()->Data();
  armed = true;
  EXPECT_TRUE(MetPoison(batch_.Put("poison", "1")));
  EXPECT_TRUE(MetPoison(batch_.Merge("poison", "1")));
  EXPECT_TRUE(MetPoison(batch_.Delete("poison")));
  EXPECT_TRUE(MetPoison(batch_.SingleDelete("poison")));
  EXPECT_EQ(batch_.GetWriteBatch()->Data(), before);
  EXPECT_EQ(KeysOfBatch(), "a z ");
  EXPECT_TRUE(batch_.RollbackToSavePoint().IsNotFound()) << "a save point was left behind";
  armed = false;
  ASSERT_TRUE(IsOk(batch_.Put("poison", "2")));
  EXPECT_EQ(KeysOfBatch(), "a poison z ");
  EXPECT_EQ(KeysOfBoth(), "a b poison y z ");
}

TEST_F(BatchExceptionsTest, LookupsAnswerWhatAComparatorThrows) {
  ASSERT_TRUE(IsOk(batch_.Put("poison", "2")));
  armed = true;
  std::string value;
  EXPECT_TRUE(MetPoison(batch_.GetFromBatch(options_, "poison", &value)));
  EXPECT_TRUE(MetPoison(batch_.GetFromBatchAndDB(db_.get(), {}, "poison", &value)));
  const Slice keys[] = {"poison", "z"};
  PinnableSlice values[2];
  Status statuses[2];
  batch_.MultiGetFromBatchAndDB(db_.get(), {}, nullptr, 2, keys, values, statuses,
                                /*sorted_input=*/true);
  EXPECT_TRUE(MetPoison(statuses[0]));
  EXPECT_FALSE(statuses[1].ok() && values[1] != Slice("1"));
  armed = false;
  EXPECT_TRUE(IsOk(batch_.GetFromBatch(options_, "poison", &value)));
  EXPECT_EQ(value, "2");
}

TEST_F(BatchExceptionsTest, AnOperatorThatThrowsIsForReadersOfTheKey) {
  ASSERT_TRUE(IsOk(batch_.Merge("b", "2")));
  const std::unique_ptr<Iterator> iterator =
      batch_.NewIteratorWithBase(db_->DefaultColumnFamily(), db_->NewIterator({}));
  armed = true;
  std::string value;
  EXPECT_TRUE(MetPoison(batch_.GetFromBatchAndDB(db_.get(), {}, "b", &value)));
  iterator->Seek("b");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(MetPoison(iterator->status()));
  armed = false;
  iterator->Seek("b");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), Slice("below2"));
  EXPECT_TRUE(IsOk(iterator->status()));
}

TEST_F(BatchExceptionsTest, AnIteratorEndsWhereAComparatorThrows) {
  ASSERT_TRUE(IsOk(batch_.Put("poison", "2")));
  const std::unique_ptr<WBWIIterator> alone = batch_.NewIterator();
  const std::unique_ptr<Iterator> both = batch_.NewIteratorWithBase(db_->NewIterator({}));
  const auto look = [&](auto& iterator, const std::function<void()>& move) {
    armed = false;
    iterator->Seek("b");
    ASSERT_TRUE(iterator->Valid());
    armed = true;
    move();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_TRUE(MetPoison(iterator->status()));
    armed = false;
    iterator->Seek("z");
    EXPECT_TRUE(iterator->Valid());
    EXPECT_TRUE(IsOk(iterator->status()));
  };
  look(alone, [&] { alone->Seek("poison"); });
  look(alone, [&] { alone->SeekForPrev("poison"); });
  look(both, [&] { both->Seek("poison"); });
  look(both, [&] { both->SeekForPrev("poison"); });
  look(both, [&] { both->Next(); });
  look(both, [&] {
    armed = false;
    both->Seek("y");
    armed = true;
    both->Prev();
  });
}

TEST_F(BatchExceptionsTest, ARollbackThatThrowsHasNotBegun) {
  ASSERT_TRUE(IsOk(batch_.Put("poison", "2")));
  batch_.SetSavePoint();
  ASSERT_TRUE(IsOk(batch_.Put("poison", "3")));
  ASSERT_TRUE(IsOk(batch_.Put("k", "3")));
  armed = true;
  EXPECT_TRUE(MetPoison(batch_.RollbackToSavePoint()));
  armed = false;
  EXPECT_EQ(KeysOfBatch(), "a k poison z ");
  std::string value;
  EXPECT_TRUE(IsOk(batch_.GetFromBatch(options_, "poison", &value)));
  EXPECT_EQ(value, "3");
  ASSERT_TRUE(IsOk(batch_.RollbackToSavePoint()));
  EXPECT_EQ(KeysOfBatch(), "a poison z ");
  EXPECT_TRUE(IsOk(batch_.GetFromBatch(options_, "poison", &value)));
  EXPECT_EQ(value, "2");
}

TEST_F(BatchExceptionsTest, ABatchStaysWholeWhereMemoryEnds) {
  const std::string value(10'000, 'v');
  WriteBatch plain;
  ASSERT_TRUE(IsOk(plain.Put("a", "1")));
  const std::string before = plain.Data();
  const std::vector<std::function<Status()>> steps = {
      [&] { return plain.Put("b", value); },
      [&] { return plain.Put(value, "1"); },
      [&] { return plain.PutLogData(value); },
      [&] { return plain.Append(WriteBatch(before)); },
  };
  for (const auto& step : steps) {
    for (int64_t nth = 0;; ++nth) {
      plain = WriteBatch(before);
      FailingAllocation failing(nth);
      Status status;
      try {
        status = step();
      } catch (const std::bad_alloc&) {
        status = Status::Aborted("thrown by the copy");
      }
      if (!failing.reached()) break;
      EXPECT_TRUE(status.IsAborted()) << status.ToString();
      EXPECT_EQ(plain.Data(), before);
    }
    EXPECT_GT(plain.Data().size(), before.size());
  }
}

// ---- Transactions with locks ------------------------------------------------------------------

class LockExceptionsTest : public ExceptionsTest {
 protected:
  void SetUp() override { Open({}); }
  void Open(TransactionDBOptions db_options) {
    db_.reset();
    db_options.default_lock_timeout = 0;
    db_options.transaction_lock_timeout = 0;
    ASSERT_TRUE(IsOk(TransactionDB::Open(options_, db_options, "locked", &db_)));
    for (const char* key : {"a", "poison", "z"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "0")));
  }
  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) {
    return db_->BeginTransaction(NoLog(), options);
  }
  static Status Lock(Transaction* transaction, const std::string& key, bool exclusive = true) {
    return transaction->GetForUpdate({}, key, static_cast<std::string*>(nullptr), exclusive);
  }
  static TransactionOptions WithSnapshot() {
    TransactionOptions options;
    options.set_snapshot = true;
    return options;
  }
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : "-";
  }

  std::unique_ptr<TransactionDB> db_;
};

TEST_F(LockExceptionsTest, ALockWhoseCheckThrowsIsGivenBack) {
  const std::unique_ptr<Transaction> one = Begin(WithSnapshot());
  ASSERT_NO_FATAL_FAILURE(WriteNewTable(db_.get()));
  armed = true;
  EXPECT_TRUE(MetPoison(Lock(one.get(), "poison")));
  EXPECT_TRUE(MetPoison(one->Put("poison", "1")));
  EXPECT_EQ(one->GetNumKeys(), 0U);
  EXPECT_TRUE(db_->GetLockStatusData().empty());
  armed = false;
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "poison", "plain")));
  EXPECT_TRUE(IsFailure(one->Put("poison", "1"), Status::Code::kBusy, "since the snapshot"));
}

TEST_F(LockExceptionsTest, ASharedLockStaysSharedIfItsCheckThrows) {
  const std::unique_ptr<Transaction> one = Begin(WithSnapshot());
  const std::unique_ptr<Transaction> two = Begin();
  // Without a check, so that there is one left to be made when the lock becomes exclusive.
  ASSERT_TRUE(IsOk(one->GetForUpdate({}, "poison", static_cast<std::string*>(nullptr),
                                     /*exclusive=*/false, /*do_validate=*/false)));
  ASSERT_NO_FATAL_FAILURE(WriteNewTable(db_.get()));
  armed = true;
  EXPECT_TRUE(MetPoison(one->Put("poison", "1")));
  armed = false;
  EXPECT_TRUE(IsOk(Lock(two.get(), "poison", /*exclusive=*/false)));
  EXPECT_TRUE(IsFailure(one->Put("poison", "1"), Status::Code::kTimedOut, "lock timeout"));
  ASSERT_TRUE(IsOk(two->Rollback()));
  EXPECT_TRUE(IsOk(one->Put("poison", "1")));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("poison"), "1");
  EXPECT_TRUE(db_->GetLockStatusData().empty());
}

TEST_F(LockExceptionsTest, ANotifierThatThrowsKeepsNoLock) {
  const std::unique_ptr<Transaction> one = Begin();
  one->SetSnapshotOnNextOperation(std::make_shared<ThrowingNotifier>());
  EXPECT_TRUE(MetPoison(one->Put("a", "1")));
  EXPECT_EQ(one->GetNumKeys(), 0U);
  EXPECT_TRUE(db_->GetLockStatusData().empty());
  EXPECT_NE(one->GetSnapshot(), nullptr);
  ASSERT_TRUE(IsOk(one->Put("a", "2")));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(LockExceptionsTest, ReadsAnswerWhatIsThrownAndTheTransactionGoesOn) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Merge("a", "1")));
  armed = true;
  std::string value;
  EXPECT_TRUE(MetPoison(one->Get({}, "a", &value)));
  EXPECT_TRUE(MetPoison(one->GetForUpdate({}, "a", &value)));
  std::vector<std::string> values;
  EXPECT_TRUE(MetPoison(one->MultiGet({}, {"a"}, &values).front()));
  EXPECT_TRUE(MetPoison(one->Put("poison", "1")));
  armed = false;
  EXPECT_TRUE(IsOk(one->Get({}, "a", &value)));
  EXPECT_EQ(value, "01");
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("a"), "01");
  EXPECT_EQ(Get("poison"), "0");
  EXPECT_TRUE(db_->GetLockStatusData().empty());
}

TEST_F(LockExceptionsTest, ARollbackToASavePointThatThrowsHasNotBegun) {
  const std::unique_ptr<Transaction> one = Begin();
  ASSERT_TRUE(IsOk(one->Put("a", "1")));
  ASSERT_TRUE(IsOk(one->Put("poison", "1")));
  one->SetSavePoint();
  ASSERT_TRUE(IsOk(one->Put("z", "1")));
  armed = true;
  EXPECT_TRUE(MetPoison(one->RollbackToSavePoint()));
  armed = false;
  EXPECT_EQ(one->GetNumKeys(), 3U);
  EXPECT_EQ(one->GetNumPuts(), 3U);
  ASSERT_TRUE(IsOk(one->RollbackToSavePoint()));
  EXPECT_EQ(one->GetNumKeys(), 2U);
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("poison"), "1");
  EXPECT_EQ(Get("z"), "0");
}

// ---- Each allocation fails once ---------------------------------------------------------------

/// A transaction and what it has to be.
struct Modelled {
  std::unique_ptr<Transaction> transaction;
  std::map<std::string, std::string> updates;
};

using Step = std::function<void(Modelled*)>;

/// Does what a careful caller does: an update that is OK is there, another is not.
void Put(Modelled* modelled, const std::string& key, const std::string& value) {
  const Status status = modelled->transaction->Put(key, value);
  const FailingAllocation::Pause pause;
  ASSERT_TRUE(status.ok() || status.IsAborted()) << status.ToString();
  if (status.ok()) modelled->updates[key] = value;
}

/// Keys and values that do not fit into a std::string without an allocation.
std::string Long(const std::string& text) { return text + std::string(40, '.'); }

class AllocationsTest : public LockExceptionsTest {
 protected:
  /// Runs `prepare`, then `step` while its nth allocation fails, for each n; then commits.
  void ForEachAllocation(const Step& prepare, const Step& step) {
    for (int64_t nth = 0, reached = 1; reached != 0; ++nth) {
      SCOPED_TRACE("allocation " + std::to_string(nth));
      ASSERT_LT(nth, 1000);
      Modelled modelled{Begin(), {}};
      prepare(&modelled);
      {
        const FailingAllocation failing(nth);
        try {
          step(&modelled);
        } catch (const std::bad_alloc&) {  // There is no Status to say so here.
        }
        reached = failing.reached() ? 1 : 0;
      }
      ASSERT_NO_FATAL_FAILURE(Check(&modelled));
    }
  }
  /// Every key that is in the batch is locked, and nothing is locked after the end.
  void Check(Modelled* modelled) {
    const std::unique_ptr<Transaction> other = Begin();
    for (const auto& [key, value] : modelled->updates) {
      std::string got;
      EXPECT_TRUE(IsOk(modelled->transaction->Get({}, key, &got))) << key;
      EXPECT_EQ(got, value) << key;
      EXPECT_TRUE(Lock(other.get(), key).IsTimedOut()) << key;
    }
    EXPECT_GE(modelled->transaction->GetNumKeys(), modelled->updates.size());
    EXPECT_EQ(db_->GetLockStatusData().size(), modelled->transaction->GetNumKeys());
    EXPECT_EQ(modelled->transaction->GetWriteBatch()->GetWriteBatch()->Count(),
              modelled->transaction->GetNumPuts());
    ASSERT_TRUE(IsOk(modelled->transaction->Commit()));
    EXPECT_TRUE(db_->GetLockStatusData().empty());
    for (const auto& [key, value] : modelled->updates) EXPECT_EQ(Get(key), value);
  }
};

TEST_F(AllocationsTest, OfUpdates) {
  ForEachAllocation([](Modelled* m) { Put(m, Long("a"), "1"); },
                    [](Modelled* m) {
                      for (const char* key : {"b", "a", "c", "b"}) Put(m, Long(key), Long("2"));
                    });
}

TEST_F(AllocationsTest, OfLocksThatAreSharedAndMadeExclusive) {
  ForEachAllocation([](Modelled*) {},
                    [](Modelled* m) {
                      for (const char* key : {"b", "a", "c"}) {
                        Lock(m->transaction.get(), Long(key), /*exclusive=*/false).IgnoreError();
                        Put(m, Long(key), Long("2"));
                        m->transaction->UndoGetForUpdate(Long(key));
                      }
                    });
}

TEST_F(AllocationsTest, OfLocksWhoseNumberIsLimited) {
  TransactionDBOptions limited;
  limited.max_num_locks = 3;
  Open(limited);
  ForEachAllocation([](Modelled*) {},
                    [](Modelled* m) {
                      for (const char* key : {"b", "a", "c"}) Put(m, Long(key), Long("2"));
                    });
}

TEST_F(AllocationsTest, OfSavePoints) {
  const auto prepare = [](Modelled* m) {
    Put(m, Long("a"), "1");
    m->transaction->SetSavePoint();
    Put(m, Long("a"), "2");
    Put(m, Long("b"), "2");
  };
  ForEachAllocation(prepare, [](Modelled* m) {
    m->transaction->SetSavePoint();
    Put(m, Long("c"), "3");
    Put(m, Long("b"), "3");
    const bool back = m->transaction->RollbackToSavePoint().ok();
    const FailingAllocation::Pause pause;
    if (back) m->updates = {{Long("a"), "2"}, {Long("b"), "2"}};
  });
  ForEachAllocation(prepare, [](Modelled* m) {
    m->transaction->SetSavePoint();
    Put(m, Long("c"), "3");
    Put(m, Long("b"), "3");
    if (m->transaction->PopSavePoint().ok() && m->transaction->PopSavePoint().ok()) {
      EXPECT_TRUE(m->transaction->PopSavePoint().IsNotFound());
    }
  });
  // What was popped goes with the save point below it.
  ForEachAllocation(prepare, [](Modelled* m) {
    m->transaction->SetSavePoint();
    Put(m, Long("c"), "3");
    while (!m->transaction->PopSavePoint().ok()) {
    }
    while (!m->transaction->RollbackToSavePoint().ok()) {
    }
    const FailingAllocation::Pause pause;
    m->updates = {{Long("a"), "1"}};
    EXPECT_EQ(m->transaction->GetNumKeys(), 1U);
  });
}

TEST_F(AllocationsTest, OfPlainWritesThatCannotRememberTheirLocks) {
  // The locks are taken here, before anything is written.
  const std::string key = Long("plain");
  for (int64_t nth = 0; nth < 4; ++nth) {
    Status status;
    {
      const FailingAllocation failing(nth);
      status = db_->Put(NoLog(), key, "1");
    }
    EXPECT_TRUE(status.IsAborted()) << status.ToString();
    EXPECT_TRUE(db_->GetLockStatusData().empty()) << nth;
  }
  EXPECT_TRUE(IsOk(db_->Put(NoLog(), key, "2")));
}

TEST_F(AllocationsTest, OfNames) {
  const std::string name = Long("name");
  for (int64_t nth = 0, reached = 1; reached != 0; ++nth) {
    std::unique_ptr<Transaction> named = Begin();
    Status status;
    {
      const FailingAllocation failing(nth);
      status = named->SetName(name);
      reached = failing.reached() ? 1 : 0;
    }
    EXPECT_EQ(status.ok(), reached == 0) << status.ToString();
    EXPECT_EQ(db_->GetTransactionByName(name), status.ok() ? named.get() : nullptr);
    named.reset();
    EXPECT_EQ(db_->GetTransactionByName(name), nullptr);
  }
}

// A wait that ended so must not be taken for one that goes on: others would see a deadlock.
TEST_F(AllocationsTest, OfAWait) {
  TransactionOptions looking;
  looking.deadlock_detect = true;
  looking.lock_timeout = 1;
  const std::string a = Long("a");
  const std::string b = Long("b");
  for (int64_t nth = 0, reached = 1; reached != 0; ++nth) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    const std::unique_ptr<Transaction> one = Begin(looking);
    const std::unique_ptr<Transaction> two = Begin(looking);
    ASSERT_TRUE(IsOk(one->Put(a, "1")));
    ASSERT_TRUE(IsOk(two->Put(b, "2")));
    Status status;
    {
      const FailingAllocation failing(nth);
      status = two->Put(a, "2");
      reached = failing.reached() ? 1 : 0;
    }
    EXPECT_TRUE(reached != 0 ? status.IsAborted() : status.IsTimedOut()) << status.ToString();
    EXPECT_TRUE(two->GetWaitingTxns(nullptr, nullptr).empty());
    status = one->Put(b, "1");
    EXPECT_TRUE(status.IsTimedOut()) << status.ToString();
  }
}

// ---- Optimistic transactions ------------------------------------------------------------------

TEST_F(ExceptionsTest, ACheckThatThrowsLeavesAnOptimisticTransactionAsItWas) {
  std::unique_ptr<OptimisticTransactionDB> db;
  ASSERT_TRUE(IsOk(OptimisticTransactionDB::Open(options_, "optimistic", &db)));
  for (const char* key : {"a", "poison", "z"}) ASSERT_TRUE(IsOk(db->Put(NoLog(), key, "0")));
  const std::unique_ptr<Transaction> one = db->BeginTransaction(NoLog());
  ASSERT_TRUE(IsOk(one->Put("a", "1")));
  ASSERT_TRUE(IsOk(one->Put("poison", "1")));
  one->SetSnapshotOnNextOperation(std::make_shared<ThrowingNotifier>());
  EXPECT_TRUE(MetPoison(one->Put("z", "1")));
  ASSERT_NO_FATAL_FAILURE(WriteNewTable(db.get()));
  armed = true;
  EXPECT_TRUE(MetPoison(one->Commit()));
  armed = false;
  ASSERT_TRUE(IsOk(db->Put(NoLog(), "z", "plain"))) << "writes of others go on";
  ASSERT_TRUE(IsOk(one->Commit()));
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, "poison", &value)));
  EXPECT_EQ(value, "1");
  ASSERT_TRUE(IsOk(db->Get({}, "z", &value)));
  EXPECT_EQ(value, "plain");
}

}  // namespace
}  // namespace nacre
