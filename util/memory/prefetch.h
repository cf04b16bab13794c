#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre {

/// Asks the processor for the cache lines of `bytes` bytes from `data` on, which are to be read
/// soon. Any address will do.
inline void PrefetchLines(const char* data, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* const end = data + bytes;
  // From the line's beginning on: the steps would miss the last line where the bytes begin inside
  // one.
  for (const char* at = data - reinterpret_cast<uintptr_t>(data) % kLine; at < end; at += kLine) {
    __builtin_prefetch(at);
  }
  // GCC takes a function that does nothing but prefetch for a pure one, and deletes calls to it.
  asm volatile("");
}

/// The same for bytes that are to be written soon.
inline void PrefetchLinesToWrite(const char* data, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* const end = data + bytes;
  for (const char* at = data - reinterpret_cast<uintptr_t>(data) % kLine; at < end; at += kLine) {
    __builtin_prefetch(at, /*rw=*/1);
  }
  asm volatile("");  // As above.
}

/// Asks for the line at `data`, to be read later than what PrefetchLines is for.
inline void PrefetchLineToL2(const char* data) {
  __builtin_prefetch(data, /*rw=*/0, /*locality=*/2);
  asm volatile("");  // As above.
}

}  // namespace nacre
