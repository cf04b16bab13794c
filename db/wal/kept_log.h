#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "db/wal/log_segments.h"
#include "table/format/internal_key.h"

namespace nacre {

/// The segments of a log of which all is in tables, and which stay for those that read the log. The
/// manifest marks them, so that recovery and followers do not read them; but for the newest one,
/// from which the next owner learns where its predecessor's log ends. That one is marked, too, once
/// a copy of it is lost: no recovery may depend on what has less copies than it should.
///
/// Invariant: the segments follow one another in the log, and the oldest ones go first, so that
/// what is left has no gap.
///
/// Thread safety: none.
class KeptLog {
 public:
  /// What is kept of it.
  struct Limits {
    uint64_t bytes = 0;          ///< In any case, of one copy.
    uint64_t readers_bytes = 0;  ///< As long as readers need it.
    SequenceNumber needed = 0;   ///< They need what lies behind.
  };

  /// `through`: it has no later sequence.
  void Add(LogSegment segment, SequenceNumber through);
  /// Takes out those that go: the oldest ones that are beyond the limits.
  std::vector<LogSegment> TakeUnneeded(const Limits& limits);
  /// Gives up the copies on nodes for which `leave` answers true; takes out the segments that have
  /// no other one, and all before them.
  std::vector<LogSegment> LeaveNodes(const std::function<bool(NodeId)>& leave);

  /// What the manifest does not have yet of the segments, as it is to have it.
  std::vector<LogSegment> Unrecorded() const;
  /// The manifest has them all. Returns the copies that were given up before, to be freed.
  std::vector<ExtentAddr> Recorded();

  bool empty() const { return segments_.empty(); }
  bool contains(uint64_t number) const { return segments_.contains(number); }
  uint64_t bytes() const { return bytes_; }  ///< One copy counts.

 private:
  struct Kept {
    LogSegment segment;
    SequenceNumber through = 0;
    bool recorded = true;
  };

  static void Mark(Kept* kept);
  LogSegment TakeOldest();

  std::map<uint64_t, Kept> segments_;  ///< By number.
  std::vector<ExtentAddr> given_up_;   ///< The manifest still has them.
  uint64_t bytes_ = 0;
};

}  // namespace nacre
