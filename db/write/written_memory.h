#pragma once

#include <cstdint>

namespace nacre {

/// What a write has left of the memory that it was written to.
enum class WrittenMemory : uint8_t {
  kEnough,
  kShareSpent,   ///< The databases that share a WriteBufferManager have little left.
  kMemTableFull  ///< The MemTable is.
};

}  // namespace nacre
