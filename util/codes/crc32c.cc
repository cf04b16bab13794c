#include "util/codes/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

#include "util/codes/vector_state.h"

namespace nacre {

uint32_t Crc32c(const char* data, size_t n, uint32_t seed) {
  // ISA-L's function is the bare register: neither its start nor its end is inverted, and its
  // length is an int. It does not write through the pointer.
  uint32_t state = ~seed;
  auto* p = reinterpret_cast<unsigned char*>(const_cast<char*>(data));
  while (n > 0) {
    const size_t piece = std::min<size_t>(n, size_t{1} << 30);
    state = crc32_iscsi(p, static_cast<int>(piece), state);
    p += piece;
    n -= piece;
  }
  ClearUpperVectors();
  return ~state;
}

}  // namespace nacre
