#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "rdma/unique_fd.h"

namespace nacre::rdma {

/// How other threads reach the one thread that uses a completion queue: its callers' Wake, and the
/// device's event thread when a connection has ended. Outlives the queue for as long as a
/// connection refers to it.
///
/// Invariant (no lost wake-up): the owner sleeps only if its own read-modify-write that set
/// kSleeping found no other bit set; a setter's comes either before, and the owner stays awake, or
/// after it, and then the setter sees kSleeping and writes the eventfd. All accesses that matter
/// are read-modify-writes of one word and so have one order.
class CompletionSignal {
 public:
  static constexpr uint32_t kWake = 1;       ///< CompletionQueue::Wake.
  static constexpr uint32_t kAttention = 2;  ///< A connection, or the device, is to be looked at.
  static constexpr uint32_t kSleeping = 4;

  explicit CompletionSignal(UniqueFd event_fd) : event_fd_(std::move(event_fd)) {}

  /// What came before is visible to the owner once it has taken the bit.
  void Set(uint32_t bit) {
    if ((bits_.fetch_or(bit, std::memory_order_acq_rel) & kSleeping) == 0) return;
    const uint64_t token = 1;
    // Fails only when 2^64-2 tokens are there already: the owner wakes anyway.
    [[maybe_unused]] const ssize_t written = ::write(event_fd_.get(), &token, sizeof(token));
  }

  // The owner's side.
  bool Has(uint32_t bits) const { return (bits_.load(std::memory_order_relaxed) & bits) != 0; }
  /// Clears the bits; returns those of them that were set.
  uint32_t Take(uint32_t bits) { return bits_.fetch_and(~bits, std::memory_order_acq_rel) & bits; }
  void FallAsleep() { bits_.fetch_or(kSleeping, std::memory_order_acq_rel); }
  int event_fd() const { return event_fd_.get(); }

 private:
  std::atomic<uint32_t> bits_{0};
  const UniqueFd event_fd_;
};

}  // namespace nacre::rdma
