#include "util/threads/epoch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "util/thread_sanitizer.h"
#include "util/threads/membarrier.h"

namespace nacre {
namespace {

/// TSan does not know membarrier and would report the reads that it protects.
bool RegisterMembarrier() {
  if (kThreadSanitizer) return false;
  static const bool registered = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return registered;
}

}  // namespace

void EpochDomain::PrepareToReclaim() {
  if (RegisterMembarrier()) asymmetric_.store(true, std::memory_order_relaxed);
}

EpochDomain::~EpochDomain() {
  // Destroying one object may retire another.
  while (true) {
    std::deque<Retired> rest;
    {
      MutexLock lock(&mutex_);
      rest.swap(retired_);
    }
    if (rest.empty()) return;
    for (Retired& retired : rest) retired.destroy();
  }
}

void EpochDomain::Retire(std::function<void()> destroy) {
  {
    MutexLock lock(&mutex_);
    // Release pairs with the acquire in Pin. The mutex keeps the queue in order of epochs.
    const uint64_t epoch = epoch_.fetch_add(1, std::memory_order_release);
    retired_.push_back({epoch, std::move(destroy)});
  }
  Collect();
}

void EpochDomain::Collect() {
  std::vector<Retired> ready;
  {
    MutexLock lock(&mutex_);
    if (retired_.empty()) return;
    HeavyFence();
    const uint64_t oldest = OldestPin();
    while (!retired_.empty() && retired_.front().epoch < oldest) {
      ready.push_back(std::move(retired_.front()));
      retired_.pop_front();
    }
  }
  for (Retired& retired : ready) retired.destroy();
}

void EpochDomain::HeavyFence() {
  PrepareToReclaim();
  // Pins of before that have a fence of their own; membarrier does for them as well.
  if (asymmetric_.load(std::memory_order_relaxed)) {
    Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);  // Cannot fail once registered.
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with the one in Pin.
  }
}

uint64_t EpochDomain::OldestPin() const {
  uint64_t oldest = UINT64_MAX;
  slots_.ForEach([&oldest](const Slot& slot) {
    // Pairs with the release in ~Guard.
    const uint64_t epoch = slot.epoch.load(std::memory_order_acquire);
    if (epoch != kIdle) oldest = std::min(oldest, epoch);
  });
  return oldest;
}

}  // namespace nacre
