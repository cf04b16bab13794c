#include "transactions/pessimistic_transaction_db.h"

#include <set>
#include <string>
#include <utility>

#include "db/db_impl.h"
#include "db/read/key_sequences.h"
#include "table/format/write_batch_format.h"
#include "transactions/below.h"
#include "transactions/pessimistic_transaction.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// Holds locks for the time of a write.
class HeldLocks {
 public:
  HeldLocks(KeyLocks* locks, const LockOwner& owner) : locks_(locks), owner_(owner) {}
  ~HeldLocks() {
    for (const auto& [family, key] : keys_) locks_->Unlock(owner_.id, family, key);
  }
  HeldLocks(const HeldLocks&) = delete;
  HeldLocks& operator=(const HeldLocks&) = delete;

  Status Lock(uint32_t family, const Slice& key) {
    keys_.emplace_back(family, key.ToString());  // First, so that no lock is forgotten.
    return locks_->Lock(owner_, nullptr, {.family = family, .key = key});
  }
  TransactionID owner() const { return owner_.id; }
  KeyTracker Tracked() const {
    KeyTracker tracked;
    for (const auto& [family, key] : keys_) {
      tracked.Track(family, key, /*sequence=*/0, /*read_only=*/false, /*exclusive=*/true);
    }
    return tracked;
  }

 private:
  KeyLocks* const locks_;
  const LockOwner owner_;
  std::vector<std::pair<uint32_t, std::string>> keys_;
};

/// A database of this process.
class EngineBelow final : public LockedDatabase {
 public:
  /// `engine` is what is below `db`. Both outlive it.
  EngineBelow(DB* db, DBImpl* engine) : engine_(engine), prepared_(db, engine) {}

  const Comparator* comparator() const override { return engine_->comparator(); }
  Status CheckUnwritten(uint32_t family, const Slice& key, const Snapshot& since) const override {
    const SequenceNumber known = since.GetSequenceNumber();
    SequenceNumber latest = 0;
    NACRE_RETURN_IF_ERROR(engine_->key_sequences().Latest(family, key, known, &latest));
    return latest > known ? Written() : Status::OK();
  }
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override {
    return engine_->key_sequences().FindHandle(family);
  }
  PreparedStore* prepared() override { return &prepared_; }
  SequenceNumber SequenceOfLock() const override { return engine_->GetLatestSequenceNumber(); }

 private:
  const DBImpl* const engine_;
  PreparedStore prepared_;
};

}  // namespace

PessimisticTransactionDB::PessimisticTransactionDB(std::unique_ptr<DB> db,
                                                   std::unique_ptr<LockedDatabase> below,
                                                   const TransactionDBOptions& options)
    : TransactionDB(std::move(db)),
      below_(std::move(below)),
      options_(options),
      locks_(below_->NewLocks(options, [this](TransactionID id) { return Rob(id); })) {}

PessimisticTransactionDB::~PessimisticTransactionDB() = default;

Status PessimisticTransactionDB::Recover(std::vector<ColumnFamilyHandle*>* handles) {
  if (below_->prepared() == nullptr) return Status::OK();
  const auto recover = [this](const std::string& name, WriteBatch* batch) {
    recovered_.push_back(
        std::make_unique<PessimisticTransaction>(this, WriteOptions(), TransactionOptions(),
                                                 next_id_.fetch_add(1, std::memory_order_relaxed)));
    return recovered_.back()->Recover(name, *batch);
  };
  const Status status = CatchAll([&] { return below_->prepared()->Open(recover); });
  if (status.ok()) return status;
  for (ColumnFamilyHandle* const handle : *handles) DestroyColumnFamilyHandle(handle).IgnoreError();
  handles->clear();
  return status;
}

Status PessimisticTransactionDB::Close() {
  if (below_->prepared() != nullptr) below_->prepared()->Close();
  return db_->Close();
}

std::unique_ptr<Transaction> PessimisticTransactionDB::BeginTransaction(
    const WriteOptions& write_options, const TransactionOptions& options) {
  return std::make_unique<PessimisticTransaction>(this, write_options, options,
                                                  next_id_.fetch_add(1, std::memory_order_relaxed));
}

// ---- Plain writes -----------------------------------------------------------------------------

LockOwner PessimisticTransactionDB::PlainOwner() {
  return {.id = next_id_.fetch_add(1, std::memory_order_relaxed),
          .timeout_ms = options_.default_lock_timeout};
}

template <typename WriteKey, typename AddUpdate>
Status PessimisticTransactionDB::WriteLocked(const WriteOptions& options,
                                             ColumnFamilyHandle* family, const Slice& key,
                                             WriteKey write, AddUpdate add) {
  return CatchAll([&]() -> Status {
    HeldLocks held(locks_.get(), PlainOwner());
    NACRE_RETURN_IF_ERROR(held.Lock(IdOf(family), key));
    if (!below_->may_lose_locks()) return write();
    WriteBatch update;
    NACRE_RETURN_IF_ERROR(add(&update));
    return below_->WriteLocked(options, held.owner(), held.Tracked(), &update);
  });
}

