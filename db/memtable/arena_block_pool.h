#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "util/memory/arena_block.h"
#include "util/mutex.h"
#include "util/threads/executor.h"

namespace nacre {

/// Large blocks for arenas. Those of arenas that are gone serve arenas to come, and some that are
/// new are made ready by a thread of the pool before they are asked for: the kernel clears each new
/// page when it is touched first, which took twice as long as all else of a Put on a machine whose
/// host had to find the memory, and which a writer would wait for.
///
/// Thread safety: all methods may be called from many threads at once.
class ArenaBlockPool final : public ArenaBlockSource {
 public:
  /// Keeps at most `spare_bytes_max` bytes of free blocks. From the first Take on, blocks are made
  /// ready ahead until those in use and those that are free are `expected_bytes`.
  explicit ArenaBlockPool(size_t spare_bytes_max, size_t expected_bytes = 0);
  ~ArenaBlockPool() override;
  ArenaBlockPool(const ArenaBlockPool&) = delete;
  ArenaBlockPool& operator=(const ArenaBlockPool&) = delete;

  ArenaBlock Take() override EXCLUDES(mutex_);
  /// Those that are not kept go back to the kernel.
  void Return(std::vector<ArenaBlock>* blocks) override EXCLUDES(mutex_);

  /// Bytes that are resident but not in use.
  size_t FreeBytes() const EXCLUDES(mutex_);

 private:
  bool WantsMore() const REQUIRES(mutex_);
  /// Has WantsMore looked at by the pool's thread.
  void ScheduleMakingReady() REQUIRES(mutex_);
  void MakeReady() EXCLUDES(mutex_);

  const size_t spare_max_;  ///< Blocks, as the other counts are.
  const size_t expected_;
  mutable Mutex mutex_;
  std::vector<ArenaBlock> free_ GUARDED_BY(mutex_);
  size_t in_use_ GUARDED_BY(mutex_) = 0;
  bool making_ready_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  /// Made when it is needed first. The last one, as its thread uses all of the above.
  std::unique_ptr<Executor> executor_ GUARDED_BY(mutex_);
};

}  // namespace nacre
