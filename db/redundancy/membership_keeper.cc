#include "db/redundancy/membership_keeper.h"

namespace nacre {

void MembershipKeeper::Start() {
  task_.Start(database_.where, "nacre-members", kTick, PeriodicTask::Begin::kWithRest,
              [this] { Look(); });
}

void MembershipKeeper::Look() {
  constexpr auto kLookAroundNanos =
      static_cast<uint64_t>(std::chrono::nanoseconds(kLookAround).count());
  NodeStates now = database_.look();
  const bool changed = now != nodes_;
  if (changed) {
    database_.changed(nodes_, now);
    nodes_ = std::move(now);
    changes_.fetch_add(1, std::memory_order_release);
  }
  database_.follow();
  const uint64_t now_nanos = database_.clock->NowNanos();
  if (!changed && now_nanos < look_around_at_nanos_) return;
  look_around_at_nanos_ = now_nanos + kLookAroundNanos;
  database_.leave_nodes();
}

}  // namespace nacre
