#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "util/mutex.h"

namespace nacre {

/// Bump allocation for the life of one MemTable. Each thread (by ThreadIndex) carves from a chunk
/// of its own, so the common case writes no shared cache line; chunks come from huge-page-aligned
/// blocks (MADV_HUGEPAGE).
///
/// Thread safety: Allocate and MemoryUsage from many threads at once. Freed all at once by the
/// destructor.
class ConcurrentArena {
 public:
  /// `block_size` bytes are mapped at a time, `chunk_size` handed to a thread at a time.
  explicit ConcurrentArena(size_t block_size = 8 << 20, size_t chunk_size = 128 << 10);
  ~ConcurrentArena();
  ConcurrentArena(const ConcurrentArena&) = delete;
  ConcurrentArena& operator=(const ConcurrentArena&) = delete;

  /// 8-byte aligned, and the first `same_line` bytes (<= 64) share a cache line. Never null:
  /// std::bad_alloc, as from operator new. `*new_chunk` is set when the call took a chunk: the
  /// moment to look at MemoryUsage.
  char* Allocate(size_t bytes, bool* new_chunk, size_t same_line = 8);

  /// Bytes handed to threads in chunks, whether or not filled yet.
  size_t MemoryUsage() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
