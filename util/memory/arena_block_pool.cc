#include "util/memory/arena_block_pool.h"

#include <utility>

namespace nacre {

ArenaBlock ArenaBlockPool::Take() {
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      ArenaBlock block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
  }
  return ArenaBlock(kBlockSize);
}

void ArenaBlockPool::Return(std::vector<ArenaBlock>* blocks) {
  std::vector<ArenaBlock> surplus;  // Unmapped with no lock held.
  {
    MutexLock lock(&mutex_);
    for (ArenaBlock& block : *blocks) {
      const bool keep = block.size() == kBlockSize && free_.size() < blocks_max_;
      (keep ? free_ : surplus).push_back(std::move(block));
    }
  }
  blocks->clear();
}

size_t ArenaBlockPool::FreeBytes() const {
  MutexLock lock(&mutex_);
  return free_.size() * kBlockSize;
}

}  // namespace nacre
