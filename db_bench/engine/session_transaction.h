#pragma once

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::bench {

/// The transactions of one session, one at a time.
/// Thread safety: none; must be destroyed before the engine is closed.
class SessionTransaction {
 public:
  virtual ~SessionTransaction() = default;
  /// Ends the one before, which is rolled back unless it was committed.
  virtual void Begin() = 0;
  /// `NotFound` if the key is absent. From here on nothing else changes it, or the transaction is
  /// not committed. `*value` stays until the next call.
  virtual Status GetForUpdate(const Slice& key, Slice* value) = 0;
  virtual Status Put(const Slice& key, const Slice& value) = 0;
  /// `Busy`, `TimedOut`, `TryAgain` or `Aborted`, here and above: another one was in the way.
  virtual Status Commit() = 0;
  virtual void Rollback() = 0;
};

/// Whether another transaction was in the way.
inline bool IsConflict(const Status& status) {
  return status.IsBusy() || status.IsTimedOut() || status.IsTryAgain() || status.IsAborted();
}

}  // namespace nacre::bench
