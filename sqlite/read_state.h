#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "sqlite/family_set.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

/// A state of the database that statements read, with the iterators over it that are free at the
/// moment. All transactions that began while nothing was written may share it.
///
/// Must be gone before the database is. Thread safety: all methods from many threads at once.
class ReadState {
 public:
  /// Without a snapshot all reads fail. `id`: states of the same one are equal. `families`: those
  /// that there are; the state keeps them. `number`: that of the last commit which the state is
  /// sure to have, if they are numbered (CommitOrder).
  ReadState(DB* db, std::shared_ptr<const Snapshot> snapshot, uint64_t id,
            std::shared_ptr<const FamilySet> families, uint64_t number = 0);
  ~ReadState();
  ReadState(const ReadState&) = delete;
  ReadState& operator=(const ReadState&) = delete;

  /// Null if none could be taken.
  const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  uint64_t id() const { return id_; }
  uint64_t number() const { return number_; }
  /// See Database. Set before others use the state.
  uint64_t schema_version() const { return schema_version_; }
  void SetSchemaVersion(uint64_t version) { schema_version_ = version; }
  const FamilySet& families() const { return *families_; }

  /// Keys have their space, and those of one call are all of one.
  Status Get(const Family& family, const Slice& key, PinnableSlice* value) const;
  void MultiGet(const Family& family, const std::vector<Slice>& keys, PinnableSlice* values,
                Status* statuses) const;
  /// What a read's failure means: if a shard has moved, the transaction is to begin anew (`Busy`).
  Status Explain(Status status) const;
  std::unique_ptr<Iterator> TakeIterator(const Family& family);
  /// Gives back an iterator that `TakeIterator` of this state returned.
  void GiveBack(const Family& family, std::unique_ptr<Iterator> iterator);

 private:
  struct Idle {
    uint32_t space;
    std::unique_ptr<Iterator> iterator;
  };

  DB* const db_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const uint64_t id_;
  const std::shared_ptr<const FamilySet> families_;
  const uint64_t number_;
  uint64_t schema_version_ = 0;
  ReadOptions options_;
  Mutex mutex_;
  std::vector<Idle> idle_ GUARDED_BY(mutex_);
};

}  // namespace nacre::sqlite
