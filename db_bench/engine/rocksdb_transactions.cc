#include "db_bench/engine/rocksdb_transactions.h"

#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include "db_bench/engine/engine_status.h"
#include "db_bench/engine/rocksdb_options.h"
#include "db_bench/engine/rocksdb_slice.h"
#include "db_bench/engine/rocksdb_versions.h"

namespace nacre::bench {
namespace {

class RocksdbTransaction final : public SessionTransaction {
 public:
  RocksdbTransaction(const BenchConfig& config, rocksdb::DB* db)
      : locking_(config.transactions == Transactions::kLocking
                     ? static_cast<rocksdb::TransactionDB*>(db)
                     : nullptr),
        optimistic_(config.transactions == Transactions::kOptimistic
                        ? static_cast<rocksdb::OptimisticTransactionDB*>(db)
                        : nullptr),
        set_snapshot_(config.transaction_set_snapshot),
        read_options_(MakeRocksdbReadOptions(config)) {
    write_options_.disableWAL = config.disable_wal;
  }

  // Each takes the place of the one before, as in RocksDB's db_bench.
  void Begin() override {
    rocksdb::Transaction* const before = transaction_.release();
    if (locking_ != nullptr) {
      rocksdb::TransactionOptions options;
      options.set_snapshot = set_snapshot_;
      transaction_.reset(locking_->BeginTransaction(write_options_, options, before));
    } else {
      rocksdb::OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot_;
      transaction_.reset(optimistic_->BeginTransaction(write_options_, options, before));
    }
  }
  Status GetForUpdate(const Slice& key, Slice* value) override {
    const rocksdb::Status status =
        transaction_->GetForUpdate(read_options_, RocksdbSlice(key), &value_);
    *value = value_;
    return ToStatus(status);
  }
  Status Put(const Slice& key, const Slice& value) override {
    return ToStatus(transaction_->Put(RocksdbSlice(key), RocksdbSlice(value)));
  }
  Status Commit() override { return ToStatus(transaction_->Commit()); }
  void Rollback() override { transaction_->Rollback().PermitUncheckedError(); }

 private:
  rocksdb::TransactionDB* const locking_;
  rocksdb::OptimisticTransactionDB* const optimistic_;
  const bool set_snapshot_;
  const rocksdb::ReadOptions read_options_;
  rocksdb::WriteOptions write_options_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  std::string value_;
};

template <typename Kind, typename Open>
rocksdb::Status OpenAs(const Open& open, std::unique_ptr<rocksdb::DB>* db) {
  Kind* opened = nullptr;
  rocksdb::Status status = open(&opened);
  db->reset(opened);
  return status;
}

}  // namespace

rocksdb::Status OpenRocksdbAs(const BenchConfig& config, const rocksdb::Options& options,
                              const std::string& path, std::unique_ptr<rocksdb::DB>* db) {
  switch (config.transactions) {
    case Transactions::kLocking: {
      rocksdb::TransactionDBOptions locks;
      locks.transaction_lock_timeout = config.transaction_lock_timeout_ms;
      locks.default_lock_timeout = config.transaction_lock_timeout_ms;
      return OpenAs<rocksdb::TransactionDB>(
          [&](auto** opened) { return rocksdb::TransactionDB::Open(options, locks, path, opened); },
          db);
    }
    case Transactions::kOptimistic:
      return OpenAs<rocksdb::OptimisticTransactionDB>(
          [&](auto** opened) {
            return rocksdb::OptimisticTransactionDB::Open(options, path, opened);
          },
          db);
    case Transactions::kNone:
      break;
  }
  return OpenRocksdb(options, path, db);
}

std::unique_ptr<SessionTransaction> NewRocksdbTransaction(const BenchConfig& config,
                                                          rocksdb::DB* db) {
  if (config.transactions == Transactions::kNone) return nullptr;
  return std::make_unique<RocksdbTransaction>(config, db);
}

}  // namespace nacre::bench
