#include "db/memtable/memtable_blocks.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace nacre {
namespace {

/// Free blocks that there should be while a MemTable grows. A writer fills one in about 5 ms, and
/// to make one takes 1 to 20 ms.
constexpr size_t kAheadBytes = 3 * ArenaBlockSource::kBlockSize;

}  // namespace

MemTableBlocks::MemTableBlocks(TaskThreads* threads, size_t spare_bytes_max, size_t expected_bytes)
    : spare_max_(spare_bytes_max / kBlockSize * kBlockSize),
      expected_(expected_bytes),
      pool_(spare_bytes_max),
      executor_(threads->NewExecutor(1, "nacre-arena")) {}

MemTableBlocks::~MemTableBlocks() {
  MutexLock lock(&mutex_);
  closing_ = true;
}

ArenaBlock MemTableBlocks::Take() {
  ArenaBlock block = pool_.Take();
  MutexLock lock(&mutex_);
  in_use_ += kBlockSize;
  if (WantsMore()) ScheduleMakingReady();
  return block;
}

void MemTableBlocks::Return(std::vector<ArenaBlock>* blocks) {
  {
    MutexLock lock(&mutex_);
    for (const ArenaBlock& block : *blocks) {
      // An arena may have made one of this size for itself.
      if (block.size() == kBlockSize) in_use_ -= std::min(in_use_, kBlockSize);
    }
  }
  pool_.Return(blocks);
}

bool MemTableBlocks::WantsMore() const {
  const size_t free = pool_.FreeBytes();
  return !closing_ && free < std::min(kAheadBytes, spare_max_) &&
         in_use_ + free + kBlockSize <= expected_;
}

void MemTableBlocks::ScheduleMakingReady() {
  if (making_ready_) return;
  making_ready_ = true;
  try {
    executor_->Schedule([this] { MakeReady(); });
  } catch (const std::system_error&) {
    // No thread is to be had: writers go on without. `making_ready_` stays, so that it is not tried
    // at each block.
  }
}

void MemTableBlocks::MakeReady() {
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
    pool_.Return(&block);
  }
}

}  // namespace nacre
