#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/key_holds.h"
#include "transactions/prepared_store.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/epoch.h"

namespace nacre {

class DBImpl;

/// One shard of an open keyspace: its database, and what batches over several shards do there.
///
/// Invariant: an operation that uses keys of the shard pins `operations()` and finds that no batch
/// holds them, in this order; a batch holds its keys and then waits for the operations that are
/// under way (AwaitOperations). So while a batch is prepared, decided and committed, nothing else
/// reads or writes its keys.
///
/// Thread safety: all methods may be called from many threads at once.
class Shard {
 public:
  Shard(uint32_t id, size_t index, std::unique_ptr<DB> db, const Comparator* comparator);

  uint32_t id() const { return id_; }
  size_t index() const { return index_; }
  DB* db() const { return db_.get(); }
  DBImpl* engine() const { return engine_; }
  PreparedStore* prepared() { return &prepared_; }
  KeyHolds* holds() { return &holds_; }
  EpochDomain* operations() { return &operations_; }
  /// Returns when the operations that are pinned now have ended, or `TimedOut`.
  Status AwaitOperations(Deadline deadline);

  /// Records of decisions that are not needed any more: the next decision of this shard deletes
  /// them.
  void AddEndedDecision(std::string name) EXCLUDES(mutex_);
  std::vector<std::string> TakeEndedDecisions() EXCLUDES(mutex_);

  /// `Close` of the database; no operation is under way.
  Status Close();

 private:
  const uint32_t id_;
  const size_t index_;
  const std::unique_ptr<DB> db_;
  DBImpl* const engine_;
  PreparedStore prepared_;
  KeyHolds holds_;
  EpochDomain operations_;
  Mutex mutex_;
  std::vector<std::string> ended_decisions_ GUARDED_BY(mutex_);
};

}  // namespace nacre
