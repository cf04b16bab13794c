#pragma once

#include <cstddef>

#include "util/memory/arena.h"

namespace nacre {

/// What an arena takes in chunks before it takes blocks.
inline constexpr size_t kArenaBytesBeforeBlocks = 4 * ConcurrentArena::kChunkSize;

/// The first address of a block of an empty arena.
inline char* FirstOfABlock(ConcurrentArena* arena) {
  bool new_chunk = false;
  while (arena->MemoryUsage() < kArenaBytesBeforeBlocks)
    arena->Allocate(ConcurrentArena::kChunkSize / 4, &new_chunk);
  char* piece = nullptr;
  for (new_chunk = false; !new_chunk;)
    piece = arena->Allocate(ConcurrentArena::kChunkSize / 4, &new_chunk);
  return piece;
}

}  // namespace nacre
