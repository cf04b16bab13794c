#include "util/memory/arena.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "util/memory/arena_block.h"
#include "util/memory/round_up.h"
#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre {
namespace {

constexpr size_t kLine = 64;

/// Up to here an arena takes blocks of the least size from the kernel: a small one, of which a
/// database with many column families has many, does not take a large block and touch a huge page
/// of it.
constexpr size_t kSmallBytes = 4 * ConcurrentArena::kChunkSize;
constexpr size_t kSmallBlock = ConcurrentArena::kChunkSize;

/// What is left of a thread's chunk.
struct Chunk {
  char* next;
  size_t left;
  size_t taken;  ///< Bytes that the thread has taken so far, in chunks and large pieces.
};

}  // namespace

struct ConcurrentArena::Rep {
  explicit Rep(std::shared_ptr<ArenaBlockSource> block_source) : source(std::move(block_source)) {}

  /// Carves `bytes`, a multiple of the line size, from the current block, or takes a new one.
  char* Take(size_t bytes) EXCLUDES(mutex) {
    const size_t before = memory_usage.fetch_add(bytes, std::memory_order_relaxed);
    MutexLock lock(&mutex);
    const bool small = before + bytes <= kSmallBytes;
    // A piece that would waste much of a block gets memory of its own.
    if (bytes > (small ? kSmallBlock : ArenaBlockSource::kBlockSize) / 4) {
      return blocks.emplace_back(bytes).data();
    }
    if (bytes > left) {
      blocks.push_back(small               ? ArenaBlock(kSmallBlock)
                       : source != nullptr ? source->Take()
                                           : ArenaBlock(ArenaBlockSource::kBlockSize));
      next = blocks.back().data();
      left = blocks.back().size();
    }
    char* result = next;
    next += bytes;
    left -= bytes;
    return result;
  }

  const std::shared_ptr<ArenaBlockSource> source;
  PerThread<Chunk> chunks;
  std::atomic<size_t> memory_usage = 0;
  Mutex mutex;
  std::vector<ArenaBlock> blocks GUARDED_BY(mutex);
  char* next GUARDED_BY(mutex) = nullptr;
  size_t left GUARDED_BY(mutex) = 0;
};

ConcurrentArena::ConcurrentArena(std::shared_ptr<ArenaBlockSource> blocks)
    : rep_(std::make_unique<Rep>(std::move(blocks))) {}

ConcurrentArena::~ConcurrentArena() {
  if (rep_->source == nullptr) return;
  MutexLock lock(&rep_->mutex);
  rep_->source->Return(&rep_->blocks);
}

char* ConcurrentArena::Allocate(size_t bytes, bool* new_chunk, size_t same_line) {
  assert(same_line <= kLine);
  bytes = bytes == 0 ? 8 : RoundUp(bytes, 8);
  Chunk& chunk = rep_->chunks.Mine();
  // Chunks start on a line.
  const size_t in_line = reinterpret_cast<uintptr_t>(chunk.next) % kLine;
  const size_t skip = in_line + same_line > kLine ? kLine - in_line : 0;
  if (bytes + skip > chunk.left) [[unlikely]] {
    *new_chunk = true;
    const size_t size = std::clamp(RoundUp(chunk.taken / 2, kLine), kFirstChunkSize, kChunkSize);
    // A large piece does not waste what is left of the chunk.
    if (bytes > size / 4) {
      char* const alone = rep_->Take(RoundUp(bytes, kLine));
      chunk.taken += bytes;
      return alone;
    }
    char* const result = rep_->Take(size);
    chunk = {result + bytes, size - bytes, chunk.taken + size};
    return result;
  }
  char* result = chunk.next + skip;
  chunk.next = result + bytes;
  chunk.left -= bytes + skip;
  return result;
}

size_t ConcurrentArena::MemoryUsage() const {
  return rep_->memory_usage.load(std::memory_order_relaxed);
}

}  // namespace nacre
