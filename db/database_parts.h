#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "db/commit/state_committer.h"
#include "db/compaction/compaction_runner.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/family/family_check.h"
#include "db/flush/flush_scheduler.h"
#include "db/manifest/manifest_state.h"
#include "db/open_timeline.h"
#include "db/read/read_path.h"
#include "db/redundancy/redundancy_keeper.h"
#include "db/space/headroom.h"
#include "db/version/index_loader.h"
#include "db/write/memtable_generations.h"
#include "db/write/write_controller.h"
#include "db/write/write_path.h"
#include "nacre/db.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"

namespace nacre {

/// The parts that an open database consists of, each with a state of its own, in the order in which
/// they are made: a part knows only those above it, so that those below go first.
///
/// The mutexes of parts are taken in this order: the committer's, the state's, then those that
/// parts keep to themselves, which call nothing that takes another one of these. Clang checks this
/// where ACQUIRED_BEFORE or ACQUIRED_AFTER says it; classes below the state do not see its mutex.
struct DatabaseParts {
  /// Their threads begin with the redundancy keeper, which the caller makes, and with the first
  /// work that is scheduled.
  DatabaseParts(DB* db, const CheckedOptions& checked, const std::string& name,
                std::shared_ptr<pool::PoolImpl> pool, const pool::DatabaseLease& lease,
                const ManifestState& recovered, uint64_t first_table_id);
  DatabaseParts(const DatabaseParts&) = delete;
  DatabaseParts& operator=(const DatabaseParts&) = delete;

  DatabaseContext context;
  DatabaseState state;
  WriteController write_controller{&state};
  MemTableGenerations generations;
  StateCommitter committer{&context, &state,
                           [this](const Status& why) { write_controller.SetFault(why); }};
  Headroom headroom{&context, &state, &committer};
  WritePath writes{&state, &write_controller, &generations};
  CompactionRunner compactions{&context, &state, &committer, &write_controller};
  FlushScheduler flushes{{.context = &context,
                          .state = &state,
                          .committer = &committer,
                          .controller = &write_controller,
                          .generations = &generations,
                          .writes = &writes,
                          .headroom = &headroom,
                          .compactions = &compactions}};
  IndexLoader indexes;  ///< Reads tell it what they want.
  ReadPath reads{&context, generations.sequencer(), &indexes};
  OpenTimeline open_timeline GUARDED_BY(state.mutex);   ///< Ends when all indexes are there.
  std::unique_ptr<RedundancyKeeper> redundancy_keeper;  ///< Null until the threads start.
  bool restoring = false;  ///< By DBImpl::OpenToRestore, before its caller has the database.
};

}  // namespace nacre
