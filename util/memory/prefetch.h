#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace nacre {

/// Asks the processor for the line at `data`, which is to be read soon, or written. Any address
/// will do. Locality 3: into all caches; 2: not into the first one, for what is needed later.
template <int kWrite = 0, int kLocality = 3>
inline void PrefetchLine(const char* data) {
  __builtin_prefetch(data, kWrite, kLocality);
  // GCC takes a function that does nothing but prefetch for a pure one, and deletes calls to it.
  asm volatile("");
}

/// All lines of `bytes` bytes from `data` on.
template <int kWrite = 0, int kLocality = 3>
inline void PrefetchLines(const char* data, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* const end = data + bytes;
  // From the line's beginning on: the steps would miss the last line where the bytes begin inside
  // one.
  for (const char* at = data - reinterpret_cast<uintptr_t>(data) % kLine; at < end; at += kLine) {
    PrefetchLine<kWrite, kLocality>(at);
  }
}

/// Those of the first KiB: what is longer is fetched ahead by the processor itself once it is gone
/// through.
inline void PrefetchBeginning(const char* data, size_t bytes) {
  PrefetchLines(data, std::min<size_t>(bytes, 1024));
}

}  // namespace nacre
