#include "util/memory/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre {
namespace {

constexpr size_t kHugePage = 2 << 20;
constexpr size_t kPage = 4 << 10;
constexpr size_t kLine = 64;

/// Up to here an arena takes blocks of the least size from the kernel: a small one, of which a
/// database with many column families has many, does not take a large block and touch a huge page
/// of it.
constexpr size_t kSmallBytes = 4 * ConcurrentArena::kChunkSize;
constexpr size_t kSmallBlock = ConcurrentArena::kChunkSize;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Memory straight from the kernel, given back on destruction.
class Block {
 public:
  /// Aligned to huge pages if it could hold one.
  explicit Block(size_t bytes) {
    const bool huge = bytes >= kHugePage;
    size_ = RoundUp(bytes, huge ? kHugePage : kPage);
    const size_t slack = huge ? kHugePage - kPage : 0;
    void* memory = ::mmap(nullptr, size_ + slack, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<char*>(memory);
    if (!huge) return;
    const size_t head = -reinterpret_cast<uintptr_t>(data_) % kHugePage;
    if (head > 0) ::munmap(data_, head);
    if (slack > head) ::munmap(data_ + head + size_, slack - head);
    data_ += head;
    ::madvise(data_, size_, MADV_HUGEPAGE);  // A hint; small pages serve as well.
  }
  ~Block() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Block(Block&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Block& operator=(Block&&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

/// What is left of a thread's chunk.
struct Chunk {
  char* next;
  size_t left;
  size_t taken;  ///< Bytes that the thread has taken so far, in chunks and large pieces.
};

}  // namespace

struct ArenaBlockPool::Rep {
  explicit Rep(size_t bytes_max) : blocks_max(bytes_max / kBlockSize) {}

  Block Take() EXCLUDES(mutex) {
    {
      MutexLock lock(&mutex);
      if (!free.empty()) {
        Block block = std::move(free.back());
        free.pop_back();
        return block;
      }
    }
    return Block(kBlockSize);
  }

  /// Those that do not fit go back to the kernel, with no lock held.
  void Return(std::vector<Block>* blocks) EXCLUDES(mutex) {
    std::vector<Block> surplus;
    {
      MutexLock lock(&mutex);
      for (Block& block : *blocks) {
        const bool keep = block.size() == kBlockSize && free.size() < blocks_max;
        (keep ? free : surplus).push_back(std::move(block));
      }
    }
    blocks->clear();
  }

  const size_t blocks_max;
  Mutex mutex;
  std::vector<Block> free GUARDED_BY(mutex);
};

ArenaBlockPool::ArenaBlockPool(size_t bytes_max) : rep_(std::make_unique<Rep>(bytes_max)) {}

ArenaBlockPool::~ArenaBlockPool() = default;

size_t ArenaBlockPool::FreeBytes() const {
  MutexLock lock(&rep_->mutex);
  return rep_->free.size() * kBlockSize;
}

struct ConcurrentArena::Rep {
  explicit Rep(std::shared_ptr<ArenaBlockPool> block_pool) : pool(std::move(block_pool)) {}

  /// Carves `bytes`, a multiple of the line size, from the current block, or takes a new one.
  char* Take(size_t bytes) EXCLUDES(mutex) {
    const size_t before = memory_usage.fetch_add(bytes, std::memory_order_relaxed);
    MutexLock lock(&mutex);
    const bool small = before + bytes <= kSmallBytes;
    // A piece that would waste much of a block gets memory of its own.
    if (bytes > (small ? kSmallBlock : ArenaBlockPool::kBlockSize) / 4) {
      return blocks.emplace_back(bytes).data();
    }
    if (bytes > left) {
      blocks.push_back(small             ? Block(kSmallBlock)
                       : pool != nullptr ? pool->rep_->Take()
                                         : Block(ArenaBlockPool::kBlockSize));
      next = blocks.back().data();
      left = blocks.back().size();
    }
    char* result = next;
    next += bytes;
    left -= bytes;
    return result;
  }

  const std::shared_ptr<ArenaBlockPool> pool;
  PerThread<Chunk> chunks;
  std::atomic<size_t> memory_usage = 0;
  Mutex mutex;
  std::vector<Block> blocks GUARDED_BY(mutex);
  char* next GUARDED_BY(mutex) = nullptr;
  size_t left GUARDED_BY(mutex) = 0;
};

ConcurrentArena::ConcurrentArena(std::shared_ptr<ArenaBlockPool> pool)
    : rep_(std::make_unique<Rep>(std::move(pool))) {}

ConcurrentArena::~ConcurrentArena() {
  if (rep_->pool == nullptr) return;
  MutexLock lock(&rep_->mutex);
  rep_->pool->rep_->Return(&rep_->blocks);
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
