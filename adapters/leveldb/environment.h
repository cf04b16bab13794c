#pragma once

#include <memory>
#include <string>

#include "nacre/options.h"
#include "nacre/pool.h"
#include "nacre/status.h"

// Locates the databases of a program that was written for LevelDB. In the environment, NACRE_POOL
// names the pool (nacre/pool.h), NACRE_REDUNDANCY says how tables are kept there (nacre/options.h;
// "none" if it is not set), NACRE_SLAB_SIZE how large its slabs are, if they are not of 64 MiB. The
// program names paths; a database's name in the pool is the absolute path, without "." and ".." and
// a slash at the end.

namespace nacre {

/// Fills in pool and redundancy. Databases of one process in one pool share it; an embedded one
/// stays as long as the process, so that closed databases can be opened again.
/// `InvalidArgument` if NACRE_POOL is not set or NACRE_SLAB_SIZE is no size; failures of
/// Pool::Open.
/// Thread safety: any number of threads.
Status PlaceInPool(Options* options);

/// The name of the database that LevelDB would have at `path`. Empty if there is no telling.
std::string DatabaseNameOf(const std::string& path);

/// Marks a database as open in this process: LevelDB tells that case from others. False if it is
/// marked already.
/// Thread safety: any number of threads.
bool MarkOpen(const std::string& name);
void UnmarkOpen(const std::string& name);

}  // namespace nacre
