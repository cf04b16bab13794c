#include "db/memtable/arena_block_pool.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace nacre {
namespace {

/// Free blocks that there should be while an arena grows. A writer fills one in about 5 ms, and to
/// make one takes 1 to 20 ms.
constexpr size_t kAhead = 3;

}  // namespace

ArenaBlockPool::ArenaBlockPool(size_t spare_bytes_max, size_t expected_bytes)
    : spare_max_(spare_bytes_max / kBlockSize), expected_(expected_bytes / kBlockSize) {}

ArenaBlockPool::~ArenaBlockPool() {
  MutexLock lock(&mutex_);
  closing_ = true;
}

ArenaBlock ArenaBlockPool::Take() {
  {
    MutexLock lock(&mutex_);
    ++in_use_;
    const bool ready = !free_.empty();
    std::vector<ArenaBlock> block;
    if (ready) {
      block.push_back(std::move(free_.back()));
      free_.pop_back();
    }
    if (WantsMore()) ScheduleMakingReady();
    if (ready) return std::move(block.back());
  }
  try {
    return ArenaBlock(kBlockSize);
  } catch (const std::bad_alloc&) {
    MutexLock lock(&mutex_);
    --in_use_;
    throw;
  }
}

void ArenaBlockPool::Return(std::vector<ArenaBlock>* blocks) {
  std::vector<ArenaBlock> surplus;  // Unmapped with no lock held.
  {
    MutexLock lock(&mutex_);
    for (ArenaBlock& block : *blocks) {
      const bool ours = block.size() == kBlockSize;
      // An arena may have made one of this size for itself.
      if (ours && in_use_ > 0) --in_use_;
      const bool keep = ours && free_.size() < spare_max_;
      (keep ? free_ : surplus).push_back(std::move(block));
    }
  }
  blocks->clear();
}

size_t ArenaBlockPool::FreeBytes() const {
  MutexLock lock(&mutex_);
  return free_.size() * kBlockSize;
}

bool ArenaBlockPool::WantsMore() const {
  return !closing_ && free_.size() < std::min(kAhead, spare_max_) &&
         in_use_ + free_.size() < expected_;
}

void ArenaBlockPool::ScheduleMakingReady() {
  if (making_ready_) return;
  making_ready_ = true;
  try {
    if (executor_ == nullptr) executor_ = NewThreadPool(1, "nacre-arena");
    executor_->Schedule([this] { MakeReady(); });
  } catch (const std::system_error&) {
    // No thread is to be had: writers go on without. `making_ready_` stays, so that it is not tried
    // at each block.
  }
}

void ArenaBlockPool::MakeReady() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      making_ready_ = WantsMore();
      if (!making_ready_) return;
    }
    std::vector<ArenaBlock> block;
    try {
      block.emplace_back(kBlockSize);
    } catch (const std::bad_alloc&) {
      MutexLock lock(&mutex_);
      making_ready_ = false;
      return;
    }
    block.back().Populate();
    MutexLock lock(&mutex_);
    free_.push_back(std::move(block.back()));
  }
}

}  // namespace nacre
