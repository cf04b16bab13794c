#pragma once

#include <stdint.h>

// A disk that loses what was not synced: see lossy_disk.cc. For programs that are linked with it;
// others load it, and say by the environment what these functions say.

extern "C" {

/// Files below `folder` are on it from now on.
void nacre_lossy_disk(const char* folder, uint64_t seed);
/// What was not synced is gone, and all files on it are closed, with their locks: as if the one
/// process that has any had died, which must do nothing with them any more.
void nacre_lossy_disk_crash(void);
}