Status PessimisticTransactionDB::Put(const WriteOptions& options, ColumnFamilyHandle* family,
                                     const Slice& key, const Slice& value) {
  return WriteLocked(
      options, family, key, [&] { return db_->Put(options, family, key, value); },
      [&](WriteBatch* batch) { return batch->Put(family, key, value); });
}

Status PessimisticTransactionDB::Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                                        const Slice& key) {
  return WriteLocked(
      options, family, key, [&] { return db_->Delete(options, family, key); },
      [&](WriteBatch* batch) { return batch->Delete(family, key); });
}

Status PessimisticTransactionDB::SingleDelete(const WriteOptions& options,
                                              ColumnFamilyHandle* family, const Slice& key) {
  return WriteLocked(
      options, family, key, [&] { return db_->SingleDelete(options, family, key); },
      [&](WriteBatch* batch) { return batch->SingleDelete(family, key); });
}

Status PessimisticTransactionDB::Merge(const WriteOptions& options, ColumnFamilyHandle* family,
                                       const Slice& key, const Slice& operand) {
  return WriteLocked(
      options, family, key, [&] { return db_->Merge(options, family, key, operand); },
      [&](WriteBatch* batch) { return batch->Merge(family, key, operand); });
}

Status PessimisticTransactionDB::DeleteRange(const WriteOptions& /*options*/,
                                             ColumnFamilyHandle* /*family*/, const Slice& /*begin*/,
                                             const Slice& /*end*/) {
  return Status::NotSupported("DeleteRange in a TransactionDB");
}

Status PessimisticTransactionDB::Write(const WriteOptions& options, WriteBatch* updates) {
  return Write(options, TransactionDBWriteOptimizations(), updates);
}

Status PessimisticTransactionDB::Write(const WriteOptions& options,
                                       const TransactionDBWriteOptimizations& optimizations,
                                       WriteBatch* updates) {
  if (updates == nullptr || optimizations.skip_concurrency_control) {
    return db_->Write(options, updates);
  }
  return CatchAll([&] { return WriteAllLocked(options, updates); });
}

Status PessimisticTransactionDB::WriteAllLocked(const WriteOptions& options, WriteBatch* updates) {
  // The order is always the same, so that such writes never wait for one another in a circle.
  std::set<std::pair<uint32_t, std::string>> keys;
  bool ranges = false;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      updates->Data(), [&](ValueType type, uint32_t family, const Slice& key, const Slice&) {
        ranges |= type == ValueType::kRangeDeletion;
        keys.emplace(family, key.ToString());
      }));
  if (ranges) return Status::NotSupported("DeleteRange in a TransactionDB");
  HeldLocks held(locks_.get(), PlainOwner());
  for (const auto& [family, key] : keys) NACRE_RETURN_IF_ERROR(held.Lock(family, key));
  return below_->may_lose_locks()
             ? below_->WriteLocked(options, held.owner(), held.Tracked(), updates)
             : db_->Write(options, updates);
}

// ---- Transactions -----------------------------------------------------------------------------

bool PessimisticTransactionDB::AddName(const TransactionName& name,
                                       PessimisticTransaction* transaction) {
  MutexLock lock(&mutex_);
  return names_.emplace(name, transaction).second;
}

void PessimisticTransactionDB::RemoveName(const TransactionName& name) {
  MutexLock lock(&mutex_);
  names_.erase(name);
}

void PessimisticTransactionDB::AddExpiring(TransactionID id, PessimisticTransaction* transaction) {
  MutexLock lock(&mutex_);
  expiring_[id] = transaction;
}

void PessimisticTransactionDB::RemoveExpiring(TransactionID id) {
  MutexLock lock(&mutex_);
  expiring_.erase(id);
}

bool PessimisticTransactionDB::Rob(TransactionID id) {
  MutexLock lock(&mutex_);
  const auto found = expiring_.find(id);
  // One that is gone is giving up its locks.
  return found == expiring_.end() || found->second->Rob();
}

Transaction* PessimisticTransactionDB::GetTransactionByName(const TransactionName& name) {
  MutexLock lock(&mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

void PessimisticTransactionDB::GetAllPreparedTransactions(std::vector<Transaction*>* transactions) {
  MutexLock lock(&mutex_);
  transactions->clear();
  for (const auto& [name, transaction] : names_) {
    if (transaction->GetState() == Transaction::PREPARED) transactions->push_back(transaction);
  }
}

Status TransactionDB::Open(const Options& options, const TransactionDBOptions& db_options,
                           const std::string& name, std::unique_ptr<TransactionDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(options, db_options, name,
                             {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles,
                             db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status TransactionDB::Open(const DBOptions& options, const TransactionDBOptions& db_options,
                           const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles,
                           std::unique_ptr<TransactionDB>* db) {
  std::unique_ptr<DB> base;
  NACRE_RETURN_IF_ERROR(DB::Open(options, name, families, handles, &base));
  DBImpl* const engine = EngineOf(base.get());
  auto below = std::make_unique<EngineBelow>(base.get(), engine);
  auto opened =
      std::make_unique<PessimisticTransactionDB>(std::move(base), std::move(below), db_options);
  NACRE_RETURN_IF_ERROR(opened->Recover(handles));
  *db = std::move(opened);
  return Status::OK();
}

}  // namespace nacre
