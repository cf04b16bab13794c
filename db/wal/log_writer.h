#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "db/wal/log_ring.h"
#include "db/wal/log_seal.h"
#include "db/wal/log_segments.h"
#include "db/wal/log_space.h"
#include "db/wal/log_supply.h"
#include "nacre/logger.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/format/internal_key.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// Options of a log's writer.
struct LogWriterOptions {
  pool::PoolClient* client = nullptr;
  Clock* clock = nullptr;
  uint64_t database_id = 0;
  uint64_t segment_bytes = 4 << 20;
  uint64_t first_segment_bytes = UINT64_MAX;  ///< At most those of the others.
  size_t ring_bytes = kLogRingBytes;          ///< The most bytes of the ring; a power of two.
  uint64_t next_number = 1;  ///< Above all numbers that any segment of the database had.
  /// The end of an earlier log's replay (LogReadResult), if its segments are still recorded: what
  /// lies behind it is void from now on.
  uint64_t previous_number = 0;
  uint64_t previous_bytes = 0;
  /// A sequence up to which each record has been awaited, or was never appended: for the headers of
  /// segments (see LogSegmentHeader). Called by any thread that uses the log. None if null.
  std::function<SequenceNumber()> complete_through{};
  /// Payloads are encrypted (db/wal/log_encryption.h), which headers then tell programs that know
  /// nothing of it.
  bool encrypted = false;
  Logger* log = nullptr;
};

/// What a log has done since it was opened.
struct LogWriterStats {
  uint64_t bytes_appended = 0;    ///< Bytes of records, as they lie in segments.
  uint64_t writes_posted = 0;     ///< Each of them to all replicas.
  uint64_t segments = 0;          ///< Opened.
  uint64_t ensemble_changes = 0;  ///< Segments that ended since a node failed or was slow.
};

/// The write-ahead log of a database, on memory nodes. Many threads append; one at a time is the
/// leader, which writes what all have finished, with one write to each replica, while the others
/// lay out the next group (group commit). The thread that starts a group need not await it: it is
/// in flight while its writers do other work, and the next leader awaits it.
///
/// What is acknowledged is read back (log_reader.h):
///   - a position is acknowledged once every replica of the open segment has all bytes up to it. A
///     group is awaited before the next one is posted, so one is in flight at most, and none is
///     when a segment ends, unless the group's failure ends it;
///   - a segment ends at its last acknowledged byte, be it full or a replica lost, and the header
///     of the next one says where. That header is posted before any record there, to the same
///     replicas in order, so a reader of an acknowledged record there can read it too. No write to
///     an ensemble that has failed is needed;
///   - a follower may have shown what one replica had of a group that failed, so that group is
///     always in a segment that counts: the next one is announced by a header that hides nothing,
///     then comes the group, then the header that hides the old one, to the same replicas in order;
///   - before a record is written to the next segment, a segment is marked as sealed in the
///     replicas that can be reached, or a pause is made after the announcement (db/wal/log_seal.h).
///     Only followers rely on it;
///   - what lies behind that byte was not acknowledged: the ring still has it, and it goes to the
///     next segment. What only some replicas have of the last segment was not acknowledged either.
///
/// Failures: when a replica fails, writers wait for the next segment only, which is ready as a
/// rule. When there is none (`NoSpace`, `Unavailable`), Await and Append answer the failure; each
/// call tries again, once. What the ring has taken is written as soon as that works, though its
/// Await may have answered a failure. `Fenced` ends the log, and so does an exception on the
/// leader's way.
///
/// Thread safety: all methods may be called from many threads at once, by callers that hold nothing
/// that LogSpace::NewSegment needs. A record that fits into the ring takes no lock and no
/// allocation.
class LogWriter {
 public:
  /// The first segment is there, with its header, when this returns. `space` outlives the log.
  static Status Open(const LogWriterOptions& options, LogSpace* space,
                     std::unique_ptr<LogWriter>* writer);
  /// Waits for nothing that was not awaited.
  ~LogWriter();

  /// Takes a record; the concatenated `parts` are its payload: `count` >= 1 updates as in a
  /// WriteBatch. `*position` is what Await takes. `generation` is that of the MemTable that gets
  /// the updates. Waits while the ring is full. After a failure nothing was taken.
  Status Append(uint64_t generation, SequenceNumber first, uint32_t count,
                std::span<const Slice> parts, uint64_t* position);
  /// Posts what was appended, unless there is a leader, a group is in flight already, or it would
  /// have to wait for a segment: the Await does that then, and meets any failure. It never waits.
  /// An Await must follow, as nothing else completes a group in flight.
  void Start() EXCLUDES(mutex_);
  /// Whether every replica has everything up to `position`, as far as the log has learnt.
  bool Has(uint64_t position) const { return ring_->released() >= position; }
  /// Returns once every replica has everything up to `position`.
  Status Await(uint64_t position);
  /// The same for everything that was appended before.
  Status Sync() { return Await(ring_->reserved()); }
  /// Begins a segment whose header tells of LogWriterOptions::complete_through as it is now, or
  /// later.
  Status StartSegment() EXCLUDES(mutex_);
  /// The same, and the segment is short, as those behind it are at first: the next owner, which
  /// reads all of the last one in all replicas, has little to read. Writers hardly wait.
  Status StartShortSegment() EXCLUDES(mutex_);

