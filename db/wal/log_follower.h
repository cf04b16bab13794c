#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/point_reader.h"
#include "table/format/log_format.h"

namespace nacre {

/// Reads on in a log that another process writes, by one-sided reads and without its help.
///
/// A record that was acknowledged is on all replicas of its segment. So in the open segment those
/// records count that all reachable replicas have, and in one that has ended those that its
/// successor's header covers, from any replica. A record that a replica lacks is in flight, or
/// damaged there: if it stays so it counts as well, as it would for a new owner.
///
/// That nothing was missed is told, as a rule, by the header of the segment: it is read from each
/// replica after the end of the records was. If it is there without the mark
/// (table/format/log_format.h) the segment was open, and its memory not reused, when the end was
/// read. This takes one round trip, and no look at the manifest. But an owner that reaches no
/// replica goes on without having marked one, after a while (db/wal/log_seal.h). So marks are
/// certain for less than that after the headers of all later segments were read, together with the
/// end of the records, and a manifest that has no others.
///
/// Thread safety: none.
class LogFollower {
 public:
  /// `client` outlives this.
  LogFollower(pool::PoolClient* client, uint64_t database_id)
      : client_(client), database_id_(database_id) {}

  /// The segments that the manifest has, by number, with their replicas' places for this client. If
  /// the one that is read is not among them, all its records are in tables, and reading goes on
  /// with the first that is in use.
  void SetSegments(std::map<uint64_t, LogSegment> segments);
  /// Begins anew with the first one.
  void Reset() {
    at_ = Position();
    unproven_ = false;
  }
  /// Must be called when another owner has begun: what the present segments have behind their
  /// recorded ends is not part of its log, which gives the same sequences to other updates. (Behind
  /// an end that a segment's own owner records is what it writes once more, so that is read until
  /// an end is recorded.) Until the new owner has recorded one, what is there is visited, as it may
  /// have been acknowledged.
  void OwnerChanged() { foreign_through_ = segments_.empty() ? 0 : segments_.rbegin()->first; }

  /// Told before the segments of another owner's manifest are set: those that are known now are
  /// none of that owner's, so records there have to be forgotten if they lie behind an end that it
  /// tells. (What an owner leaves behind in a segment of its own it writes once more.)
  void OwnerLeaves() { left_through_ = segments_.empty() ? 0 : segments_.rbegin()->first; }

  enum class Look : uint8_t {
    kSeals,        ///< A segment without a mark is the open one. What may be on its way is left.
    kSealsInFull,  ///< The same, but all that was acknowledged is waited for.
    kHeads,        ///< The headers of all later segments are read, and all that was acknowledged is
                   ///< waited for; the end is never reached by itself.
  };
  enum class End : uint8_t {
    kReached,  ///< All that was acknowledged before the call was visited, as far as marks tell.
    kUnknown,  ///< There may be more in a segment that this does not know, and nowhere else.
    /// What was visited since the last Reset may not be part of the log: it lies behind an end that
    /// another owner has recorded since, or that cannot be found out any more. What follows has not
    /// been visited; the caller forgets all that was, and resets this.
    kForeign,
  };
  /// Each record, in the order of the log; some may come twice, or were visited before.
  using Visitor = std::function<Status(SequenceNumber first, uint32_t count, const Slice& updates)>;
  /// Told when a segment is entered: see LogSegmentHeader::complete_through.
  using CompleteThrough = std::function<Status(SequenceNumber)>;

  /// Visits what is new. After a failure, too, what was visited counts. `Unavailable`: no replica
  /// of a required segment can be read, or the readable ones lack a record that is known to be
  /// there; `Corruption`: no replica has it; `NotSupported`: its version is newer. A failure of the
  /// visitors is the answer, and final.
  Status Advance(Look look, const Visitor& visit, const CompleteThrough& complete_through,
                 End* end);

