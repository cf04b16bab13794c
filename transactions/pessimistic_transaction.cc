#include "transactions/pessimistic_transaction.h"

#include <utility>

#include "transactions/below.h"
#include "transactions/pessimistic_transaction_db.h"
#include "util/clock.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// A lock that was got, or made exclusive, and is as before at the end of the scope unless it is
/// kept.
class NewLock {
 public:
  NewLock(KeyLocks* locks, TransactionID owner, uint32_t family, const Slice& key)
      : locks_(locks), owner_(owner), family_(family), key_(key) {}
  ~NewLock() {
    if (change_ == Change::kGot) locks_->Unlock(owner_, family_, key_);
    if (change_ == Change::kUpgraded) locks_->Share(owner_, family_, key_);
  }
  NewLock(const NewLock&) = delete;
  NewLock& operator=(const NewLock&) = delete;

  void WasGot() { change_ = Change::kGot; }
  void WasUpgraded() { change_ = Change::kUpgraded; }
  void Keep() { change_ = Change::kNone; }

 private:
  enum class Change : uint8_t { kNone, kGot, kUpgraded };

  KeyLocks* const locks_;
  const TransactionID owner_;
  const uint32_t family_;
  const Slice key_;
  Change change_ = Change::kNone;
};

constexpr uint64_t kNanosPerMilli = 1'000'000;

uint64_t ExpiresAt(int64_t expiration_ms) {
  if (expiration_ms < 0) return 0;
  return Clock::System()->NowNanos() + static_cast<uint64_t>(expiration_ms) * kNanosPerMilli;
}

}  // namespace

PessimisticTransaction::PessimisticTransaction(PessimisticTransactionDB* db,
                                               const WriteOptions& write_options,
                                               const TransactionOptions& options, TransactionID id)
    : TransactionBase(db->base(), write_options, db->below()->comparator(),
                      options.max_write_batch_size),
      txn_db_(db),
      id_(id),
      deadlock_detect_(options.deadlock_detect),
      deadlock_detect_depth_(options.deadlock_detect_depth),
      skip_concurrency_control_(options.skip_concurrency_control),
      skip_prepare_(options.skip_prepare),
      expires_nanos_(ExpiresAt(options.expiration)),
      timeout_ms_(options.lock_timeout >= 0 ? options.lock_timeout
                                            : db->options().transaction_lock_timeout) {
  if (options.set_snapshot) SetSnapshot();
  if (expires_nanos_ != 0) txn_db_->AddExpiring(id_, this);
}

PessimisticTransaction::~PessimisticTransaction() {
  // Threads that want its locks no longer find it.
  if (expires_nanos_ != 0) txn_db_->RemoveExpiring(id_);
  ReleaseKeys();
  if (!name_.empty()) txn_db_->RemoveName(name_);
}

// ---- Locks ------------------------------------------------------------------------------------

LockOwner PessimisticTransaction::Owner() const {
  return {.id = id_,
          .timeout_ms = timeout_ms_,
          .expires_nanos = expires_nanos_,
          .deadlock_detect = deadlock_detect_,
          .deadlock_detect_depth = deadlock_detect_depth_};
}

Status PessimisticTransaction::TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only,
                                       bool exclusive, bool do_validate, bool assume_tracked) {
  if (const TransactionState state = GetState(); state != STARTED) return NotAtWork(state);
  if (skip_concurrency_control_) return Status::OK();
  const uint32_t id = IdOf(family);
  const TrackedKey* before = tracked().Find(id, key);
  if (assume_tracked && before == nullptr) {
    return Status::InvalidArgument("assume_tracked is set, but the key is not tracked");
  }
  const bool upgrade = before != nullptr && exclusive && !before->exclusive;
  NewLock lock(txn_db_->locks(), id_, id, key);
  if (before == nullptr || upgrade) {
    const LockWanted wanted{.family = id, .key = key, .exclusive = exclusive, .upgrade = upgrade};
    NACRE_RETURN_IF_ERROR(txn_db_->locks()->Lock(Owner(), this, wanted));
    before == nullptr ? lock.WasGot() : lock.WasUpgraded();
  }
  SetSnapshotIfNeeded();
  SequenceNumber sequence = before == nullptr ? kMaxSequenceNumber : before->sequence;
  if (do_validate && GetSnapshot() == nullptr) {
    if (before == nullptr) sequence = txn_db_->below()->SequenceOfLock();
  } else if (do_validate && sequence > GetSnapshot()->GetSequenceNumber()) {
    NACRE_RETURN_IF_ERROR(txn_db_->below()->CheckUnwritten(id, key, *GetSnapshot()));
    sequence = GetSnapshot()->GetSequenceNumber();
  }
  TrackKey(id, key, sequence, read_only, exclusive);
  lock.Keep();
  return Status::OK();
}

