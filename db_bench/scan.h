#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "db_bench/engine/engine.h"

namespace nacre::bench {

/// Reads `entries` entries from where `cursor` stands, or as many as there are, and goes to the one
/// after them. Some of each value is copied, so that it has to be there. Adds the bytes of keys and
/// values to `*bytes_out`. Answers whether the cursor still stands on an entry.
inline bool ReadEntries(Cursor* cursor, uint64_t entries, bool backward, uint64_t* bytes_out) {
  char buffer[256];
  uint64_t bytes = 0;
  bool valid = true;
  for (uint64_t i = 0; i < entries && valid; ++i) {
    const Slice value = cursor->value();
    // A copy of a length that is known, mostly: of another one compilers make an instruction that
    // repeats itself, for which the processor stops to look ahead, so that each entry waits for the
    // memory of the one before it, whatever the engine does.
    if (value.size() >= sizeof(buffer)) {
      std::memcpy(buffer, value.data(), sizeof(buffer));
    } else {
      std::memcpy(buffer, value.data(), value.size());
    }
    asm volatile("" : : "r"(buffer) : "memory");
    bytes += cursor->key().size() + value.size();
    valid = backward ? cursor->Prev() : cursor->Next();
  }
  *bytes_out += bytes;
  return valid;
}

}  // namespace nacre::bench