  /// Segments that have records of generations from `first` to `last`, all of which were awaited,
  /// in order. They stay until TakeUnneeded gives them out.
  std::vector<WrittenSegment> SegmentsOf(uint64_t first, uint64_t last) EXCLUDES(mutex_);

  /// Hands over segments all of whose records are of generations up to `flushed`, with those before
  /// them, in order, for the caller to drop. So are segments that were never used. The open one is
  /// among them if it qualifies and is more than half full, or has records and `close_open` is set.
  std::vector<LogSegment> TakeUnneeded(uint64_t flushed, bool close_open = false) EXCLUDES(mutex_);
  /// Whether TakeUnneeded should be called, though nothing was flushed: see LogSupply.
  bool HasManyUnused() const { return supply_->HasManyUnused(); }

  /// Ends the open segment if a replica of it is on a node for which `leave` answers true; writers
  /// go on with the next. Returns whether any segment has a replica there, which is so until
  /// TakeUnneeded has given it out, for which its records must be in tables.
  bool LeaveNodes(const std::function<bool(NodeId)>& leave) EXCLUDES(mutex_);

  /// Calls `body` with segment `number` and its acknowledged bytes, with the segment sealed and its
  /// memory kept meanwhile: only `body` writes there. Ends the segment first if it is the open one.
  /// False, without the call, if the log has no such segment with records any more. TakeUnneeded,
  /// called meanwhile, leaves the segment and those behind it for its next call. One thread at a
  /// time may call this.
  bool WithSealed(uint64_t number, const std::function<void(const WrittenSegment&)>& body)
      EXCLUDES(mutex_);

  /// Ends writing; later calls answer `ShutdownInProgress`. Waits for a NewSegment in progress, and
  /// for the group in flight. After this TakeUnneeded gives the open segment out like the others.
  void Close() EXCLUDES(mutex_);

  /// OK, or why nothing can be written at the moment.
  Status status() const EXCLUDES(mutex_);
  LogWriterStats stats() const;

 private:
  /// Held by the leader.
  class CAPABILITY("leadership") Leadership {
   public:
    bool TryTake() TRY_ACQUIRE(true) {
      return !taken_.load(std::memory_order_relaxed) &&
             !taken_.exchange(true, std::memory_order_acquire);
    }
    void Give() RELEASE() { taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> taken_{false};
  };
  /// Gives the lead, which the caller has taken, back at its end: whatever is thrown until then.
  class SCOPED_CAPABILITY LeadScope {
   public:
    explicit LeadScope(Leadership* lead) REQUIRES(lead) : lead_(lead) {}
    ~LeadScope() RELEASE() { lead_->Give(); }
    LeadScope(const LeadScope&) = delete;
    LeadScope& operator=(const LeadScope&) = delete;

   private:
    Leadership* const lead_;
  };
  /// The range of generations of some records.
  struct Generations {
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;

    void Add(uint64_t generation) {
      lowest = std::min(lowest, generation);
      highest = std::max(highest, generation);
    }
    void Add(const Generations& others) {
      lowest = std::min(lowest, others.lowest);
      highest = std::max(highest, others.highest);
    }
    bool Touch(uint64_t first, uint64_t last) const { return lowest <= last && highest >= first; }
  };
  /// Records that were posted to the open segment and not awaited yet; the ring has them still.
  struct Group {
    uint64_t bytes = 0;  ///< Bytes in the segment. 0: there is none.
    Generations generations;
    LogRing::Entry last;  ///< Its last record, or its only one, which is large.
  };
  struct Current {
    LogSegment segment;
    std::unique_ptr<pool::MirroredExtent> extent;  ///< Null: no segment is open.
    uint32_t stamp = 0;
    uint64_t offset = 0;          ///< The first byte that is not acknowledged.
    Generations generations;      ///< Generations of acknowledged records.
    Group posted;                 ///< The group at `offset`.
    bool after_unmarked = false;  ///< The one before it that has records is not marked.
    bool has_records() const { return offset > kLogHeaderBytes; }
  };
  struct Sealed {
    LogSegment segment;
    uint64_t bytes = 0;
    Generations generations;
  };

