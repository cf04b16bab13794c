#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "nacre/slice.h"
#include "util/memory/concurrent_copy.h"
#include "util/thread_sanitizer.h"

namespace nacre {

/// Memory of another process, or of another part of this one, that this process can load by itself.
/// Its owner may free it, move it or write to it at any time, so the bytes are worth nothing until
/// they were copied and `Valid` was true after that. What was copied then is what a request to read
/// it, completed at that moment, would have given.
///
/// Invariant: the pages stay mapped for as long as this lives, whatever happens to the owner.
///
/// Thread safety: const methods from many threads at once.
class LoadableMemory {
 public:
  /// Words by which the owner, or who watches it, says that the memory does not count any more.
  struct Words {
    const std::atomic<uint32_t>* key_slot = nullptr;  ///< Holds `key` until the memory is freed.
    uint32_t key = 0;
    /// These two are 0 until that end of the connection to the owner closes.
    const std::atomic<uint32_t>* owner_closed = nullptr;
    const std::atomic<uint32_t>* closed_here = nullptr;
    /// 0 until the content is moved elsewhere.
    const std::atomic<uint64_t>* moved_away = nullptr;
  };

  /// `keeper` keeps the pages and all `words` mapped.
  LoadableMemory(const char* data, size_t size, const Words& words,
                 std::shared_ptr<const void> keeper)
      : data_(data), size_(size), words_(words), keeper_(std::move(keeper)) {}
  LoadableMemory(const LoadableMemory&) = delete;
  LoadableMemory& operator=(const LoadableMemory&) = delete;

  /// Whether bytes may be worked on where they lie as well, by code that stands any bytes: what it
  /// makes of them is worth what a copy would be. TSan would report that.
  static constexpr bool kInPlace = !kThreadSanitizer;

  /// To prefetch from, to name what Copy takes, and for work in place.
  const char* data() const { return data_; }
  size_t size() const { return size_; }

  /// Copies `n` bytes from `from`, which is within the memory.
  static void Copy(char* to, const char* from, size_t n) { CopyConcurrent(to, from, n); }
  /// The same, into memory of `*to`.
  static void Pin(PinnableSlice* to, const Slice& from) { PinConcurrent(to, from); }
  /// Whether all that was copied before counts. False is for good.
  bool Valid() const {
    // Copy has an acquiring fence behind it: an owner marks its memory before it reuses it, so a
    // copy of something else sees the mark.
    return words_.key_slot->load(std::memory_order_relaxed) == words_.key &&
           words_.owner_closed->load(std::memory_order_acquire) == 0 &&
           words_.closed_here->load(std::memory_order_acquire) == 0 &&
           words_.moved_away->load(std::memory_order_relaxed) == 0;
  }

 private:
  const char* const data_;
  const size_t size_;
  const Words words_;
  const std::shared_ptr<const void> keeper_;
};

}  // namespace nacre
