#include "pool/connect/connect_in_time.h"

#include "pool/connect/pool_pace.h"

namespace nacre::pool {

Status ConnectInTime(Fabric* fabric, NodeLink* link, std::chrono::nanoseconds patience,
                     Deadline deadline, bool may_leave,
                     const std::function<Status(Deadline)>& connect, bool* left) {
  *left = false;
  while (patience < deadline.Remaining() && (may_leave || !link->pace().slow())) {
    const Deadline attempt = Deadline::After(fabric->context.clock, patience);
    Status s = connect(attempt);
    // Transports answer `Unavailable` for silence, too.
    if (s.ok() || !attempt.Expired()) return s;
    *left = fabric->pace.NoteLate(link) && may_leave;
    if (*left) return s;
    patience *= 2;
  }
  return connect(deadline);
}

}  // namespace nacre::pool
