#include "rdma/shm/completion_queue.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "rdma/shm/queue_pair.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// A wake-up through the eventfd costs about as much as the longest spin; the shortest one keeps
// noticing when spinning would pay again.
constexpr nanoseconds kSpinMin{250};
constexpr nanoseconds kSpinMax{4000};

}  // namespace

ShmCompletionQueue::ShmCompletionQueue(int capacity, std::shared_ptr<LocalDoorbell> doorbell)
    : bits_(&doorbell->word()->bits),
      ring_(std::make_unique<Entry[]>(std::bit_ceil(static_cast<uint64_t>(capacity)))),
      mask_(std::bit_ceil(static_cast<uint64_t>(capacity)) - 1),
      capacity_(static_cast<uint64_t>(capacity)),
      doorbell_(std::move(doorbell)),
      spin_(kSpinMin, kSpinMax) {}

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
    if (entry.queue_pair == reinterpret_cast<uintptr_t>(queue_pair)) continue;
    Entry& place = ring_[kept++ & mask_];
    place.id = entry.id;
    place.queue_pair = entry.queue_pair;
    place.sizes = entry.sizes;
    place.kinds = entry.kinds;
    place.send_number = entry.send_number;
  }
  head_ = kept;
}

int ShmCompletionQueue::Poll(Completion* completions, int n) {
  // Relaxed: CollectArrivals synchronises by its RMW.
  if ((bits_->load(std::memory_order_relaxed) & Doorbell::kWork) != 0) [[unlikely]] {
    CollectArrivals();
  }
  int taken = 0;
  while (taken < n && tail_ != head_) {
    const Entry& entry = ring_[tail_++ & mask_];
    const uint64_t sizes = entry.sizes;
    const uint64_t kinds = entry.kinds;
    auto* const queue_pair = reinterpret_cast<ShmQueuePair*>(entry.queue_pair);
    if (const uint64_t number = entry.send_number; number != 0) queue_pair->Retire(number);
    Completion& completion = completions[taken++];
    completion.id = entry.id;
    completion.queue_pair = queue_pair;
    completion.bytes = static_cast<uint32_t>(sizes);
    completion.immediate = static_cast<uint32_t>(sizes >> 32);
    completion.opcode = static_cast<Opcode>(kinds & 0xff);
    completion.code = static_cast<CompletionCode>(kinds >> 8);
  }
  return taken;
}

void ShmCompletionQueue::CollectArrivals() {
  // Pairs with the release in Ring: what came before a bit was set is visible after this.
  uint64_t work = bits_->fetch_and(~Doorbell::kWork, std::memory_order_acq_rel) & Doorbell::kWork;
  for (; work != 0; work &= work - 1) {
    for (ShmQueuePair* queue_pair : groups_[static_cast<size_t>(std::countr_zero(work))]) {
      queue_pair->CollectArrivals();
    }
  }
}

bool ShmCompletionQueue::TakeReason() {
  if (tail_ != head_) return true;
  if ((bits_->load(std::memory_order_relaxed) & (Doorbell::kWork | Doorbell::kWake)) == 0) {
    return false;
  }
  bits_->fetch_and(~(Doorbell::kWake | Doorbell::kSleeping), std::memory_order_acq_rel);
  return true;
}

Status ShmCompletionQueue::Wait(nanoseconds timeout) {
  if (TakeReason() || spin_.Until([this] { return TakeReason(); }, timeout)) return Status::OK();

  const auto start = steady_clock::now();
  // Invariant 2 of Doorbell: sleep only if nothing was set at the moment of the announcement.
  bits_->fetch_or(Doorbell::kSleeping, std::memory_order_acq_rel);
  while (!TakeReason()) {
    const nanoseconds waited = steady_clock::now() - start;
    if (waited >= timeout) {
      bits_->fetch_and(~Doorbell::kSleeping, std::memory_order_acq_rel);
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
