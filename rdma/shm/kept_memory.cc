#include "rdma/shm/kept_memory.h"

#include <iterator>

namespace nacre::rdma {

void KeptMemory::Add(const PeerProcess& owner, const std::shared_ptr<Mapping>& memory) {
  MutexLock lock(&mutex_);
  Kept& kept = kept_[memory->name()];
  if (kept.memory.lock() == memory) return;
  kept.owner = owner.Again();
  kept.memory = memory;
}

bool KeptMemory::LookForDeaths() {
  MutexLock lock(&mutex_);
  for (auto it = kept_.begin(); it != kept_.end();) {
    const std::shared_ptr<Mapping> memory = it->second.memory.lock();
    // A connection that has ended does not say so: its peer may go on with others.
    const bool gone = memory != nullptr && it->second.owner.Ended();
    if (gone) memory->TakeAway();
    it = gone || memory == nullptr ? kept_.erase(it) : std::next(it);
  }
  return !kept_.empty();
}

}  // namespace nacre::rdma
