#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "util/memory/arena_block.h"
#include "util/memory/arena_block_pool.h"
#include "util/mutex.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// What MemTables take their memory from. Blocks of MemTables that are gone serve those to come,
/// and new ones are made ready by a task before they are asked for: the kernel clears each new
/// page when it is touched first, which took twice as long as all else of a Put on a machine whose
/// host had to find the memory, and which a writer would wait for.
///
/// Thread safety: all methods may be called from many threads at once.
class MemTableBlocks final : public ArenaBlockSource {
 public:
  /// Keeps at most `spare_bytes_max` bytes of free blocks. From the first Take on, blocks are made
  /// ready ahead until those in use and those that are free are `expected_bytes`.
  /// `threads` outlive this.
  MemTableBlocks(TaskThreads* threads, size_t spare_bytes_max, size_t expected_bytes);
  ~MemTableBlocks() override;
  MemTableBlocks(const MemTableBlocks&) = delete;
  MemTableBlocks& operator=(const MemTableBlocks&) = delete;

  ArenaBlock Take() override EXCLUDES(mutex_);
  void Return(std::vector<ArenaBlock>* blocks) override EXCLUDES(mutex_);

  /// Bytes that are resident but not in use.
  size_t FreeBytes() const { return pool_.FreeBytes(); }

 private:
  bool WantsMore() const REQUIRES(mutex_);
  /// Has the task look at WantsMore.
  void ScheduleMakingReady() REQUIRES(mutex_);
  void MakeReady() EXCLUDES(mutex_);

  const size_t spare_max_;  ///< In bytes, as is all here.
  const size_t expected_;
  ArenaBlockPool pool_;
  Mutex mutex_;
  size_t in_use_ GUARDED_BY(mutex_) = 0;
  bool making_ready_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Executor> executor_;  ///< The last one, as its task uses all of the above.
};

}  // namespace nacre
