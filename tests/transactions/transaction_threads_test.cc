// Goal: transactions of both kinds are serializable where they get for update what they read, with
// each other and with plain writes through the same object, whatever is flushed and compacted
// below. Method: threads move amounts between accounts, count keys up, and write plainly. The sum
// of the accounts never changes; a counter ends at the number of commits that counted it up; and of
// two keys that transactions keep the same, no snapshot shows different values. Meant to be run
// under ThreadSanitizer too.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/sharded_db.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

enum class Kind : uint8_t {
  kOptimistic,
  kOptimisticSharded,
  kPessimistic,
  kDetecting,
  kDetectingSharded
};

class TransactionThreadsTest : public testing::TestWithParam<Kind> {
 protected:
  static constexpr uint64_t kAccounts = 12;
  static constexpr int64_t kDeposit = 1000;
  static constexpr size_t kThreads = 4;

  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    const Options options = SmallTableOptions(pool_);
    ShardedOptions sharded(options);
    sharded.boundaries = {"account3", "account6", "twin2"};
    if (GetParam() == Kind::kOptimistic) {
      OptimisticTransactionDBOptions db_options;
      db_options.occ_lock_buckets = 8;  // Keys share them.
      ASSERT_TRUE(IsOk(OptimisticTransactionDB::Open(options, db_options, "db", &optimistic_)));
      db_ = optimistic_.get();
    } else if (GetParam() == Kind::kOptimisticSharded) {
      ASSERT_TRUE(IsOk(OptimisticTransactionDB::Open(sharded, "db", &optimistic_)));
      db_ = optimistic_.get();
    } else {
      TransactionDBOptions db_options;
      db_options.num_stripes = 3;
      ASSERT_TRUE(IsOk(GetParam() == Kind::kDetectingSharded
                           ? TransactionDB::Open(sharded, db_options, "db", &pessimistic_)
                           : TransactionDB::Open(options, db_options, "db", &pessimistic_)));
      db_ = pessimistic_.get();
    }
  }
  std::unique_ptr<Transaction> Begin(bool set_snapshot) {
    if (optimistic_ != nullptr) {
      OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot;
      return optimistic_->BeginTransaction(NoLog(), options);
    }
    TransactionOptions options;
    options.set_snapshot = set_snapshot;
    options.deadlock_detect = GetParam() != Kind::kPessimistic;
    // A deadlock that is not looked for ends by this.
    options.lock_timeout = options.deadlock_detect ? 600'000 : 5;
    return pessimistic_->BeginTransaction(NoLog(), options);
  }
  /// Whether it may be tried again.
  static bool MayRetry(const Status& status) { return status.IsBusy() || status.IsTimedOut(); }

  static Status ReadNumber(Transaction* transaction, const std::string& key, int64_t* number) {
    std::string value;
    NACRE_RETURN_IF_ERROR(transaction->GetForUpdate({}, key, &value));
    *number = std::stoll(value);
    return Status::OK();
  }
  static std::string Account(uint64_t number) { return "account" + std::to_string(number); }

  static Status Move(Transaction* transaction, Random* random) {
    const std::string from = Account(random->Uniform(kAccounts));
    const std::string to = Account(random->Uniform(kAccounts));
    const auto amount = static_cast<int64_t>(random->Uniform(10));
    int64_t balance = 0;
    NACRE_RETURN_IF_ERROR(ReadNumber(transaction, from, &balance));
    NACRE_RETURN_IF_ERROR(transaction->Put(from, std::to_string(balance - amount)));
    NACRE_RETURN_IF_ERROR(ReadNumber(transaction, to, &balance));
    NACRE_RETURN_IF_ERROR(transaction->Put(to, std::to_string(balance + amount)));
    return transaction->Commit();
  }
  static Status CountUp(Transaction* transaction, const std::string& counter) {
    int64_t number = 0;
    NACRE_RETURN_IF_ERROR(ReadNumber(transaction, counter, &number));
    NACRE_RETURN_IF_ERROR(transaction->Put(counter, std::to_string(number + 1)));
    return transaction->Commit();
  }
  /// Plain writes of two keys at once, which transactions keep the same, too.
  Status WriteTwins(const std::string& value) {
    WriteBatch batch;
    NACRE_RETURN_IF_ERROR(batch.Put("twin2", value));
    NACRE_RETURN_IF_ERROR(batch.Put("twin1", value));
    return db_->Write(NoLog(), &batch);
  }
  static Status CopyTwin(Transaction* transaction) {
    std::string value;
    NACRE_RETURN_IF_ERROR(transaction->GetForUpdate({}, "twin1", &value));
    NACRE_RETURN_IF_ERROR(transaction->Put("twin2", value));
    return transaction->Commit();
  }
  void CheckState() {
    ReadOptions options;
    const Snapshot* snapshot = db_->GetSnapshot();
    options.snapshot = snapshot;
    int64_t sum = 0;
    std::string value;
    for (uint64_t i = 0; i < kAccounts; ++i) {
      ASSERT_TRUE(IsOk(db_->Get(options, Account(i), &value)));
      sum += std::stoll(value);
    }
    EXPECT_EQ(sum, kDeposit * static_cast<int64_t>(kAccounts));
    std::string twin;
    ASSERT_TRUE(IsOk(db_->Get(options, "twin1", &value)));
    ASSERT_TRUE(IsOk(db_->Get(options, "twin2", &twin)));
    EXPECT_EQ(value, twin);
    db_->ReleaseSnapshot(snapshot);
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<OptimisticTransactionDB> optimistic_;
  std::unique_ptr<TransactionDB> pessimistic_;
  DB* db_ = nullptr;
};

TEST_P(TransactionThreadsTest, NothingIsLostAndNothingIsSeenInHalf) {
  const uint64_t seed = TestSeed(99);
  const size_t rounds = Scaled(400);
  for (uint64_t i = 0; i < kAccounts; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), Account(i), std::to_string(kDeposit))));
  }
  ASSERT_TRUE(IsOk(WriteTwins("0")));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "counter", "0")));

  std::atomic<int64_t> counted{0};
  std::atomic<uint64_t> commits{0};
  RunTogether("transactions", kThreads, [&](size_t thread) {
    Random random(seed * kThreads + thread);
    for (size_t i = 0; i < rounds; ++i) {
      const std::unique_ptr<Transaction> transaction = Begin(random.OneIn(2));
      Status status;
      switch (random.Uniform(5)) {
        case 0:
          status = CountUp(transaction.get(), "counter");
          if (status.ok()) ++counted;
          break;
        case 1:
          status = CopyTwin(transaction.get());
          break;
        case 2:
          status = WriteTwins(std::to_string(thread * rounds + i));
          break;
        case 3:
          if (random.OneIn(10)) status = db_->Flush({});
          if (random.OneIn(40)) status = db_->CompactRange({}, nullptr, nullptr);
          CheckState();
          break;
        default:
          status = Move(transaction.get(), &random);
          if (status.ok()) ++commits;
      }
      ASSERT_TRUE(status.ok() || MayRetry(status)) << status.ToString();
    }
  });
  CheckState();
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, "counter", &value)));
  EXPECT_EQ(std::stoll(value), counted.load());
  EXPECT_GT(commits.load(), 0U);
}

std::string NameOf(const testing::TestParamInfo<Kind>& kind) {
  switch (kind.param) {
    case Kind::kOptimistic:
      return "Optimistic";
    case Kind::kOptimisticSharded:
      return "OptimisticSharded";
    case Kind::kPessimistic:
      return "Pessimistic";
    case Kind::kDetecting:
      return "Detecting";
    case Kind::kDetectingSharded:
      return "DetectingSharded";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(All, TransactionThreadsTest,
                         testing::Values(Kind::kOptimistic, Kind::kOptimisticSharded,
                                         Kind::kPessimistic, Kind::kDetecting,
                                         Kind::kDetectingSharded),
                         NameOf);

}  // namespace
}  // namespace nacre
