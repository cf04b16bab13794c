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
/// moment. All transactions that began while nothing was written share it.
///
/// Must be gone before the database is. Thread safety: all methods from many threads at once.
class ReadState {
 public:
  /// `number`: of the last commit that the state is sure to have (CommitOrder). `families`: those
  /// that there are; the state keeps them. `schema_version`: see Database.
  ReadState(DB* db, uint64_t number, std::shared_ptr<const FamilySet> families,
            uint64_t schema_version);
  ~ReadState();
  ReadState(const ReadState&) = delete;
  ReadState& operator=(const ReadState&) = delete;

  const Snapshot* snapshot() const { return snapshot_; }
  uint64_t sequence() const { return snapshot_->GetSequenceNumber(); }
  uint64_t number() const { return number_; }
  uint64_t schema_version() const { return schema_version_; }
  const FamilySet& families() const { return *families_; }

  Status Get(const Family& family, const Slice& key, PinnableSlice* value) const;
  void MultiGet(const Family& family, const std::vector<Slice>& keys, PinnableSlice* values,
                Status* statuses) const;
  std::unique_ptr<Iterator> TakeIterator(const Family& family);
  /// Gives back an iterator that `TakeIterator` of this state returned.
  void GiveBack(const Family& family, std::unique_ptr<Iterator> iterator);

 private:
  struct Idle {
    uint32_t space;
    std::unique_ptr<Iterator> iterator;
  };

  DB* const db_;
  const uint64_t number_;
  const std::shared_ptr<const FamilySet> families_;
  const uint64_t schema_version_;
  const Snapshot* const snapshot_;
  ReadOptions options_;
  Mutex mutex_;
  std::vector<Idle> idle_ GUARDED_BY(mutex_);
};

}  // namespace nacre::sqlite
