#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nacre::server {

/// How many slots the keys of a cluster are hashed to; Redis Cluster's number.
inline constexpr uint32_t kSlots = 16384;

/// The slot of a key, as Redis Cluster's specification has it: CRC16 (polynomial 0x1021) of what is
/// between the first '{' and the '}' behind it, or of all of the key if there is nothing.
uint32_t SlotOfKey(std::string_view key);

/// Slots from `first` up to `behind`, which is not one of them.
struct SlotRange {
  uint32_t first = 0;
  uint32_t behind = 0;

  bool Has(uint32_t slot) const { return first <= slot && slot < behind; }
  uint32_t size() const { return behind - first; }
};

/// What the rows of a slot begin with: the slot, big-endian.
std::string SlotPrefix(uint32_t slot);
/// The slot that such bytes stand for. False unless they are a slot's, and no more.
bool ParseSlotPrefix(std::string_view bytes, uint32_t* slot);

}  // namespace nacre::server
