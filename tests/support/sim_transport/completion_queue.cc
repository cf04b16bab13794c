#include "tests/support/sim_transport/completion_queue.h"

#include <algorithm>
#include <utility>

#include "tests/support/sim_transport/queue_pair.h"

namespace nacre::rdma {

int SimCompletionQueue::Poll(Completion* completions, int n) {
  simulation_->Yield();
  int taken = 0;
  while (taken < n && !entries_.empty()) {
    const Entry& entry = entries_.front();
    completions[taken++] = entry.completion;
    if (entry.number != 0) {
      static_cast<SimQueuePair*>(entry.completion.queue_pair)->Retire(entry.number);
    }
    entries_.pop_front();
  }
  return taken;
}

Status SimCompletionQueue::Wait(std::chrono::nanoseconds timeout) {
  simulation_->Yield();
  if (entries_.empty() && !wake_) {
    simulation_->Park(this, std::max(timeout, std::chrono::nanoseconds(0)), "completions");
  }
  const bool woken = std::exchange(wake_, false);
  return entries_.empty() && !woken ? Status::TimedOut("no completion") : Status::OK();
}

void SimCompletionQueue::Wake() {
  wake_ = true;
  simulation_->Unpark(this, /*all=*/true);
}

void SimCompletionQueue::Push(const Completion& completion, uint64_t number) {
  entries_.push_back({completion, number});
  simulation_->Record(static_cast<uint64_t>(completion.code), completion.id);
  simulation_->Unpark(this, /*all=*/true);
}

void SimCompletionQueue::Remove(const QueuePair* queue_pair) {
  std::erase_if(entries_,
                [=](const Entry& entry) { return entry.completion.queue_pair == queue_pair; });
}

}  // namespace nacre::rdma
