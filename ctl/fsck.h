#pragma once

#include <string>

#include "ctl/finding.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// What Fsck is to look at.
struct FsckOptions {
  std::string database{};  ///< Checks only this one; empty: all.
  bool full = false;       ///< Compare all chunks and log records with their checksums, too.
};

/// Compares what the roots and manifests of databases say with what the nodes hold, and their slab
/// tables with both. Writes nothing, and owns nothing: what it finds of a database that is open is
/// looked at again when its owner has changed something meanwhile, and stays only if that has not
/// to do with it.
FsckReport Fsck(pool::PoolClient* client, const FsckOptions& options);

}  // namespace nacre::ctl
