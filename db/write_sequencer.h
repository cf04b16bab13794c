#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "table/internal_key.h"
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

  explicit WriteSequencer(SequenceNumber last_published);

  /// `count` >= 1 sequence numbers. Every ticket must be given to `Publish`, soon: later writers
  /// wait for it.
  Ticket Begin(uint64_t count);

  /// The caller has inserted all entries of `ticket`. Returns once `published()` covers it, that
  /// is, when all earlier tickets are finished too; true then. `give_up` (if any) is asked now and
  /// then: once it answers true so does this false, and the ticket is published when it can be.
  bool Publish(const Ticket& ticket, const std::function<bool()>& give_up = nullptr);

  /// As Publish for a ticket whose writer does not wait: `published()` covers it once all earlier
  /// tickets are finished, which may be long after. At most one thread for each ticket.
  void Finish(const Ticket& ticket);

  /// Goes on after `last_published`, which is not before what is published. Before any ticket is
  /// taken, or between two with nobody else at work.
  void StartAfter(SequenceNumber last_published);

  /// Ends the current generation. Returns its boundary: every sequence below belongs to it or an
  /// earlier one, every later ticket to the next one.
  SequenceNumber NextGeneration();

  /// The newest snapshot: all sequences up to and including it are visible.
  SequenceNumber LastPublished() const {
    return published_.load(std::memory_order_acquire) - 1;  // Pairs with Advance.
  }
  /// Whether every sequence below `boundary` is published. Returns once it is, and before that when
  /// `give_up` answers true; it is asked now and then.
  bool AwaitPublished(SequenceNumber boundary, const std::function<bool()>& give_up) const;

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

/// A write whose record was not acknowledged in time. Its entries are in the MemTable and can be
/// published once the log has got its record after all.
struct UnsettledWrite {
  WriteSequencer::Ticket ticket;
  uint64_t position;
};

}  // namespace nacre
