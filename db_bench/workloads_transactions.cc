// Transactions that keep the sums of several sets of counters equal, as RocksDB's
// RandomTransactionInserter does.

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <vector>

#include "db_bench/engine/session_transaction.h"
#include "db_bench/key_generator.h"
#include "db_bench/workload.h"

namespace nacre::bench {
namespace {

constexpr uint64_t kAddAtMost = 100;

Status ParseCounter(const Slice& value, uint64_t* counter) {
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, *counter);
  if (error == std::errc() && rest == end) return Status::OK();
  return Status::Corruption("'" + value.ToString() + "' is no counter");
}

/// Adds to one counter in each set.
class CounterTransaction {
 public:
  CounterTransaction(Worker* worker, SessionTransaction* transaction)
      : worker_(worker),
        transaction_(transaction),
        keys_(worker->config.key_size),
        sets_(worker->config.transaction_sets),
        counters_in_set_(worker->config.num / sets_) {}

  Status Run() {
    const uint64_t add = 1 + worker_->random.Uniform(kAddAtMost);
    transaction_->Begin();
    // From any set on, so that transactions with locks meet in other orders, too.
    const uint64_t first = worker_->random.Uniform(sets_);
    for (uint64_t i = 0; i < sets_; ++i) {
      const uint64_t set = (first + i) % sets_;
      const uint64_t number = worker_->RandomNumber() % counters_in_set_;
      NACRE_RETURN_IF_ERROR(Add(keys_.Set(set * counters_in_set_ + number), add));
    }
    return transaction_->Commit();
  }

 private:
  Status Add(const Slice& key, uint64_t add) {
    Slice value;
    uint64_t counter = 0;
    const Status status = transaction_->GetForUpdate(key, &value);
    if (status.ok()) {
      NACRE_RETURN_IF_ERROR(ParseCounter(value, &counter));
    } else if (!status.IsNotFound()) {
      return status;
    }
    return transaction_->Put(key, std::to_string(counter + add));
  }

  Worker* const worker_;
  SessionTransaction* const transaction_;
  KeyGenerator keys_;
  const uint64_t sets_;
  const uint64_t counters_in_set_;
};

}  // namespace

Status RandomTransaction(Worker* worker) {
  const std::unique_ptr<SessionTransaction> transaction = worker->session->NewTransaction();
  if (transaction == nullptr) return Status::NotSupported("the database has no transactions");
  CounterTransaction counters(worker, transaction.get());
  OpBudget budget = worker->Budget(worker->config.readwrites);
  uint64_t done = 0;
  uint64_t committed = 0;
  while (budget.Take() != 0) {
    const Status status = counters.Run();
    ++done;
    if (status.ok()) {
      ++committed;
    } else {
      transaction->Rollback();
      if (!IsConflict(status)) return status;
    }
    worker->recorder->FinishedOps(1, OpType::kWrite);
  }
  worker->recorder->AddLookups(done, committed);
  return Status::OK();
}

Status VerifyTransactions(const BenchConfig& config, Session* session) {
  const uint64_t counters_in_set = config.num / config.transaction_sets;
  std::vector<uint64_t> sums(config.transaction_sets);
  Cursor* const cursor = session->NewCursor();
  KeyGenerator keys(config.key_size);
  size_t set = 0;
  for (bool valid = cursor->SeekToFirst(); valid; valid = cursor->Next()) {
    while (set + 1 < sums.size() &&
           cursor->key().compare(keys.Set((set + 1) * counters_in_set)) >= 0) {
      ++set;
    }
    uint64_t counter = 0;
    NACRE_RETURN_IF_ERROR(ParseCounter(cursor->value(), &counter));
    sums[set] += counter;
  }
  NACRE_RETURN_IF_ERROR(cursor->status());
  session->CloseCursor();
  for (size_t i = 1; i < sums.size(); ++i) {
    if (sums[i] == sums[0]) continue;
    return Status::Corruption(fmt::format(
        "the counters of set {} add up to {}, those of set 0 to {}", i, sums[i], sums[0]));
  }
  return Status::OK();
}

}  // namespace nacre::bench