void PessimisticTransaction::Unlock(uint32_t family, const Slice& key) {
  txn_db_->locks()->Unlock(id_, family, key);
}

std::unique_ptr<ColumnFamilyHandle> PessimisticTransaction::FindHandle(uint32_t family) const {
  return txn_db_->below()->FindHandle(family);
}

void PessimisticTransaction::ReleaseKeys() {
  if (tracked().size() > 0) txn_db_->locks()->UnlockAll(id_, tracked());
}

void PessimisticTransaction::BeginWait(const std::vector<TransactionID>& owners, uint32_t family,
                                       const Slice& key) {
  MutexLock lock(&wait_mutex_);
  waiting_for_ = owners;
  waiting_family_ = family;
  waiting_key_ = key.ToString();
}

void PessimisticTransaction::EndWait() {
  MutexLock lock(&wait_mutex_);
  waiting_for_.clear();
  waiting_key_.clear();
}

std::vector<TransactionID> PessimisticTransaction::GetWaitingTxns(uint32_t* family,
                                                                  std::string* key) const {
  MutexLock lock(&wait_mutex_);
  if (family != nullptr) *family = waiting_family_;
  if (key != nullptr) *key = waiting_key_;
  return waiting_for_;
}

// ---- States -----------------------------------------------------------------------------------

Status PessimisticTransaction::NotAtWork(TransactionState state) {
  switch (state) {
    case COMMITTED:
      return Status::InvalidArgument("the transaction has been committed");
    case ROLLEDBACK:
      return Status::InvalidArgument("the transaction has been rolled back");
    case LOCKS_STOLEN:
      return Status::Aborted("the transaction has expired, and others have taken its locks");
    case PREPARED:
    case AWAITING_PREPARE:
      return Status::InvalidArgument("the transaction has been prepared");
    case STARTED:
    case AWAITING_COMMIT:
    case AWAITING_ROLLBACK:
      break;
  }
  return Status::InvalidArgument("the transaction is ending");
}

bool PessimisticTransaction::Expired() const {
  return expires_nanos_ != 0 && Clock::System()->NowNanos() >= expires_nanos_;
}

bool PessimisticTransaction::Rob() {
  TransactionState expected = STARTED;
  return state_.compare_exchange_strong(expected, LOCKS_STOLEN, std::memory_order_acq_rel) ||
         expected == LOCKS_STOLEN;
}

Status PessimisticTransaction::Leave(TransactionState next) {
  if (Expired()) return Status::Aborted("the transaction has expired");
  TransactionState state = STARTED;
  if (state_.compare_exchange_strong(state, next, std::memory_order_acq_rel) || state == next) {
    return Status::OK();
  }
  return NotAtWork(state);
}

void PessimisticTransaction::End(TransactionState state) {
  ReleaseKeys();
  Clear();
  if (!name_.empty()) txn_db_->RemoveName(name_);
  name_.clear();
  state_.store(state, std::memory_order_release);
}

