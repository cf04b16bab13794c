#include "rdma/refusals.h"

#include <chrono>

#include "util/log.h"

namespace nacre::rdma {

namespace {

constexpr std::chrono::nanoseconds kLinePeriod = std::chrono::seconds(1);

}  // namespace

void Refusals::Refused(const std::string& where, std::string_view why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  Tell(where, "refused a peer", why);
}

void Refusals::Malformed(const std::string& where, std::string_view why) {
  malformed_.fetch_add(1, std::memory_order_relaxed);
  Tell(where, "ended a connection", why);
}

void Refusals::AddTo(TrafficCounters* counters) const {
  counters->peers_refused += refused_.load(std::memory_order_relaxed);
  counters->frames_malformed += malformed_.load(std::memory_order_relaxed);
}

void Refusals::Tell(const std::string& where, std::string_view what, std::string_view why) {
  if (logger_ == nullptr) return;
  const uint64_t now = clock_->NowNanos();
  uint64_t next = next_line_nanos_.load(std::memory_order_relaxed);
  // The thread that moves the time on writes the line.
  if (now < next || !next_line_nanos_.compare_exchange_strong(
                        next, now + static_cast<uint64_t>(kLinePeriod.count()))) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t untold = untold_.exchange(0, std::memory_order_relaxed);
  const std::string more = untold == 0 ? "" : " (and " + std::to_string(untold) + " more before)";
  Log(logger_, LogLevel::kWarn, "{}: {}: {}{}", where, what, why, more);
}

}  // namespace nacre::rdma