  /// Whether the last look was kHeads and found a segment announced: the owner is about to leave
  /// the open one, perhaps without a mark, so marks tell nothing from here on.
  bool next_is_announced() const { return heads_.announced; }

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// A record of the open segment that not all replicas have.
  struct Doubt {
    uint64_t number = 0;  ///< Number of the segment.
    uint64_t offset = 0;
    uint64_t through = 0;  ///< Where the records end that were there with it, and stay as long.
    uint64_t since_nanos = 0;
    bool stands = false;  ///< The records that were visited end before it.
  };
  struct Position {
    uint64_t number = 0;  ///< Number of the segment. 0: none has been entered.
    uint64_t offset = 0;  ///< Offset of the next record.
    uint64_t end = 0;     ///< End of the records, if the successor has told; else 0.
    uint64_t window = 0;  ///< Bytes to read next.
    /// Where the end is known one replica will do, unless it turned out to lack something.
    bool all_replicas = false;
  };
  /// What is known of the open segment after its end was read.
  enum class Seen : uint8_t {
    kOpen,    ///< It was open; all of it has been visited.
    kMore,    ///< Read on.
    kSealed,  ///< It is sealed, or that cannot be told.
  };

  /// The headers of the segments after the one that is read, as far as any replica gives them.
  struct Heads {
    bool read = false;
    std::set<uint64_t> unread;                  ///< Segments of which no replica could be read.
    std::map<uint64_t, LogSegmentHeader> used;  ///< Headers of those that have one.
    bool announced = false;                     ///< One that is not in use yet.
  };

  /// For kHeads, the headers are read with it.
  Status ReadOn(Look look, const Visitor& visit, Seen* seen);
  /// Whether the record at the present offset, which some replicas lack, has been like that for
  /// long. It is at `offset` of `window`, which is one that has it.
  bool Stays(const Slice& window, uint64_t offset);
  /// Reads on until what all replicas have was visited; and for kHeads, what they may have had.
  Status ReadOpen(Look look, const Visitor& visit, Seen* seen);
  /// The records in `windows`, which are of the replicas that could be read. `*needed`: bytes that
  /// the next window should have at least, 0: the end of the records was found.
  Status Take(const std::vector<Slice>& windows, const Visitor& visit, uint64_t* needed);
  /// Appends the reads of heads_ to `reads`, and the number of each one's segment to `numbers`.
  void AskForHeads(std::vector<pool::PointRead>* reads, std::vector<uint64_t>* numbers) const;
  /// What came of them, in the same order. `NotSupported`: one is of a later version.
  Status TakeHeads(std::span<const pool::PointRead> reads, const std::vector<uint64_t>& numbers);
  /// `Unavailable` if no segment of heads_ is in use, but one of them might be.
  Status CheckHeads() const;
  /// A later segment tells where the records of the one that is read end.
  void LearnEnd(const LogSegmentHeader& later);
  enum class Next : uint8_t { kNone, kFound, kForeign };
  /// Enters the first segment of heads_ in use, or learns from it where the one that is read ends.
  /// All of them have to be readable for kHeads.
  Status FindNext(Look look, const CompleteThrough& complete_through, Next* next);
  /// `end`: see Position.
  Status Enter(uint64_t number, const LogSegmentHeader& header, uint64_t end,
               const CompleteThrough& complete_through);
  bool Readable(const ExtentAddr& copy) const;

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  std::map<uint64_t, LogSegment> segments_;
  Position at_;
  uint64_t foreign_through_ = 0;  ///< See OwnerChanged.
  uint64_t left_through_ = 0;     ///< See OwnerLeaves.
  /// Records were visited of which an owner after theirs may say that they are none.
  bool unproven_ = false;
  Heads heads_;
  Doubt doubt_;
  uint64_t stayed_ = 0;  ///< Records that counted since they stayed in doubt.
  uint64_t bytes_read_ = 0;
};

}  // namespace nacre
