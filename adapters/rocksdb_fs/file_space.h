#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/pool.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "pool/read/connection_pool.h"
#include "pool/space/space_allocator.h"
#include "table/format/placement.h"
#include "table/format/redundancy.h"

namespace nacre::rocksfs {

/// Part of a file: bytes [begin, begin + bytes) of it lie at the start of each of the extents.
struct FileExtent {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  Placement placement;  ///< Whole copies, on different nodes.

  uint64_t end() const { return begin + bytes; }
};

/// What the files of one file system share: memory of the pool's nodes, leased as that of a
/// database of its own, and the connections and registered buffers to read and write it with.
/// Nothing is ever published for that database, so its memory goes back to the nodes when this
/// process ends.
///
/// Thread safety: all methods may be called from many threads at once. Files keep it alive.
class FileSpace {
 public:
  /// `name` is the database's. `Busy` if a process has it open; `InvalidArgument` for a redundancy
  /// that is not "none" or "rep(n)", or a pool that was not made by Pool::Open.
  static Status Open(std::shared_ptr<Pool> pool, const std::string& name,
                     const std::string& redundancy, std::shared_ptr<FileSpace>* space);
  ~FileSpace();
  FileSpace(const FileSpace&) = delete;
  FileSpace& operator=(const FileSpace&) = delete;

  pool::PoolClient* client() const { return client_; }
  /// For reading and writing files.
  pool::ConnectionPool* connections() { return &connections_; }
  const Redundancy& redundancy() const { return redundancy_; }
  /// Bytes of live files, with all copies, and of slabs held for them.
  pool::SpaceUsage Usage() const { return space_->Usage(); }

  /// Room for bytes [begin, begin + bytes) of a file, on the nodes with the fewest bytes. `NoSpace`
  /// and `Unavailable` as for a table.
  Status Reserve(uint64_t begin, uint64_t bytes, FileExtent* extent);
  /// Gives back what is behind the first `bytes`.
  void Trim(FileExtent* extent, uint64_t bytes);
  void Free(const FileExtent& extent) { space_->Free(extent.placement); }

 private:
  FileSpace(std::shared_ptr<Pool> pool, pool::PoolClient* client, const Redundancy& redundancy);

  const std::shared_ptr<Pool> pool_;
  pool::PoolClient* const client_;
  const Redundancy redundancy_;
  uint64_t database_id_ = 0;  ///< 0: none is open.
  std::unique_ptr<pool::SpaceAllocator> space_;
  pool::ConnectionPool connections_;
};

}  // namespace nacre::rocksfs
