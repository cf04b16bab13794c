#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/node_stats.h"
#include "rdma/unique_fd.h"
#include "util/clock.h"

namespace nacre::pool {

struct RegionFileOptions {
  std::string path;
  uint64_t region_bytes = 0;  ///< Bytes of the whole region, its header and slab table included.
  uint64_t slab_bytes = 0;
  bool reset = false;  ///< Whatever there is at the path gives way to an empty region.
  /// The path is that of memory which is there already, a dax device or a file that stands for one:
  /// it is used in place, and nothing is made beside it.
  bool in_place = false;
  /// Bytes of the region's beginning that must be zero where it is empty, in place.
  uint64_t head_bytes = 0;
  Clock* clock = nullptr;
  Logger* log = nullptr;  ///< May be null.
};

/// A file in memory (tmpfs, huge pages) that keeps a node's region over restarts of its process,
/// and what else the node must not forget (docs/formats.md, "Region file").
///
///     0              the region (server_region.h); behind its header, in its first page, the head
///                    of the file
///     state_offset   two places for the state of the node
///
/// The memory may come back as the same instance only if nothing that was acknowledged is missing:
///  - Memory outlives a process, however that ends, and no machine: what was kept at another boot
///    of the machine is given up, and the node begins empty, as a new instance.
///  - A copy of the file is not the file: it would be as old as it is. Its head names its inode.
///  - The state is written in turns to two places, each with a mark of its own that says whether it
///    is whole. A process that is killed at any instruction leaves the latest whole one.
///  - Damage is never taken for emptiness: a head or a state that does not match its checksum fails
///    the start, until the operator asks for `reset`.
///  - Over `shm`, peers of a process that was killed still have the file mapped, and may be stopped
///    in the middle of a write. If another process has the file open, its content is moved to
///    another file at the same path (region_move.h), where old mappings do not reach it.
///
/// Memory that is used in place (a dax device) has the same layout. It has a size and a name of its
/// own, so nothing can be moved elsewhere. Instead its descriptor, which peers get as well, carries
/// a lock that lasts until the last mapping of it is gone, in whatever process: a start waits for
/// that, some seconds at most. Memory that was never used must be zero where the head would be.
///
/// Beside a file lies PATH.lock, by which one process at a time has it, and, for as long as a
/// file is made, PATH.new.
///
/// Thread safety: none.
class RegionFile {
 public:
  /// Opens the file, or makes it. `Busy`: another process has it. `InvalidArgument`: it has another
  /// size or slab size, is a copy, or no regular file. `NotSupported`: of a newer format.
  /// `Corruption`: damaged, or no region file at all. `NoSpace`: there is no room for it. In place,
  /// `Busy` also if peers of the last process still have it mapped, and `InvalidArgument` if it is
  /// too small, or neither a dax device nor a file.
  static Status Open(const RegionFileOptions& options, std::unique_ptr<RegionFile>* file);
  ~RegionFile();
  RegionFile(const RegionFile&) = delete;
  RegionFile& operator=(const RegionFile&) = delete;

  /// The region is its first `region_bytes`.
  int fd() const { return fd_.get(); }
  uint64_t instance_id() const { return instance_id_; }
  /// kEmpty or kWarm.
  Keeping keeping() const { return keeping_; }

  /// What was saved last; empty after the file was made. Its bytes stay until the next Save.
  Slice state() const;
  /// Replaces the state: on OK, whatever happens to this process, the next one finds it. `NoSpace`
  /// if it is larger than the place for it; the one before stays then.
  Status Save(const std::string& state);

 private:
  struct Head;
  struct StateHead;

  explicit RegionFile(const RegionFileOptions& options) : options_(options) {}

  Status Lock();
  Status OpenInPlace();
  Status FormInPlace();
  Status Make();
  /// `*usable` is false if the content is of another boot of the machine.
  Status Take(rdma::UniqueFd fd, bool* usable);
  /// Whether it was written since this machine was started; says so if not.
  bool IsOfThisBoot(const Head& head) const;
  Status CheckHead(const Head& head) const;
  /// Sizes, and the page size of the file system.
  Status LayOut(int fd);
  Status Reserve(int fd) const;
  Status Map(rdma::UniqueFd fd);
  void Unmap();
  void WriteHead();
  Status FindState();
  StateHead* StateAt(int place) const;
  std::string Name() const {
    return (options_.in_place ? "memory " : "region file ") + options_.path;
  }

  const RegionFileOptions options_;
  rdma::UniqueFd lock_;
  rdma::UniqueFd fd_;
  char* data_ = nullptr;  ///< All of the file, mapped.
  uint64_t page_bytes_ = 0;
  uint64_t file_bytes_ = 0;
  uint64_t state_offset_ = 0;
  uint64_t state_bytes_ = 0;  ///< Size of one place.
  uint64_t instance_id_ = 0;
  Keeping keeping_ = Keeping::kEmpty;
  int place_ = 0;  ///< The one with the latest state.
  uint64_t state_number_ = 0;
};

}  // namespace nacre::pool
