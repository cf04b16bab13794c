#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "util/clock.h"

namespace nacre {

/// Hands out sequence numbers together with the MemTable generation that they belong to, and
/// publishes finished ranges in order (docs/design.md, section 6).
///
/// One 64-bit word holds the generation (top 16 bits) above the next sequence number (low 48
/// bits). A writer's `Begin` is one fetch_add, so it cannot get a sequence number of one
/// generation and write to another one's MemTable; `NextGeneration` is one fetch_add of 1 << 48.
///
/// Invariants:
///   - every sequence below `published()` has been inserted by its writer, and what that writer
///     stored happens before a load of `published()` that shows it (release by the advancing
///     compare-exchange, which acquires each finished slot);
///   - `published()` only moves to the end of a finished range, so a batch shows whole or not.
///
/// Thread safety: all methods may be called from many threads at once.
class WriteSequencer {
 public:
  struct Ticket {
    uint16_t generation;
    SequenceNumber first;
    uint64_t count;
  };

  /// Asked now and then by waits for other writers: OK, or why the wait is to end. What it answers
  /// is what the wait answers, so no caller has to ask a second time, when the answer may differ.
  using WhyGiveUp = std::function<Status()>;

  /// Sequence numbers up to here are given out. The rest of the 48 bits is for writers that learn
  /// at the same time that there are none left: it keeps the sum out of the generation's bits.
  static constexpr SequenceNumber kLastGiven = kMaxSequenceNumber - (uint64_t{1} << 40);
  /// What an owner may have left behind at most, with those writers.
  static constexpr SequenceNumber kLastPossible = kMaxSequenceNumber - (uint64_t{1} << 39);

  /// `last_published` <= kLastPossible.
  explicit WriteSequencer(SequenceNumber last_published);

  /// `count` >= 1 sequence numbers. Every ticket must be given to `Finish`, soon: later writers
  /// wait for it.
  Ticket Begin(uint64_t count);
  /// Whether the numbers of `ticket` may be used. Once a ticket has none, no later one has: the
  /// caller finishes it without entries, and asks for no more.
  static bool HasNumbers(const Ticket& ticket) {
    return ticket.first + ticket.count - 1 <= kLastGiven;
  }

  /// The caller has inserted all entries of `ticket`: `published()` covers it once all earlier
  /// tickets are finished, which may be long after. Waits while the ticket is more than the ring
  /// ahead of what is published. An answer of `why_give_up` other than OK ends that wait and is the
  /// result; the ticket is then not finished, and has to be later. At most one thread for each
  /// ticket.
  Status Finish(const Ticket& ticket, const WhyGiveUp& why_give_up);
  /// The same if nothing has to be waited for; false: the ticket is not finished.
  bool TryFinish(const Ticket& ticket);

  /// Finishes the ticket and returns once it is published, however long that takes: for callers
  /// that know that all earlier writers finish.
  void Publish(const Ticket& ticket);

  /// Goes on after `last_published`, which is not before what is published. Must be called before
  /// any ticket is taken, or while no other writer is at work.
  void StartAfter(SequenceNumber last_published);

  /// Ends the current generation. Returns its boundary: every sequence below belongs to it or an
  /// earlier one, every later ticket to the next one.
  SequenceNumber NextGeneration();

  /// The newest snapshot: all sequences up to and including it are visible.
  SequenceNumber LastPublished() const {
    return published_.load(std::memory_order_acquire) - 1;  // Pairs with Advance.
  }
  /// Whether every sequence below `boundary` is published.
  bool IsPublished(SequenceNumber boundary);
  /// OK once every sequence below `boundary` is published; before that, an answer of `why_give_up`
  /// other than OK ends the wait and is the result.
  Status AwaitPublished(SequenceNumber boundary, const WhyGiveUp& why_give_up);

  uint16_t generation() const {
    return static_cast<uint16_t>(state_.load(std::memory_order_relaxed) >> kSequenceBits);
  }

 private:
  static constexpr int kSequenceBits = 48;
  static constexpr uint64_t kSequenceMask = (uint64_t{1} << kSequenceBits) - 1;
  /// Ranges that may be unpublished at once span at most this many sequence numbers, measured
  /// from first to first.
  static constexpr uint64_t kSlots = 1 << 14;

  /// Moves published_ over every finished range at its front.
  void Advance();

  alignas(64) std::atomic<uint64_t> state_;
  alignas(64) std::atomic<uint64_t> published_;  ///< First sequence that is not published.
  /// finished_[s % kSlots] = end of the finished range that starts at s. A value left over from
  /// an earlier lap is <= s, because published_ had passed it, so nothing has to be cleared.
  std::unique_ptr<std::atomic<uint64_t>[]> finished_;
};

}  // namespace nacre
