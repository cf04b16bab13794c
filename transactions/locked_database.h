#pragma once

#include <cstdint>
#include <memory>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/slice.h"
#include "nacre/status.h"
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

 protected:
  static Status Written() { return Status::Busy("the key was written since the snapshot"); }
};

}  // namespace nacre
