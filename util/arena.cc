#include "util/arena.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <new>

#include "util/per_thread.h"

namespace nacre {
namespace {

constexpr size_t kHugePage = 2 << 20;
constexpr size_t kPage = 4 << 10;
constexpr size_t kLine = 64;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Memory straight from the kernel, given back on destruction.
class Mapping {
 public:
  /// Aligned to huge pages if it could hold one.
  explicit Mapping(size_t bytes) {
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
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Mapping(Mapping&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  Mapping& operator=(Mapping&&) = delete;

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
};

}  // namespace

struct ConcurrentArena::Rep {
  Rep(size_t block, size_t chunk) : block_size(block), chunk_size(chunk) {}

  /// Carves `bytes` from the current block, or maps a new one.
  char* Take(size_t bytes) EXCLUDES(mutex) {
    memory_usage.fetch_add(bytes, std::memory_order_relaxed);
    MutexLock lock(&mutex);
    if (bytes > block_size / 4 && bytes > chunk_size) return blocks.emplace_back(bytes).data();
    if (bytes > block_left) {
      Mapping& block = blocks.emplace_back(block_size);
      block_next = block.data();
      block_left = block.size();
    }
    char* result = block_next;
    block_next += bytes;
    block_left -= bytes;
    return result;
  }

  const size_t block_size;
  const size_t chunk_size;
  PerThread<Chunk> chunks;
  std::atomic<size_t> memory_usage = 0;
  Mutex mutex;
  std::vector<Mapping> blocks GUARDED_BY(mutex);
  char* block_next GUARDED_BY(mutex) = nullptr;
  size_t block_left GUARDED_BY(mutex) = 0;
};

ConcurrentArena::ConcurrentArena(size_t block_size, size_t chunk_size)
    : rep_(std::make_unique<Rep>(RoundUp(block_size < chunk_size ? chunk_size : block_size, kLine),
                                 RoundUp(chunk_size, kLine))) {}

ConcurrentArena::~ConcurrentArena() = default;

char* ConcurrentArena::Allocate(size_t bytes, bool* new_chunk, size_t same_line) {
  assert(same_line <= kLine);
  bytes = RoundUp(bytes, 8);
  Chunk& chunk = rep_->chunks.Mine();
  // Chunks start on a line.
  const size_t in_line = reinterpret_cast<uintptr_t>(chunk.next) % kLine;
  const size_t skip = in_line + same_line > kLine ? kLine - in_line : 0;
  if (bytes + skip > chunk.left) [[unlikely]] {
    *new_chunk = true;
    // A large piece does not waste what is left of the chunk.
    if (bytes > rep_->chunk_size / 4) return rep_->Take(RoundUp(bytes, kLine));
    char* result = rep_->Take(rep_->chunk_size);
    chunk = {result + bytes, rep_->chunk_size - bytes};
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
