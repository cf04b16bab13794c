#include "db/redundancy/membership_keeper.h"

namespace nacre {

void MembershipKeeper::Start() {
  thread_ = Thread("nacre-members", [this] { Run(); });
}

void MembershipKeeper::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.Join();
}

void MembershipKeeper::Wake() {
  MutexLock lock(&mutex_);
  wake_.SignalAll();
}

void MembershipKeeper::Run() {
  constexpr auto kLookAroundNanos =
      static_cast<uint64_t>(std::chrono::nanoseconds(kLookAround).count());
  NodeStates nodes;
  uint64_t look_around_at_nanos = 0;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!stopping_) wake_.WaitFor(kTick);
      if (stopping_) return;
    }
    NodeStates now = database_.look();
    const bool changed = now != nodes;
    if (changed) {
      database_.changed(nodes, now);
      nodes = std::move(now);
      changes_.fetch_add(1, std::memory_order_release);
    }
    database_.follow();
    const uint64_t now_nanos = database_.clock->NowNanos();
    if (!changed && now_nanos < look_around_at_nanos) continue;
    look_around_at_nanos = now_nanos + kLookAroundNanos;
    database_.leave_nodes();
  }
}

}  // namespace nacre
