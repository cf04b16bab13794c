#include "rdma/shm_completion_queue.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "rdma/shm_queue_pair.h"
#include "rdma/shm_socket.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// A wake-up through the eventfd costs about as much as the longest spin; the shortest one keeps
// noticing when spinning would pay again.
constexpr nanoseconds kSpinMin{250};
constexpr nanoseconds kSpinMax{4000};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ShmCompletionQueue::ShmCompletionQueue(int capacity, std::shared_ptr<LocalDoorbell> doorbell)
    : doorbell_(std::move(doorbell)),
      capacity_(static_cast<uint64_t>(capacity)),
      mask_(std::bit_ceil(capacity_) - 1),
      ring_(mask_ + 1),
      spin_(kSpinMax) {}

ShmCompletionQueue::~ShmCompletionQueue() {
  assert(std::all_of(groups_.begin(), groups_.end(), [](const auto& g) { return g.empty(); }) &&
         "a completion queue outlives its queue pairs");
}

void ShmCompletionQueue::Attach(ShmQueuePair* queue_pair, uint32_t group) {
  groups_[group].push_back(queue_pair);
}

void ShmCompletionQueue::Detach(ShmQueuePair* queue_pair, uint32_t group) {
  std::erase(groups_[group], queue_pair);
  uint64_t kept = tail_;
  for (uint64_t i = tail_; i != head_; i++) {
    const Entry& entry = ring_[i & mask_];
    if (entry.completion.queue_pair != queue_pair) ring_[kept++ & mask_] = entry;
  }
  head_ = kept;
}

int ShmCompletionQueue::Poll(Completion* completions, int n) {
  // Relaxed: CollectArrivals synchronises by its RMW.
  if ((doorbell_->word()->bits.load(std::memory_order_relaxed) & Doorbell::kWork) != 0)
      [[unlikely]] {
    CollectArrivals();
  }
  int taken = 0;
  while (taken < n && tail_ != head_) {
    const Entry& entry = ring_[tail_++ & mask_];
    if (entry.send_number != 0) {
      static_cast<ShmQueuePair*>(entry.completion.queue_pair)->Retire(entry.send_number);
    }
    completions[taken++] = entry.completion;
  }
  return taken;
}

void ShmCompletionQueue::CollectArrivals() {
  // Pairs with the release in Ring: what came before a bit was set is visible after this.
  uint64_t work = doorbell_->word()->bits.fetch_and(~Doorbell::kWork, std::memory_order_acq_rel) &
                  Doorbell::kWork;
  for (; work != 0; work &= work - 1) {
    for (ShmQueuePair* queue_pair : groups_[static_cast<size_t>(std::countr_zero(work))]) {
      queue_pair->CollectArrivals();
    }
  }
}

bool ShmCompletionQueue::TakeReason() {
  if (tail_ != head_) return true;
  std::atomic<uint64_t>& bits = doorbell_->word()->bits;
  if ((bits.load(std::memory_order_relaxed) & (Doorbell::kWork | Doorbell::kWake)) == 0) {
    return false;
  }
  bits.fetch_and(~(Doorbell::kWake | Doorbell::kSleeping), std::memory_order_acq_rel);
  return true;
}

bool ShmCompletionQueue::Spin(nanoseconds timeout) {
  constexpr int kTurnsPerLook = 8;  // The clock costs as much as several turns.
  const auto end = steady_clock::now() + std::min(spin_, timeout);
  do {
    for (int i = 0; i < kTurnsPerLook; i++) {
      if (TakeReason()) return true;
      Pause();
    }
  } while (steady_clock::now() < end);
  return false;
}

Status ShmCompletionQueue::Wait(nanoseconds timeout) {
  if (TakeReason()) return Status::OK();
  if (timeout > nanoseconds(0) && Spin(timeout)) {
    spin_ = std::min(kSpinMax, spin_ * 2);
    return Status::OK();
  }
  spin_ = std::max(kSpinMin, spin_ / 2);

  std::atomic<uint64_t>& bits = doorbell_->word()->bits;
  const auto start = steady_clock::now();
  // Invariant 2 of Doorbell: sleep only if nothing was set at the moment of the announcement.
  bits.fetch_or(Doorbell::kSleeping, std::memory_order_acq_rel);
  while (!TakeReason()) {
    const nanoseconds waited = steady_clock::now() - start;
    if (waited >= timeout) {
      bits.fetch_and(~Doorbell::kSleeping, std::memory_order_acq_rel);
      return TakeReason() ? Status::OK() : Status::TimedOut("no completion");
    }
    if (WaitFor(doorbell_->event_fd(), POLLIN, timeout - waited)) {
      uint64_t tokens;
      // May fail if the wait was interrupted: the loop looks for reasons itself.
      [[maybe_unused]] const ssize_t size = read(doorbell_->event_fd(), &tokens, sizeof(tokens));
    }
  }
  return Status::OK();
}

}  // namespace nacre::rdma
