#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"

namespace nacre {

/// The slots of a manifest's image, side by side, in chunks that copies share until one of them
/// changes: a copy of the image costs a pointer for each chunk, and the first change in a chunk
/// after that a copy of the chunk.
///
/// Thread safety: as of any value; but copies are made, changed and destroyed under one mutex,
/// since a chunk's owners are counted to learn whether it is shared. A copy may be read without it.
class SlotImage {
 public:
  static constexpr size_t kSlotBytes = 256;
  static constexpr uint32_t kChunkSlots = 256;
  static constexpr size_t kChunkBytes = kSlotBytes * kChunkSlots;

  uint32_t used() const { return used_; }
  const char* slot(uint32_t slot) const {
    return chunks_[slot / kChunkSlots]->data() + slot % kChunkSlots * kSlotBytes;
  }
  /// The same, to be changed.
  char* Change(uint32_t slot) {
    std::shared_ptr<Chunk>& chunk = chunks_[slot / kChunkSlots];
    if (chunk.use_count() > 1) chunk = std::make_shared<Chunk>(*chunk);
    return chunk->data() + slot % kChunkSlots * kSlotBytes;
  }
  /// One more, of zeros, behind the others.
  uint32_t Add() {
    if (used_ == chunks_.size() * kChunkSlots) chunks_.push_back(std::make_shared<Chunk>());
    return used_++;
  }

  /// The slots in use are the chunks in their order, the last one up to where it is used.
  size_t chunks() const { return chunks_.size(); }
  Slice chunk(size_t number) const {
    const size_t before = number * kChunkSlots;
    const size_t slots = std::min<size_t>(kChunkSlots, used_ - before);
    return Slice(chunks_[number]->data(), slots * kSlotBytes);
  }
  /// All of them in one piece.
  std::string ToString() const {
    std::string bytes;
    bytes.reserve(used_ * kSlotBytes);
    for (size_t i = 0; i < chunks(); ++i) bytes.append(chunk(i).data(), chunk(i).size());
    return bytes;
  }

 private:
  using Chunk = std::array<char, kChunkBytes>;

  std::vector<std::shared_ptr<Chunk>> chunks_;
  uint32_t used_ = 0;
};

}  // namespace nacre
