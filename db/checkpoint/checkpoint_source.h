#pragma once

#include <memory>
#include <vector>

#include "db/checkpoint/checkpoint_description.h"
#include "db/version/table_handle.h"
#include "nacre/db.h"
#include "nacre/status.h"
#include "table/format/table_meta.h"
#include "util/clock.h"

namespace nacre {

/// A database whose tables a checkpoint copies: one that is open, or that is opened for reading.
///
/// Thread safety: Find may be called from many threads at once.
class CheckpointSource {
 public:
  /// `db` outlives it. `NotSupported` if it is neither.
  static Status Of(DB* db, std::unique_ptr<CheckpointSource>* source);
  virtual ~CheckpointSource() = default;

  /// What the database is with the tables that it has now, and these tables, in the description's
  /// order. An owner flushes first, and the tables stay while they are held. What a reader sees is
  /// as of the last flush, and its tables may be gone at any time: see Find.
  virtual Status Pin(CheckpointDescription* description,
                     std::vector<std::shared_ptr<TableHandle>>* tables) = 0;
  /// The table, after `failure` of reading it: where it is by now. Answers `failure` if that
  /// stands, and `TryAgain` if the database has the table no more, so that all has to be pinned
  /// anew.
  virtual Status Find(const TableMeta& meta, const Status& failure,
                      std::shared_ptr<TableHandle>* table) = 0;

  virtual const DBOptions& options() const = 0;
  virtual Clock* clock() const = 0;
};

}  // namespace nacre
