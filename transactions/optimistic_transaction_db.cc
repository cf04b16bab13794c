#include "nacre/utilities/optimistic_transaction_db.h"

#include <atomic>
#include <utility>
#include <vector>

#include "transactions/below.h"
#include "transactions/bucket_locks.h"
#include "transactions/engine_checks.h"
#include "transactions/optimistic_transaction.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

class OptimisticTransactionDBImpl final : public OptimisticTransactionDB {
 public:
  /// `engine` is what is below `db`.
  OptimisticTransactionDBImpl(std::unique_ptr<DB> db, const DBImpl* engine, uint32_t buckets)
      : OptimisticTransactionDB(std::move(db)), engine_(engine), buckets_(buckets) {}

  std::unique_ptr<Transaction> BeginTransaction(
      const WriteOptions& write_options, const OptimisticTransactionOptions& options) override {
    return std::make_unique<OptimisticTransaction>(
        db_.get(), std::make_unique<EngineChecks>(db_.get(), engine_, &buckets_), write_options,
        options, engine_->comparator(), next_id_.fetch_add(1, std::memory_order_relaxed));
  }

  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    return WriteLocked(family, key, [&] { return db_->Put(options, family, key, value); });
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    return WriteLocked(family, key, [&] { return db_->Delete(options, family, key); });
  }
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override {
    return WriteLocked(family, key, [&] { return db_->SingleDelete(options, family, key); });
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& operand) override {
    return WriteLocked(family, key, [&] { return db_->Merge(options, family, key, operand); });
  }
  Status DeleteRange(const WriteOptions& /*options*/, ColumnFamilyHandle* /*family*/,
                     const Slice& /*begin*/, const Slice& /*end*/) override {
    return Status::NotSupported("DeleteRange in an OptimisticTransactionDB");
  }
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    if (updates == nullptr) return db_->Write(options, updates);
    return CatchAll([&]() -> Status {
      std::vector<uint32_t> buckets;
      NACRE_RETURN_IF_ERROR(buckets_.AddBuckets(*updates, &buckets));
      const BucketLocks::Holder holder(&buckets_, std::move(buckets));
      return db_->Write(options, updates);
    });
  }

 private:
  template <typename WriteKey>
  Status WriteLocked(ColumnFamilyHandle* family, const Slice& key, WriteKey write) {
    return CatchAll([&] {
      const BucketLocks::Holder holder(&buckets_, {buckets_.BucketOf(IdOf(family), key)});
      return write();
    });
  }

  const DBImpl* const engine_;
  BucketLocks buckets_;
  std::atomic<TransactionID> next_id_{1};
};

}  // namespace

Status OptimisticTransactionDB::Open(const Options& options, const std::string& name,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  return Open(options, OptimisticTransactionDBOptions(), name, db);
}

Status OptimisticTransactionDB::Open(const Options& options,
                                     const OptimisticTransactionDBOptions& db_options,
                                     const std::string& name,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(options, db_options, name,
                             {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles,
                             db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status OptimisticTransactionDB::Open(const DBOptions& options,
                                     const OptimisticTransactionDBOptions& db_options,
                                     const std::string& name,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<ColumnFamilyHandle*>* handles,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::unique_ptr<DB> base;
  NACRE_RETURN_IF_ERROR(DB::Open(options, name, families, handles, &base));
  const DBImpl* engine = EngineOf(base.get());
  *db = std::make_unique<OptimisticTransactionDBImpl>(std::move(base), engine,
                                                      db_options.occ_lock_buckets);
  return Status::OK();
}

}  // namespace nacre
