#pragma once

#include <cstddef>
#include <memory>

namespace nacre {

class ArenaBlockSource;

/// Bump allocation for the life of one MemTable. Each thread (by ThreadIndex) carves from a chunk
/// of its own, so the common case writes no shared cache line; chunks come from huge-page-aligned
/// blocks (MADV_HUGEPAGE). A chunk is about half of what the thread has taken before, within
/// bounds: what an arena takes follows what is stored, however many threads and arenas there are.
///
/// Thread safety: Allocate and MemoryUsage from many threads at once. Freed all at once by the
/// destructor.
class ConcurrentArena {
 public:
  /// Handed to a thread at a time, at first and at most.
  static constexpr size_t kFirstChunkSize = 2 << 10;
  static constexpr size_t kChunkSize = 128 << 10;

  /// Blocks come from `blocks` and go back to it; null takes them from the kernel.
  explicit ConcurrentArena(std::shared_ptr<ArenaBlockSource> blocks = nullptr);
  ~ConcurrentArena();
  ConcurrentArena(const ConcurrentArena&) = delete;
  ConcurrentArena& operator=(const ConcurrentArena&) = delete;

  /// Uninitialised, 8-byte aligned, and the first `same_line` bytes (<= 64) share a cache line.
  /// Never null: std::bad_alloc, as from operator new. `*new_chunk` is set when the call took a
  /// chunk: the moment to look at MemoryUsage.
  char* Allocate(size_t bytes, bool* new_chunk, size_t same_line = 8);

  /// Bytes handed to threads in chunks, whether or not filled yet.
  size_t MemoryUsage() const;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
