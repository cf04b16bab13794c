#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "table/format/internal_key.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// How far the readers of an owner's log have come that want it to be kept for them, such as
/// archives (`TransactionLogIterator::Acknowledge`), as the nodes tell.
///
/// Thread safety: all methods may be called from many threads at once.
class LogReaders {
 public:
  explicit LogReaders(Clock* clock) : clock_(clock) {}

  /// Takes in what a node knows of them.
  void Heard(const std::vector<pool::LogReader>& readers) EXCLUDES(mutex_);
  /// All nodes were asked once, so that there are no other readers.
  void HeardAll() EXCLUDES(mutex_);
  /// Asks all nodes for the readers of the database's log. `Unavailable`, or why none answered.
  Status Ask(pool::PoolClient* client, uint64_t database_id) EXCLUDES(mutex_);

  /// None of them needs the log up to here any more. 0 until all nodes were asked.
  SequenceNumber Needed() const EXCLUDES(mutex_);
  /// All up to here can be had from one of them.
  SequenceNumber Restorable() const EXCLUDES(mutex_);
  /// By their numbers, without those that were forgotten.
  std::vector<pool::LogReader> List() const EXCLUDES(mutex_);

 private:
  struct Reader {
    SequenceNumber sequence = 0;
    SequenceNumber restorable = 0;
    uint64_t heard_nanos = 0;
  };

  Clock* const clock_;
  mutable Mutex mutex_;
  std::map<uint64_t, Reader> readers_ GUARDED_BY(mutex_);
  bool complete_ GUARDED_BY(mutex_) = false;
};

}  // namespace nacre
