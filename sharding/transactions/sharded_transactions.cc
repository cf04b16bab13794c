// Optimistic transactions over a keyspace.

#include <atomic>
#include <utility>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "sharding/sharded_db_impl.h"
#include "sharding/transactions/sharded_checks.h"
#include "transactions/optimistic_transaction.h"

namespace nacre {
namespace {

/// Plain writes wait for a transaction that is being committed where its owner holds its keys.
class ShardedTransactionDB final : public OptimisticTransactionDB {
 public:
  explicit ShardedTransactionDB(std::unique_ptr<ShardedDB> db)
      : OptimisticTransactionDB(std::move(db)),
        impl_(static_cast<ShardedDBImpl*>(db_.get())),
        comparator_(impl_->GetOptions(impl_->DefaultColumnFamily()).comparator) {}

  std::unique_ptr<Transaction> BeginTransaction(
      const WriteOptions& write_options, const OptimisticTransactionOptions& options) override {
    return std::make_unique<OptimisticTransaction>(
        db_.get(), std::make_unique<ShardedChecks>(impl_), write_options, options, comparator_,
        next_id_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  ShardedDBImpl* const impl_;
  const Comparator* const comparator_;
  std::atomic<TransactionID> next_id_{1};
};

}  // namespace

Status OptimisticTransactionDB::Open(const ShardedOptions& options, const std::string& name,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(
      options, name, {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles, db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status OptimisticTransactionDB::Open(const ShardedOptions& options, const std::string& name,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<ColumnFamilyHandle*>* handles,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::unique_ptr<ShardedDB> base;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(options, name, families, handles, &base));
  *db = std::make_unique<ShardedTransactionDB>(std::move(base));
  return Status::OK();
}

}  // namespace nacre
