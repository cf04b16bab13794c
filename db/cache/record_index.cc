#include "db/cache/record_index.h"

namespace nacre {

void RecordIndex::Put(uint64_t hash, bool in_main, uint64_t position, int uses) {
  Word* victim = nullptr;
  int least = kUsesMax + 1;
  for (Word& slot : Bucket(hash)) {
    const uint64_t word = slot.load(std::memory_order_relaxed);
    const int its_uses = word == 0 ? -1 : UsesOf(word);
    if (its_uses >= least) continue;
    least = its_uses;
    victim = &slot;
  }
  const uint64_t word = TagOf(hash) << kTagShift | static_cast<uint64_t>(uses) << kUsesShift |
                        (in_main ? kMainBit : 0) | position;
  // Release: pairs with the load of readers, who then see the record.
  victim->store(word, std::memory_order_release);
}

int RecordIndex::Remove(uint64_t hash, bool in_main, uint64_t position) {
  for (Word& slot : Bucket(hash)) {
    const uint64_t word = slot.load(std::memory_order_relaxed);
    if (!Matches(word, hash) || InMain(word) != in_main || PositionOf(word) != position) continue;
    // Readers may count on meanwhile.
    return UsesOf(slot.exchange(0, std::memory_order_relaxed));
  }
  return -1;
}

void GhostList::Add(uint64_t hash) {
  ++added_;
  uint64_t* oldest = nullptr;
  uint32_t age = 0;
  for (uint64_t& word : Bucket(hash)) {
    const uint32_t its_age = word == 0 ? UINT32_MAX : added_ - static_cast<uint32_t>(word);
    if (its_age <= age) continue;
    age = its_age;
    oldest = &word;
  }
  if (oldest != nullptr) *oldest = (hash >> 32 << 32) | added_;
}

bool GhostList::Take(uint64_t hash, uint32_t horizon) {
  for (uint64_t& word : Bucket(hash)) {
    if (word == 0 || word >> 32 != hash >> 32) continue;
    const bool recent = added_ - static_cast<uint32_t>(word) < horizon;
    word = 0;
    return recent;
  }
  return false;
}

}  // namespace nacre
