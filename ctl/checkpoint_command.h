#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "pool/pool_client.h"

// nacre-ctl's commands for checkpoints (nacre/checkpoint.h), whose results go to standard output.

namespace nacre::ctl {

/// How they are asked for.
struct CheckpointRequest {
  std::string pool_uri;
  std::string database;
  std::string dir;
  /// The redundancy of new tables; for a checkpoint, "" means the database's own.
  std::string redundancy;
  uint64_t checkpoint = 0;  ///< Number; 0: the latest.
  int threads = 4;
  uint64_t bytes_per_second = 0;
  bool json = false;
};

/// Opens a database that is closed, or whose owner is gone, makes a checkpoint, and closes it.
/// `client` is of the same pool, and only reads. `Busy`, with advice, if a process has it open: no
/// other can read what is in that process's memory.
Status MakeCheckpoint(pool::PoolClient* client, const CheckpointRequest& request);
/// As RestoreDB.
Status Restore(pool::PoolClient* client, const CheckpointRequest& request);
/// Lists what is in the folder; with `verify`, reads and checks it all. `*fine`: nothing is
/// damaged.
Status ShowCheckpoints(const CheckpointRequest& request, bool verify, bool* fine);

}  // namespace nacre::ctl
