#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ctl/finding.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// What Fsck is to look at.
struct FsckOptions {
  /// Told how many bytes of a database's tables were compared with their checksums so far, and of
  /// how many; again from 0 on if the database is looked at again.
  using Progress = std::function<void(const std::string& database, uint64_t done, uint64_t total)>;

  std::string database{};  ///< Checks only this one; empty: all.
  bool full = false;       ///< Compare all chunks and log records with their checksums, too.
  Progress progress{};     ///< Called by the caller's thread; null: it is not told.
};

/// Tells it on standard error, for as long as it lives (ctl/terminal/progress_line.h).
FsckOptions::Progress TellFsckProgress();

/// Compares what the roots and manifests of databases say with what the nodes hold, and their slab
/// tables with both. Writes nothing, and owns nothing: what it finds of a database that is open is
/// looked at again when its owner has changed something meanwhile, and stays only if that has not
/// to do with it.
FsckReport Fsck(pool::PoolClient* client, const FsckOptions& options);

}  // namespace nacre::ctl
