#pragma once

#include <cstdint>
#include <string>

#include "nacre/checkpoint.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

// nacre-ctl's commands for checkpoints (nacre/checkpoint.h), whose results go to standard output.

namespace nacre::ctl {

/// How they are asked for.
struct CheckpointRequest {
  std::string pool_uri;
  std::string database;
  std::string database_key_file;  ///< See Options::encryption_key_file.
  std::string dir;
  /// The redundancy of new tables; for a checkpoint, "" means the database's own.
  std::string redundancy;
  uint64_t checkpoint = 0;  ///< Number; 0: the latest.
  /// For an archive: all up to there (ArchiveRestoreOptions).
  uint64_t to_sequence = UINT64_MAX;
  std::string to_time;  ///< Such as "2026-11-28 10:30:00", UTC; "": no bound.
  int threads = 0;      ///< 0: what CheckpointOptions and RestoreOptions have.
  uint64_t bytes_per_second = 0;
  bool json = false;
  FileEncryption encryption{};
};

/// Opens a database that is closed, or whose owner is gone, makes a checkpoint, and closes it.
/// `client` is of the same pool, and only reads. `Busy`, with advice, if a process has it open: no
/// other can read what is in that process's memory.
Status MakeCheckpoint(pool::PoolClient* client, const CheckpointRequest& request);
/// As RestoreDB; as RestoreArchive, if the folder is that of an archive.
Status Restore(pool::PoolClient* client, const CheckpointRequest& request);
/// Lists what is in the folder; with `verify`, reads and checks it all. `*fine`: nothing is
/// damaged.
Status ShowCheckpoints(const CheckpointRequest& request, bool verify, bool* fine);
/// Lists what an archive can be restored to; with `verify`, reads and checks it all first.
Status ShowArchive(const CheckpointRequest& request, bool verify);

}  // namespace nacre::ctl