Status PessimisticTransaction::SetName(const TransactionName& name) {
  constexpr size_t kLengthMax = 512;
  if (const TransactionState state = GetState(); state != STARTED) return NotAtWork(state);
  if (!name_.empty()) return Status::InvalidArgument("the transaction is named " + name_);
  if (name.empty() || name.size() > kLengthMax) {
    return Status::InvalidArgument("the name of a transaction has 1 to 512 bytes");
  }
  return CatchAll([&]() -> Status {
    TransactionName copy = name;
    if (!txn_db_->AddName(name, this)) {
      return Status::InvalidArgument("there is a transaction named " + name);
    }
    name_ = std::move(copy);  // This cannot throw: a name in the database's list is here, too.
    return Status::OK();
  });
}

Status PessimisticTransaction::Prepare() {
  if (name_.empty()) {
    return Status::InvalidArgument("a transaction without a name cannot be prepared");
  }
  if (txn_db_->below()->prepared() == nullptr) {
    return Status::NotSupported(
        "Prepare: the keyspace has a coordinator, or a comparator of its own");
  }
  NACRE_RETURN_IF_ERROR(Leave(AWAITING_PREPARE));
  // If that fails, the outcome is unknown: the entry may be there, or come later.
  recorded_ = true;
  Status status = CatchAll([this] {
    return txn_db_->below()->prepared()->Add(GetWriteOptions(), name_,
                                             *GetWriteBatch()->GetWriteBatch());
  });
  state_.store(status.ok() ? PREPARED : STARTED, std::memory_order_release);
  return status;
}

Status PessimisticTransaction::Recover(const TransactionName& name, const WriteBatch& batch) {
  NACRE_RETURN_IF_ERROR(SetName(name));
  NACRE_RETURN_IF_ERROR(AddBatch(batch, /*skip_dropped=*/true));
  recorded_ = true;
  state_.store(PREPARED, std::memory_order_release);
  return Status::OK();
}

Status PessimisticTransaction::WriteUpdates() {
  WriteBatch* batch = GetWriteBatch()->GetWriteBatch();
  if (txn_db_->below()->may_lose_locks()) {
    return skip_concurrency_control_
               ? db()->Write(GetWriteOptions(), batch)
               : txn_db_->below()->WriteLocked(GetWriteOptions(), id_, tracked(), batch);
  }
  if (!recorded_) {
    return batch->Count() == 0 ? Status::OK() : db()->Write(GetWriteOptions(), batch);
  }
  WriteBatch with_removal(batch->Data());
  NACRE_RETURN_IF_ERROR(txn_db_->below()->prepared()->AddRemoval(name_, &with_removal));
  WriteOptions options = GetWriteOptions();
  options.disable_wal = false;  // Otherwise the entry would be there again.
  return db()->Write(options, &with_removal);
}

Status PessimisticTransaction::Commit() {
  if (GetState() != PREPARED) {
    if (!name_.empty() && !skip_prepare_ && GetState() == STARTED) {
      return Status::InvalidArgument("the transaction has not been prepared");
    }
    NACRE_RETURN_IF_ERROR(Leave(AWAITING_COMMIT));
  }
  NACRE_RETURN_IF_ERROR(CatchAll([this] { return WriteUpdates(); }));
  End(COMMITTED);
  return Status::OK();
}

Status PessimisticTransaction::RemoveRecord() {
  WriteBatch removal;
  NACRE_RETURN_IF_ERROR(txn_db_->below()->prepared()->AddRemoval(name_, &removal));
  WriteOptions options = GetWriteOptions();
  options.disable_wal = false;
  return db()->Write(options, &removal);
}

Status PessimisticTransaction::Rollback() {
  const TransactionState state = GetState();
  if (state == COMMITTED || state == ROLLEDBACK) return NotAtWork(state);
  if (recorded_) NACRE_RETURN_IF_ERROR(CatchAll([this] { return RemoveRecord(); }));
  if (state == PREPARED) {
    End(ROLLEDBACK);
    return Status::OK();
  }
  recorded_ = false;
  ReleaseKeys();
  Clear();
  if (state == AWAITING_COMMIT) state_.store(STARTED, std::memory_order_release);
  return Status::OK();
}

Status PessimisticTransaction::RollbackToSavePoint() {
  if (const TransactionState state = GetState(); state != STARTED) return NotAtWork(state);
  return TransactionBase::RollbackToSavePoint();
}

}  // namespace nacre
