#pragma once

#include <cstdint>
#include <memory>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "table/format/internal_key.h"
#include "transactions/key_tracker.h"

namespace nacre {

/// Finds out for one optimistic transaction, at its commit, whether others have written the keys
/// that it has tracked.
///
/// What a compaction has dropped leaves no entry. A key that was there at a snapshot which is still
/// held leaves one whenever it changes: the tombstone that hides what the snapshot sees. So each
/// sequence number that is remembered is that of a snapshot which is held until the end. A key that
/// was absent then, came and went meanwhile is not noticed: what was read of it is true again.
///
/// Thread safety: none.
class WriteChecks {
 public:
  virtual ~WriteChecks() = default;

  /// What Write answers if others have written one of the keys.
  static Status Conflict() {
    return Status::Busy("commit: others have written what this transaction has tracked");
  }

  /// From here on, or from `snapshot` on if that is not null, what others write to `key` is
  /// noticed. `*sequence`: that of the state which the key is compared with.
  virtual Status Watch(ColumnFamilyHandle* family, const Slice& key,
                       const std::shared_ptr<const Snapshot>& snapshot,
                       SequenceNumber* sequence) = 0;
  /// Writes `updates`, which may be empty, if no other has written one of the keys since the state
  /// that it is tracked with (Watch); else `Busy`. Nothing else writes them in between.
  virtual Status Write(const WriteOptions& options, const KeyTracker& tracked,
                       WriteBatch* updates) = 0;
  /// Lets all snapshots go. Nothing is watched any more.
  virtual void Clear() = 0;
  /// Null if there is no such family.
  virtual std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const = 0;

 protected:
  /// Bounds the snapshots of a long transaction, which cost the database something: later keys are
  /// compared with an earlier state than would be needed.
  static constexpr size_t kSnapshotsMax = 16;
};

}  // namespace nacre