  LogWriter(const LogWriterOptions& options, LogSpace* space);

  void TakeLead() ACQUIRE(lead_);
  /// Room in the ring; waits for it.
  Status Reserve(uint64_t bytes, uint64_t* at);
  Status AppendLarge(uint64_t generation, SequenceNumber first, uint32_t count,
                     std::span<const Slice> parts, uint64_t payload, uint64_t* position);
  /// OK if the log works; tries, once, to have it work again.
  Status CheckWorking();

  /// Awaits the group that is on its way, else writes one of finished records, if there are any, to
  /// as many segments as fail.
  Status Lead() REQUIRES(lead_) EXCLUDES(mutex_);
  /// Posts the finished records from `first` on, as many as the open segment, which has room for
  /// that one, can take. Ends the segment if that fails.
  Status Post(const LogRing::Entry& first) REQUIRES(lead_) EXCLUDES(mutex_);
  Status PostRecords() REQUIRES(lead_);
  Status PostLarge(const LogRing::Entry& entry) REQUIRES(lead_);
  Status Write(uint64_t offset, const rdma::LocalBuffer& bytes) REQUIRES(lead_);
  Status AwaitWrites() REQUIRES(lead_);
  /// Returns once no group is on its way. Ends the segment if that failed; the ring has its records
  /// for the next one.
  Status AwaitPosted() REQUIRES(lead_) EXCLUDES(mutex_);
  /// Every replica has the group that is on its way.
  void AcknowledgePosted() REQUIRES(lead_);
  /// Makes sure that a segment with room for `bytes` of records is open.
  Status OpenFor(uint64_t bytes) REQUIRES(lead_) EXCLUDES(mutex_);
  /// Brings the header of the open segment to all replicas, with what failed before in front of it.
  Status BeginSegment() REQUIRES(lead_);
  /// Posts it.
  Status WriteHeader(bool announced) REQUIRES(lead_);
  /// Posts the group that failed with the segment before, if one did, to the one that was opened.
  Status PostFailed() REQUIRES(lead_);
  /// Ends the open segment at its last acknowledged byte.
  void Seal() REQUIRES(lead_) EXCLUDES(mutex_);
  /// Marks the replicas of the open segment, of which nothing is on its way.
  void MarkSealed() REQUIRES(lead_);
  void SealFailed() REQUIRES(lead_) EXCLUDES(mutex_);
  /// Makes status() answer `s` from now on; also returns it.
  Status Note(Status s) EXCLUDES(mutex_);
  /// The leader's work threw, for want of memory as a rule, and may have left a segment without its
  /// header or a link: nothing is written any more, and the next owner finds what there is.
  Status Break(Status s) REQUIRES(lead_) EXCLUDES(mutex_);

  const LogWriterOptions options_;
  pool::BufferPool large_buffers_;  ///< For large records. Outlives the ring.
  std::unique_ptr<LogRing> ring_;
  std::unique_ptr<rdma::MemoryRegion> headers_;  ///< Two: an announcement and what follows it.
  std::unique_ptr<LogSupply> supply_;
  std::unique_ptr<LogSealer> sealer_;

  alignas(64) Leadership lead_;
  Current current_ GUARDED_BY(lead_);
  uint64_t last_ticket_ GUARDED_BY(lead_) = 0;
  uint64_t previous_number_ GUARDED_BY(lead_);
  uint64_t previous_bytes_ GUARDED_BY(lead_);
  /// Bytes of the group that failed, whose records the ring has; 0: the last one did not.
  uint64_t failed_bytes_ GUARDED_BY(lead_) = 0;
  /// The last segment that has records was left without a mark, and none with records followed.
  bool unmarked_ GUARDED_BY(lead_) = false;

  /// Written by the leader, read by anyone.
  std::atomic<uint64_t> bytes_appended_{0};
  std::atomic<uint64_t> writes_posted_{0};
  std::atomic<uint64_t> segments_{0};
  std::atomic<uint64_t> ensemble_changes_{0};

  /// Whether status_ is a failure, and whether it is there for good.
  enum class State : uint8_t { kWorking, kFailing, kEnded };
  alignas(64) std::atomic<State> state_{State::kWorking};  ///< Looked at by each Append.
  mutable Mutex mutex_;
  Status status_ GUARDED_BY(mutex_);
  std::vector<Sealed> sealed_ GUARDED_BY(mutex_);      ///< These are in order.
  std::vector<LogSegment> unused_ GUARDED_BY(mutex_);  ///< Failed before any record was there.
  /// The segment that WithSealed keeps; 0: none.
  uint64_t kept_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre
