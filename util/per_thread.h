#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

#include "util/thread_index.h"

namespace nacre {

/// One `T` for each thread of the process, on cache lines of its own. Memory is mapped for all
/// possible threads and touched only for those that come by.
///
/// `T` starts as all-zero bytes (no constructor runs) and must be fine with that. A new thread
/// finds in its slot what an ended thread left there.
///
/// Thread safety: `Mine` is exclusive to the calling thread; whatever `ForEach` looks at must be
/// atomic.
template <typename T>
class PerThread {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  PerThread() {
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    slots_ = static_cast<Slot*>(memory);
  }
  ~PerThread() { ::munmap(slots_, kBytes); }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& Mine() { return slots_[ThreadIndex::Current()].value; }

  /// Calls `visit(const T&)` for each slot that any thread has had.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    const size_t limit = ThreadIndex::Limit();
    for (size_t i = 0; i < limit; ++i) visit(static_cast<const T&>(slots_[i].value));
  }

 private:
  struct alignas(64) Slot {
    T value;
  };
  static constexpr size_t kBytes = ThreadIndex::kMax * sizeof(Slot);

  Slot* slots_;
};

}  // namespace nacre
