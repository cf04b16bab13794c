#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "transactions/lock_manager.h"
#include "transactions/prepared_store.h"

namespace nacre {

/// What transactions with locks need of what is below them, beside what a DB does.
///
/// Thread safety: all methods may be called from many threads at once.
class LockedDatabase {
 public:
  virtual ~LockedDatabase() = default;

  virtual const Comparator* comparator() const = 0;
  /// `Busy` if the key was written since the snapshot. Its lock is held.
  virtual Status CheckUnwritten(uint32_t family, const Slice& key, const Snapshot& since) const = 0;
  /// Null if there is no such family.
  virtual std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const = 0;
  /// Null: transactions cannot be prepared.
  virtual PreparedStore* prepared() = 0;

  // ---- What differs where other processes write, too ----

  virtual std::unique_ptr<KeyLocks> NewLocks(const TransactionDBOptions& options, RobLocks rob) {
    return std::make_unique<LockManager>(options, Clock::System(), std::move(rob));
  }
  /// The sequence number of a state between a lock that was just taken and its transaction's next
  /// snapshot, or before.
  virtual SequenceNumber SequenceOfLock() const = 0;
  /// Locks may be lost before their transaction ends, so that all writes have to go through
  /// WriteLocked.
  virtual bool may_lose_locks() const { return false; }
  /// Writes what the owner of the locks of `locked` changes, all of it or nothing. `Busy`: it has
  /// lost one of them.
  virtual Status WriteLocked(const WriteOptions& /*options*/, TransactionID /*owner*/,
                             const KeyTracker& /*locked*/, WriteBatch* /*updates*/) {
    return Status::NotSupported("WriteLocked");
  }

 protected:
  static Status Written() { return Status::Busy("the key was written since the snapshot"); }
};

}  // namespace nacre
