#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/pool.h"
#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "pool/read/buffer_pool.h"
#include "pool/read/remote_stream.h"
#include "pool/space/space_allocator.h"
#include "table/format/placement.h"
#include "table/format/redundancy.h"
#include "util/mutex.h"
#include "util/threads/executor.h"

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
  pool::BufferPool* buffers() { return &buffers_; }
  const Redundancy& redundancy() const { return redundancy_; }
  /// Bytes of live files, with all copies, and of slabs held for them.
  pool::SpaceUsage Usage() const { return space_->Usage(); }

  /// Room for bytes [begin, begin + bytes) of a file, on the nodes with the fewest bytes. `NoSpace`
  /// and `Unavailable` as for a table.
  Status Reserve(uint64_t begin, uint64_t bytes, FileExtent* extent);
  /// Gives back what is behind the first `bytes`.
  void Trim(FileExtent* extent, uint64_t bytes);
  void Free(const FileExtent& extent) { space_->Free(extent.placement); }

  /// Connections for one writer, idle or new ones. Those of a writer that failed are not given
  /// back, but destroyed.
  Status TakeLane(std::unique_ptr<pool::Lane>* lane) EXCLUDES(mutex_);
  void GiveLane(std::unique_ptr<pool::Lane> lane) EXCLUDES(mutex_);
  /// What the calling thread starts reads with that it does not wait for at once.
  Status Stream(pool::RemoteStream** stream) EXCLUDES(mutex_);

 private:
  static constexpr size_t kStreams = pool::StreamLimit(0);
  static constexpr size_t kMaxIdleLanes = 8;
  static constexpr size_t kMaxIdleBufferBytes = 64 << 20;

  FileSpace(std::shared_ptr<Pool> pool, pool::PoolClient* client, const Redundancy& redundancy);

  const std::shared_ptr<Pool> pool_;
  pool::PoolClient* const client_;
  const Redundancy redundancy_;
  uint64_t database_id_ = 0;  ///< 0: none is open.
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<pool::SpaceAllocator> space_;
  pool::BufferPool buffers_;  ///< Outlives the streams.

  Mutex mutex_;
  std::vector<std::unique_ptr<pool::Lane>> idle_lanes_ GUARDED_BY(mutex_);
  /// Made on first use; then read without the mutex.
  std::array<std::atomic<pool::RemoteStream*>, kStreams> streams_{};
  std::vector<std::unique_ptr<pool::RemoteStream>> stream_owners_ GUARDED_BY(mutex_);
};

}  // namespace nacre::rocksfs
