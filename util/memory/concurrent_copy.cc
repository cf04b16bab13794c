#include "util/memory/concurrent_copy.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "util/thread_sanitizer.h"

// What a NIC does to memory is invisible to ThreadSanitizer, and so is what these copies do to the
// far side: races there are the callers' design (checksums tell). The last store of CopyAndPublish
// is an ordinary atomic, so that what it publishes is ordered for the tool as well.
namespace nacre {

namespace {

template <typename Word>
void Publish(char* to, const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

/// Up to 8 bytes that do not cross a multiple of 8, by naturally aligned stores in address order.
void PublishGroup(char* to, const char* from, size_t size) {
  while (size > 0) {
    const auto address = reinterpret_cast<uintptr_t>(to);
    const size_t alignment = address % 8 == 0 ? 8 : address & -address;
    const size_t step = std::min(alignment, std::bit_floor(size));
    switch (step) {
      case 8:
        Publish<uint64_t>(to, from);
        break;
      case 4:
        Publish<uint32_t>(to, from);
        break;
      case 2:
        Publish<uint16_t>(to, from);
        break;
      default:
        Publish<uint8_t>(to, from);
        break;
    }
    to += step;
    from += step;
    size -= step;
  }
}

#if NACRE_TSAN

__attribute__((no_sanitize("thread"), noinline)) void CopyUnseen(char* to, const char* from,
                                                                 size_t size) {
  // Not memcpy, which the tool intercepts; volatile, so that the compiler does not make it one.
  size_t done = 0;
  if (reinterpret_cast<uintptr_t>(to) % 8 == reinterpret_cast<uintptr_t>(from) % 8) {
    for (; done < size && reinterpret_cast<uintptr_t>(to + done) % 8 != 0; done++) {
      const_cast<volatile char*>(to)[done] = from[done];
    }
    for (; done + 8 <= size; done += 8) {
      *reinterpret_cast<volatile uint64_t*>(to + done) =
          *reinterpret_cast<const volatile uint64_t*>(from + done);
    }
  }
  for (; done < size; done++) {
    const_cast<volatile char*>(to)[done] = const_cast<const volatile char*>(from)[done];
  }
}

#elif defined(__SSE2__)

/// From this size on a copy goes around the cache: half again to three times as fast into memory
/// that is not cached (nothing is fetched only to be overwritten), and the caller's working set
/// stays. Writes of this size are table chunks, whose reader, if any soon, is another core.
constexpr size_t kStreamBytes = 16 << 10;

/// Copies whole cache lines; `to` is at the beginning of one.
void StreamLines(char* to, const char* from, size_t size) {
  for (size_t done = 0; done < size; done += 64) {
    for (size_t i = 0; i < 64; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + i)));
    }
  }
  _mm_sfence();  // Streaming stores are not ordered before later ones by themselves.
}

#endif

/// Any order; ordered before a releasing store that follows. (On x86 memcpy's stores are, whatever
/// instructions it uses.)
void CopyBody(char* to, const char* from, size_t size) {
#if NACRE_TSAN
  CopyUnseen(to, from, size);
#elif defined(__SSE2__)
  if (size < kStreamBytes) {
    std::memcpy(to, from, size);
    return;
  }
  const size_t head = -reinterpret_cast<uintptr_t>(to) % 64;
  const size_t lines = (size - head) / 64 * 64;
  std::memcpy(to, from, head);
  StreamLines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, size - head - lines);
#else
  std::memcpy(to, from, size);
#endif
}

}  // namespace

void CopyAndPublish(char* to, const char* from, size_t size) {
  if (size == 0) return;
  // The last group begins at the last multiple of 8 before the end.
  const auto end = reinterpret_cast<uintptr_t>(to) + size;
  const size_t group = std::min<size_t>(size, end - ((end - 1) & ~uintptr_t{7}));
  CopyBody(to, from, size - group);
  PublishGroup(to + size - group, from + size - group, group);
}

void CopyConcurrent(char* to, const char* from, size_t size) {
  if (size == 0) return;  // The pointers may be null in this case.
#if NACRE_TSAN
  CopyUnseen(to, from, size);
#else
  std::memcpy(to, from, size);
  std::atomic_thread_fence(std::memory_order_acquire);  // No instruction on x86.
#endif
}

void PinConcurrent(PinnableSlice* to, const Slice& from) {
#if NACRE_TSAN
  std::string copy(from.size(), '\0');
  CopyUnseen(copy.data(), from.data(), from.size());
  to->PinSelf(copy);
#else
  to->PinSelf(from);
  std::atomic_thread_fence(std::memory_order_acquire);  // As above.
#endif
}

}  // namespace nacre
