#include "pool/store/damaged_chunks.h"

namespace nacre::pool {

FragmentSet DamagedChunks::InRow(uint64_t row) const {
  if (fragments() == 0) return 0;
  MutexLock lock(&mutex_);
  const auto found = rows_.find(row);
  return found == rows_.end() ? 0 : found->second;
}

void DamagedChunks::Add(FragmentSet fragments) {
  fragments_.fetch_or(fragments, std::memory_order_release);
}

void DamagedChunks::Add(FragmentSet fragments, uint64_t row) {
  if (fragments == 0) return;
  {
    MutexLock lock(&mutex_);
    rows_[row] |= fragments;
  }
  Add(fragments);
}

}  // namespace nacre::pool
