#pragma once

#include <rocksdb/env.h>

#include <memory>

#include "adapters/rocksdb_fs/remote_file.h"

namespace nacre::rocksfs {

/// RocksDB's information log, in a file of the pool. RocksDB would take the failure of a line for
/// one of its own (with assertions, it ends the process), so lines are dropped once one failed.
std::shared_ptr<rocksdb::Logger> NewPoolLogger(std::shared_ptr<RemoteFile> file);

}  // namespace nacre::rocksfs
