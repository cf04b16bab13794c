#include "util/threads/epoch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "util/thread_sanitizer.h"
#include "util/threads/membarrier.h"

namespace nacre {
namespace {

/// Guards that are awaited so soon again have pins fence.
constexpr uint64_t kOftenNanos = 1'000'000;
/// After so long without that they do not.
constexpr uint64_t kQuietNanos = 100'000'000;
constexpr int kSpins = 256;
constexpr std::chrono::microseconds kPause(20);

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

void EpochDomain::FenceForGuards(uint64_t now_nanos) {
  const uint64_t last = awaited_nanos_.exchange(now_nanos, std::memory_order_relaxed);
  // Pairs with the store in RelaxIfQuiet.
  if (settled_.load(std::memory_order_seq_cst)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with the one in Pin.
    return;
  }
  if (now_nanos - last > kOftenNanos) return HeavyFence();
  MutexLock lock(&mutex_);
  fences_.store(true, std::memory_order_seq_cst);
  HeavyFence();
  settled_.store(true, std::memory_order_seq_cst);
}

void EpochDomain::RelaxIfQuiet(uint64_t now_nanos) {
  const uint64_t last = awaited_nanos_.load(std::memory_order_relaxed);
  if (now_nanos < last + kQuietNanos) return;
  MutexLock lock(&mutex_);
  settled_.store(false, std::memory_order_seq_cst);
  fences_.store(false, std::memory_order_seq_cst);
}

bool EpochDomain::AwaitGuards(Deadline deadline) {
  // Acquire and release as in Retire: a pin that shows a later epoch began behind this.
  const uint64_t epoch = epoch_.fetch_add(1, std::memory_order_acq_rel);
  FenceForGuards(deadline.clock()->NowNanos());
  for (int looks = 1; OldestPin() <= epoch; ++looks) {
    // Most guards end within a microsecond.
    if (looks < kSpins) {
      __builtin_ia32_pause();
      continue;
    }
    if (deadline.Expired()) return false;
    deadline.clock()->SleepFor(kPause);
  }
  return true;
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
