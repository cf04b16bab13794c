#pragma once

#include <cstddef>
#include <vector>

#include "util/memory/arena_block.h"
#include "util/mutex.h"

namespace nacre {

/// Keeps the blocks of arenas that are gone for arenas to come: the kernel clears each new page.
///
/// Thread safety: all methods may be called from many threads at once.
class ArenaBlockPool final : public ArenaBlockSource {
 public:
  /// Keeps at most `bytes_max` bytes of free blocks.
  explicit ArenaBlockPool(size_t bytes_max) : blocks_max_(bytes_max / kBlockSize) {}

  ArenaBlock Take() override EXCLUDES(mutex_);
  /// Those that are not kept go back to the kernel.
  void Return(std::vector<ArenaBlock>* blocks) override EXCLUDES(mutex_);

  /// Bytes that are resident but not in use.
  size_t FreeBytes() const EXCLUDES(mutex_);

 private:
  const size_t blocks_max_;
  mutable Mutex mutex_;
  std::vector<ArenaBlock> free_ GUARDED_BY(mutex_);
};

}  // namespace nacre
