#pragma once

#include <cstddef>

namespace nacre {

/// Asks the processor for the cache lines of `bytes` bytes from `data` on, which are to be read
/// soon; a line that is reached only from the middle of the one before may be left out. Any address
/// will do.
inline void PrefetchLines(const char* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(data + at);
  // GCC takes a function that does nothing but prefetch for a pure one, and deletes calls to it.
  asm volatile("");
}

/// The same for bytes that are to be written soon.
inline void PrefetchLinesToWrite(const char* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(data + at, /*rw=*/1);
  asm volatile("");  // As above.
}

}  // namespace nacre
