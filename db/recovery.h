#pragma once

#include <vector>

#include "db/database_parts.h"
#include "db/manifest/manifest_state.h"
#include "db/open_timeline.h"
#include "db/wal/log_reader.h"
#include "nacre/status.h"
#include "pool/databases.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre {

/// Brings the parts of a database that is being opened from where the last owner left it to where
/// writes, reads and background work may begin: it takes over the space, opens the tables, replays
/// the log into MemTables, makes this owner's manifest and log, and begins its lease.
///
/// Thread safety: none; it ends before any thread of the parts begins, but for those of manifest,
/// log and lease.
class Recovery {
 public:
  /// `parts` have the families, without tables. Both arguments outlive this.
  Recovery(DatabaseParts* parts, OpenTimeline* timeline)
      : parts_(*parts), context_(parts->context), timeline_(timeline) {}

  /// Goes on from `state`; `copies` of the last owner's manifest are freed. After a failure the
  /// database is as the last owner left it, for the next owner.
  Status Run(const pool::DatabaseLease& lease, ManifestState state, std::vector<ExtentAddr> copies);

 private:
  /// Numbers the nodes of the placements as the pool does now, and takes over the space.
  Status PlaceExtents(const pool::DatabaseLease& lease, ManifestState* state,
                      std::vector<ExtentAddr>* copies);
  /// Makes the tables the families'; it reads nothing of them.
  Status OpenTables(const ManifestState& state);
  /// Replays into MemTables of the first generation. `*replayed`: there was something.
  Status ReplayLog(const ManifestState& state, LogReadResult* result, bool* replayed);
  /// Where the log ends, if only what is kept for readers has records, so that these find what
  /// follows it. The database is whole without it: a failure only goes to the LOG.
  void FindEndOfKeptLog(const ManifestState& state, LogReadResult* result);

  DatabaseParts& parts_;
  DatabaseContext& context_;
  OpenTimeline* const timeline_;
};

}  // namespace nacre
