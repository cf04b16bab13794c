#include "db_bench/engine/nacre_database.h"

#include <utility>

namespace nacre::bench {
namespace {

TransactionDBOptions LockOptions(const BenchConfig& config) {
  TransactionDBOptions options;
  options.transaction_lock_timeout = config.transaction_lock_timeout_ms;
  options.default_lock_timeout = config.transaction_lock_timeout_ms;
  return options;
}

class NacreTransaction final : public SessionTransaction {
 public:
  NacreTransaction(const BenchConfig& config, const NacreDatabase& database)
      : locking_(database.locking),
        optimistic_(database.optimistic),
        set_snapshot_(config.transaction_set_snapshot) {
    write_options_.disable_wal = config.disable_wal;
    read_options_.verify_checksums = config.verify_checksum;
  }

  void Begin() override {
    if (locking_ != nullptr) {
      TransactionOptions options;
      options.set_snapshot = set_snapshot_;
      transaction_ = locking_->BeginTransaction(write_options_, options);
    } else {
      OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot_;
      transaction_ = optimistic_->BeginTransaction(write_options_, options);
    }
  }
  Status GetForUpdate(const Slice& key, Slice* value) override {
    Status status = transaction_->GetForUpdate(read_options_, key, &value_);
    *value = value_;
    return status;
  }
  Status Put(const Slice& key, const Slice& value) override {
    return transaction_->Put(key, value);
  }
  Status Commit() override { return transaction_->Commit(); }
  void Rollback() override { transaction_->Rollback().IgnoreError(); }

 private:
  TransactionDB* const locking_;
  OptimisticTransactionDB* const optimistic_;
  const bool set_snapshot_;
  WriteOptions write_options_;
  ReadOptions read_options_;
  std::unique_ptr<Transaction> transaction_;
  std::string value_;
};

template <typename Kind>
Status Take(Status status, std::unique_ptr<Kind> opened, Kind** kind, std::unique_ptr<DB>* db) {
  *kind = opened.get();
  *db = std::move(opened);
  return status;
}

}  // namespace

Status OpenNacre(const BenchConfig& config, const Options& options, const std::string& name,
                 NacreDatabase* database) {
  if (config.transactions == Transactions::kLocking) {
    std::unique_ptr<TransactionDB> opened;
    Status status = TransactionDB::Open(options, LockOptions(config), name, &opened);
    return Take(std::move(status), std::move(opened), &database->locking, &database->db);
  }
  if (config.transactions == Transactions::kOptimistic) {
    std::unique_ptr<OptimisticTransactionDB> opened;
    Status status = OptimisticTransactionDB::Open(options, name, &opened);
    return Take(std::move(status), std::move(opened), &database->optimistic, &database->db);
  }
  return DB::Open(options, name, &database->db);
}

Status OpenNacreKeyspace(const BenchConfig& config, const ShardedOptions& options,
                         const std::string& name, NacreDatabase* database) {
  if (config.transactions == Transactions::kLocking) {
    std::unique_ptr<TransactionDB> opened;
    NACRE_RETURN_IF_ERROR(TransactionDB::Open(options, LockOptions(config), name, &opened));
    database->keyspace = static_cast<ShardedDB*>(opened->GetBaseDB());
    return Take(Status::OK(), std::move(opened), &database->locking, &database->db);
  }
  if (config.transactions == Transactions::kOptimistic) {
    std::unique_ptr<OptimisticTransactionDB> opened;
    NACRE_RETURN_IF_ERROR(OptimisticTransactionDB::Open(options, name, &opened));
    database->keyspace = static_cast<ShardedDB*>(opened->GetBaseDB());
    return Take(Status::OK(), std::move(opened), &database->optimistic, &database->db);
  }
  std::unique_ptr<ShardedDB> opened;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(options, name, &opened));
  return Take(Status::OK(), std::move(opened), &database->keyspace, &database->db);
}

std::unique_ptr<SessionTransaction> NewNacreTransaction(const BenchConfig& config,
                                                        const NacreDatabase& database) {
  if (database.locking == nullptr && database.optimistic == nullptr) return nullptr;
  return std::make_unique<NacreTransaction>(config, database);
}

}  // namespace nacre::bench
