#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "sqlite/family_set.h"
#include "sqlite/query/statistics.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

/// The statistics of a database's tables that were asked for. They are estimates: what a process
/// has counted and not written when it dies is lost.
///
/// Thread safety: all methods may be called from many threads at once.
class KnownStatistics {
 public:
  /// `db` outlives it. `catalogue` is the family that has the catalogue, and is kept.
  KnownStatistics(DB* db, std::shared_ptr<const Family> catalogue)
      : db_(db), catalogue_(std::move(catalogue)) {}

  /// Those of the table whose rows have this space; read from the catalogue the first time.
  std::shared_ptr<TableStatistics> Of(uint32_t space) EXCLUDES(mutex_);
  void Erase(uint32_t space) EXCLUDES(mutex_);

  /// Has `batch` write how many rows there are with `delta` more, if plans may depend on it.
  Status AddIfWorth(TableStatistics* statistics, int64_t delta, WriteBatch* batch) const;
  Status AddErasure(uint32_t space, WriteBatch* batch) const;
  /// Has `batch` write all that the catalogue has not got.
  Status AddAll(WriteBatch* batch) EXCLUDES(mutex_);
  /// Adds what this process has counted to what the catalogue has, if plans may depend on it, or if
  /// `always`. Other processes write it, too.
  Status WriteShared(TableStatistics* statistics, bool always, const WriteOptions& options) const;
  Status WriteAllShared(const WriteOptions& options) EXCLUDES(mutex_);

 private:
  Status Read(uint32_t space, int64_t* rows) const;
  Status Put(TableStatistics* statistics, int64_t rows, WriteBatch* batch) const;

  DB* const db_;
  const std::shared_ptr<const Family> catalogue_;
  Mutex mutex_;
  std::map<uint32_t, std::shared_ptr<TableStatistics>> statistics_ GUARDED_BY(mutex_);
};

}  // namespace nacre::sqlite
