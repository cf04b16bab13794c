#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "util/clock.h"

namespace nacre::pool {

/// Records, in its first page, how far the content of a region file has been moved to another one.
struct RegionMove {
  static constexpr uint64_t kAt = 3072;

  /// What is before is in this file, the rest in the other; the size of the file: no move.
  uint64_t moved_from;
  uint64_t to_inode;  ///< Identifies the other file.
};

/// Whether a process other than the holder of `fd` has the file open or mapped, or may have it.
/// Waits a moment for a process that is about to be gone.
bool IsFileShared(int fd, Clock* clock);

/// Moves what `fd` keeps in its `bytes` bytes, mapped at `data`, to a new file at `path` + ".new":
/// peers of a process that is dead have the old one mapped. Those of the `shm` transport look,
/// after each request, at the word that is set before anything is moved
/// (rdma::Device::kMovedAwayAt): requests that they saw succeed are in the new file, and later ones
/// do not succeed. It moves from the end to the front, a part at a time, whose room in the old file
/// is given back; after a kill in between, the next call goes on where this one was. The first part
/// stays in both, so the caller gives the new one its head, and its name. `page_bytes` is the file
/// system's. `NoSpace` if there is no room for a part; `Corruption` if the new file of a move that
/// had begun is gone.
Status MoveContent(const std::string& path, int fd, char* data, uint64_t bytes, uint64_t page_bytes,
                   rdma::UniqueFd* to);

}  // namespace nacre::pool
