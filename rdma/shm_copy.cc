#include "rdma/shm_copy.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

// What a NIC does to memory is invisible to ThreadSanitizer, and so is what these copies do to the
// far side: races there are the callers' design (checksums tell). The last store of CopyInOrder is
// an ordinary atomic, so that what it publishes is ordered for the tool as well.
#if defined(__SANITIZE_THREAD__)
#define NACRE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NACRE_TSAN 1
#endif
#endif
#if defined(NACRE_TSAN)
#define NACRE_UNSEEN_BY_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
#define NACRE_UNSEEN_BY_TSAN
#endif

namespace nacre::rdma {

namespace {

// memcpy will not do for CopyInOrder: libraries store the first or last vectors out of turn, and
// string instructions promise no order. x86 makes aligned stores visible in program order; all that
// is left is to keep the compiler from reordering them. Measured: no slower than memcpy.

template <typename Word>
void Store(char* to, const char* from, std::memory_order order) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, order);
}

/// Up to 8 bytes that do not cross a multiple of 8, by naturally aligned releasing stores.
void StoreGroup(char* to, const char* from, size_t size) {
  while (size > 0) {
    const auto address = reinterpret_cast<uintptr_t>(to);
    const size_t step =
        std::min<size_t>(address % 8 == 0 ? 8 : address & -address, std::bit_floor(size));
    switch (step) {
      case 8:
        Store<uint64_t>(to, from, std::memory_order_release);
        break;
      case 4:
        Store<uint32_t>(to, from, std::memory_order_release);
        break;
      case 2:
        Store<uint16_t>(to, from, std::memory_order_release);
        break;
      default:
        Store<uint8_t>(to, from, std::memory_order_release);
        break;
    }
    to += step;
    from += step;
    size -= step;
  }
}

void Store8(char* to, const char* from) {
#if defined(__SSE2__)
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  *reinterpret_cast<volatile uint64_t*>(to) = word;
  asm volatile("" ::: "memory");
#else
  Store<uint64_t>(to, from, std::memory_order_release);
#endif
}

#if defined(__SSE2__)
void Store16(char* to, const char* from) {
  _mm_store_si128(reinterpret_cast<__m128i*>(to),
                  _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  asm volatile("" ::: "memory");
}
#endif

/// `to` and `size` are multiples of 8.
NACRE_UNSEEN_BY_TSAN void StoreWords(char* to, const char* from, size_t size) {
  size_t done = 0;
#if defined(__SSE2__)
  if (size >= 16) {
    if (reinterpret_cast<uintptr_t>(to) % 16 != 0) {
      Store8(to, from);
      done = 8;
    }
    for (; done + 64 <= size; done += 64) {
      Store16(to + done, from + done);
      Store16(to + done + 16, from + done + 16);
      Store16(to + done + 32, from + done + 32);
      Store16(to + done + 48, from + done + 48);
    }
    for (; done + 16 <= size; done += 16) Store16(to + done, from + done);
  }
#endif
  for (; done < size; done += 8) Store8(to + done, from + done);
}

}  // namespace

void CopyInOrder(char* to, const char* from, size_t size) {
  const size_t head = std::min<size_t>(size, -reinterpret_cast<uintptr_t>(to) % 8);
  if (head > 0) {
    StoreGroup(to, from, head);
    to += head;
    from += head;
    size -= head;
  }
  if (size == 0) return;
  const size_t words = (size - 1) / 8 * 8;
  StoreWords(to, from, words);
  StoreGroup(to + words, from + words, size - words);
}

NACRE_UNSEEN_BY_TSAN void CopyConcurrent(char* to, const char* from, size_t size) {
#if defined(NACRE_TSAN)
  // Not memcpy, which the tool intercepts.
  size_t done = 0;
  while (done < size && reinterpret_cast<uintptr_t>(from + done) % 8 != 0) {
    to[done] = from[done];
    done++;
  }
  for (; done + 8 <= size; done += 8) {
    const uint64_t word = *reinterpret_cast<const volatile uint64_t*>(from + done);
    for (size_t i = 0; i < 8; i++) to[done + i] = static_cast<char>(word >> (8 * i));
  }
  for (; done < size; done++) to[done] = from[done];
#else
  std::memcpy(to, from, size);
#endif
}

}  // namespace nacre::rdma
