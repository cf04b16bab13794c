#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "db/commit/state_committer.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/space/pool_room.h"
#include "nacre/status.h"
#include "table/format/table_meta.h"

namespace nacre {

/// Keeps an open database from filling its pool to the last byte: what is left is the room for the
/// compactions that empty a full pool again, and for the next owner's log and manifest.
///
/// Thread safety: all methods may be called from many threads at once.
class Headroom {
 public:
  /// All arguments outlive this.
  Headroom(DatabaseContext* context, DatabaseState* state, const StateCommitter* committer)
      : context_(*context), state_(state), committer_(committer) {}

  /// `NoSpace` if a flush of `bytes`, besides `earlier` ones, would leave less room than the
  /// headroom. `pool_full`: only deletions are flushed, which may take some of the headroom.
  Status CheckFlush(const ColumnFamily& family, uint64_t bytes, uint64_t earlier, bool pool_full)
      EXCLUDES(state_->mutex);
  /// `NoSpace` unless there is room for those of the tables (with their levels) that are not
  /// `there`, and for a compaction of levels 0 and 1 afterwards.
  Status CheckRestore(const std::vector<std::pair<uint32_t, TableMeta>>& tables,
                      const std::set<uint64_t>& there);

 private:
  HeadroomSize SizeFor(const ColumnFamily& family, uint64_t flush_bytes) EXCLUDES(state_->mutex);

  DatabaseContext& context_;
  DatabaseState* const state_;
  const StateCommitter* const committer_;
};

}  // namespace nacre
