#include "db/write/write_sequencer.h"

#include <sched.h>

#include <chrono>

#include "util/clock.h"
#include "util/simulation.h"

namespace nacre {

namespace {

/// Rounds of a wait before it asks whether to give up: some tens of milliseconds.
constexpr uint64_t kRoundsToAsk = 1024;

/// Waits for another writer's few hundred nanoseconds of work: spin, then let it have the
/// processor, then sleep (it was preempted and there is no processor to spare).
class Backoff {
 public:
  void Pause() {
    if (++rounds_ < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (rounds_ < kSpins + kYields) {
      sched_yield();
    } else {
      Clock::System()->SleepFor(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr int kSpins = 64;
  static constexpr int kYields = 192;

  // Only threads that sleep let others go on in a simulation.
  int rounds_ = Simulation::Current() == nullptr ? 0 : kSpins + kYields;
};

}  // namespace

WriteSequencer::WriteSequencer(SequenceNumber last_published)
    : state_(last_published + 1),
      published_(last_published + 1),
      finished_(std::make_unique<std::atomic<uint64_t>[]>(kSlots)) {}

WriteSequencer::Ticket WriteSequencer::Begin(uint64_t count) {
  // Acquire pairs with NextGeneration: the new generation's MemTable is visible.
  const uint64_t packed = state_.fetch_add(count, std::memory_order_acquire);
  return {static_cast<uint16_t>(packed >> kSequenceBits), packed & kSequenceMask, count};
}

bool WriteSequencer::TryFinish(const Ticket& ticket) {
  const uint64_t end = ticket.first + ticket.count;
  // Alone at the front, the usual case of one writer: no slot is needed.
  uint64_t front = ticket.first;
  if (published_.compare_exchange_strong(front, end, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    Advance();  // Later writers may have finished meanwhile.
    return true;
  }
  if (ticket.first - published_.load(std::memory_order_acquire) >= kSlots) return false;
  finished_[ticket.first % kSlots].store(end, std::memory_order_release);  // Pairs with Advance.
  Advance();
  return true;
}

Status WriteSequencer::Finish(const Ticket& ticket, const WhyGiveUp& why_give_up) {
  Backoff backoff;
  for (uint64_t round = 1; !TryFinish(ticket); ++round) {
    Advance();
    if (round % kRoundsToAsk == 0) NACRE_RETURN_IF_ERROR(why_give_up());
    backoff.Pause();
  }
  return Status::OK();
}

void WriteSequencer::Publish(const Ticket& ticket) {
  const auto never = [] { return Status::OK(); };
  Finish(ticket, never).IgnoreError();  // No wait gives up, so both answer OK.
  AwaitPublished(ticket.first + ticket.count, never).IgnoreError();
}

bool WriteSequencer::IsPublished(SequenceNumber boundary) {
  if (published_.load(std::memory_order_acquire) >= boundary) return true;
  // A waiter also advances, so a finished range never depends on another thread seeing it.
  Advance();
  return published_.load(std::memory_order_acquire) >= boundary;
}

Status WriteSequencer::AwaitPublished(SequenceNumber boundary, const WhyGiveUp& why_give_up) {
  Backoff backoff;
  for (uint64_t round = 1; !IsPublished(boundary); ++round) {
    if (round % kRoundsToAsk == 0) NACRE_RETURN_IF_ERROR(why_give_up());
    backoff.Pause();
  }
  return Status::OK();
}

void WriteSequencer::Advance() {
  uint64_t front = published_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t end = finished_[front % kSlots].load(std::memory_order_acquire);
    if (end <= front) return;
    if (published_.compare_exchange_weak(front, end, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      front = end;
    }
  }
}

SequenceNumber WriteSequencer::NextGeneration() {
  return state_.fetch_add(uint64_t{1} << kSequenceBits, std::memory_order_release) & kSequenceMask;
}

void WriteSequencer::StartAfter(SequenceNumber last_published) {
  const uint64_t generation = state_.load(std::memory_order_relaxed) & ~kSequenceMask;
  state_.store(generation | (last_published + 1), std::memory_order_release);
  published_.store(last_published + 1, std::memory_order_release);
}

}  // namespace nacre
