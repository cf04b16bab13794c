#pragma once

#include <chrono>
#include <functional>

#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "pool/connect/node_link.h"
#include "util/clock.h"

namespace nacre::pool {

/// Where another node does as well, a connection may take this part of what a request may.
inline constexpr int kQuickConnectionPart = 8;

/// Calls `connect` until it succeeds, fails, or the deadline has passed: first for as long as
/// `patience`, and for twice as long each time. A node that does not answer in time counts as slow
/// from then on (pool/connect/pool_pace.h). If it may be left, `*left` is set then, and the answer
/// is what `connect` said last; otherwise it is waited for until the deadline. While too many
/// others are slow it is asked again, as fewer of them may be by the next time.
Status ConnectInTime(Fabric* fabric, NodeLink* link, std::chrono::nanoseconds patience,
                     Deadline deadline, bool may_leave,
                     const std::function<Status(Deadline)>& connect, bool* left);

}  // namespace nacre::pool
