#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/format/internal_key.h"

namespace nacre {

/// Tells which sequences cover each of a row of positions, where each sequence covers intervals of
/// them: a segment tree, in which an interval is noted at the fewest nodes that make it up. So n
/// intervals that all overlap take n log n notes, where a list for each position would take n * n;
/// and the newest sequence up to a snapshot is found in the log n nodes above a position.
///
/// Thread safety: immutable once made.
class CoveringSequences {
 public:
  /// Covers [first, last).
  struct Interval {
    uint32_t first = 0;
    uint32_t last = 0;
    SequenceNumber sequence = 0;
  };

  CoveringSequences() = default;
  /// The intervals lie in [0, positions). Those of one sequence do not overlap.
  CoveringSequences(size_t positions, std::vector<Interval> intervals);

  /// Descending by sequence.
  const std::vector<Interval>& intervals() const { return intervals_; }
  /// The greatest one up to `snapshot` that covers the position; 0 if there is none.
  SequenceNumber Newest(size_t position, SequenceNumber snapshot) const;
  /// How many there are.
  size_t Count(size_t position) const;

  size_t MemoryUsage() const {
    return intervals_.capacity() * sizeof(Interval) + begins_.capacity() * sizeof(uint32_t) +
           sequences_.capacity() * sizeof(SequenceNumber);
  }

 private:
  /// Calls `note` with each node that is a part of the interval.
  template <typename Note>
  void ForEachNode(const Interval& interval, Note note) const;

  size_t positions_ = 0;
  std::vector<Interval> intervals_;
  // Node 1 is the root, n has the children 2 n and 2 n + 1, and position p is node positions_ + p.
  std::vector<uint32_t> begins_;  ///< Where each node's notes begin, and the end of the last one's.
  std::vector<SequenceNumber> sequences_;  ///< The nodes' notes, those of one descending.
};

}  // namespace nacre
