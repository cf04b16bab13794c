#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

/// A state of the database that statements read, with the iterators over it that nobody uses at the
/// moment. Shared by all transactions that began while nothing was written.
///
/// Must be gone before the database is. Thread safety: all methods from many threads at once.
class ReadState {
 public:
  /// `number`: of the last commit that the state is sure to have (CommitOrder).
  ReadState(DB* db, uint64_t number);
  ~ReadState();
  ReadState(const ReadState&) = delete;
  ReadState& operator=(const ReadState&) = delete;

  const Snapshot* snapshot() const { return snapshot_; }
  uint64_t sequence() const { return snapshot_->GetSequenceNumber(); }
  uint64_t number() const { return number_; }

  Status Get(const Slice& key, PinnableSlice* value) const;
  void MultiGet(const std::vector<Slice>& keys, PinnableSlice* values, Status* statuses) const;
  std::unique_ptr<Iterator> TakeIterator();
  /// Of `TakeIterator` of this state.
  void GiveBack(std::unique_ptr<Iterator> iterator);

 private:
  DB* const db_;
  const uint64_t number_;
  const Snapshot* const snapshot_;
  ReadOptions options_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Iterator>> idle_ GUARDED_BY(mutex_);
};

}  // namespace nacre::sqlite
