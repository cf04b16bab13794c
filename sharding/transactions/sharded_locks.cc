#include "sharding/transactions/sharded_locks.h"

#include <utility>

#include "nacre/utilities/transaction_db.h"
#include "sharding/transactions/member_locks.h"
#include "transactions/pessimistic_transaction_db.h"

namespace nacre {

/// ShardMap::kPreparedFamily.
class ShardedLocks::Family final : public PreparedFamily {
 public:
  explicit Family(ShardedDBImpl* db) : db_(db) {}

  std::unique_ptr<ColumnFamilyHandle> Find() override {
    return db_->families_.NewHandle(std::string(ShardMap::kPreparedFamily));
  }
  Status Make(std::unique_ptr<ColumnFamilyHandle>* family) override {
    MutexLock lock(&db_->change_mutex_);
    std::vector<ColumnFamilyHandle*> made;
    NACRE_RETURN_IF_ERROR(
        db_->MakeFamilies({ColumnFamilyDescriptor(std::string(ShardMap::kPreparedFamily),
                                                  db_->opener_->PreparedFamilyOptions())},
                          &made));
    family->reset(made.front());
    return Status::OK();
  }

 private:
  ShardedDBImpl* const db_;
};

ShardedLocks::ShardedLocks(ShardedDBImpl* db)
    : db_(db),
      prepared_(comparator() == BytewiseComparator() || comparator() == ReverseBytewiseComparator()
                    ? std::make_unique<PreparedStore>(db, std::make_unique<Family>(db))
                    : nullptr) {}

Status ShardedLocks::CheckUnwritten(uint32_t family, const Slice& key,
                                    const Snapshot& since) const {
  const auto& snapshot = static_cast<const ShardedSnapshot&>(since);
  const size_t index = snapshot.view().map.Find(key);
  LocalShard* const shard = snapshot.view().shards[index]->local();
  const SequenceNumber known = snapshot.of_shard(index)->GetSequenceNumber();
  SequenceNumber latest = 0;
  const auto keys = [&] { return KeySets{{.family = family, .begin = key.ToString()}}; };
  const Status status =
      shard->Read(keys, [&] { return shard->LatestSequenceOf(family, key, known, &latest); });
  // It was split or merged, and its snapshot is gone.
  if (status.IsFenced()) return Written();
  NACRE_RETURN_IF_ERROR(status);
  return latest > known ? Written() : Status::OK();
}

Status TransactionDB::Open(const ShardedOptions& options, const TransactionDBOptions& db_options,
                           const std::string& name, std::unique_ptr<TransactionDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(options, db_options, name,
                             {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles,
                             db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status TransactionDB::Open(const ShardedOptions& options, const TransactionDBOptions& db_options,
                           const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles,
                           std::unique_ptr<TransactionDB>* db) {
  const bool has_members = !options.coordinator.empty();
  if (has_members && db_options.max_num_locks >= 0) {
    return Status::NotSupported("max_num_locks: each member would count its own locks only");
  }
  std::unique_ptr<ShardedDB> base;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(options, name, families, handles, &base));
  auto* const impl = static_cast<ShardedDBImpl*>(base.get());
  std::unique_ptr<LockedDatabase> below;
  if (has_members) {
    below = std::make_unique<MembersBelow>(impl);
  } else {
    below = std::make_unique<ShardedLocks>(impl);
  }
  auto opened =
      std::make_unique<PessimisticTransactionDB>(std::move(base), std::move(below), db_options);
  NACRE_RETURN_IF_ERROR(opened->Recover(handles));
  *db = std::move(opened);
  return Status::OK();
}

}  // namespace nacre
