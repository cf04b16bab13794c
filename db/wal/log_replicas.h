#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/replica_read.h"
#include "table/format/log_format.h"
#include "util/memory/arena.h"

namespace nacre {

/// The nodes that hold the segment, for messages: "shm:/run/n0.sock, shm:/run/n2.sock".
std::string LogSegmentNodes(pool::PoolClient* client, const LogSegment& segment);

/// What the first bytes of a segment's replicas say of it.
struct LogSegmentHead {
  enum class Kind : char {
    kUsed,
    kUnused,   ///< Nothing was ever written there as this segment.
    kDamaged,  ///< There are records, but no replica has the header.
  };
  Kind kind = Kind::kUnused;
  LogSegmentHeader header;  ///< Set if the replica is used.
  bool healed = false;      ///< A replica that has records lacks the header.
};

/// `Unavailable` naming the nodes if no replica can be read, `NotSupported` for a newer format.
/// Replicas that cannot be read are told of in `notes`.
Status ReadLogSegmentHead(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                          const LogSegment& segment, LogSegmentHead* head,
                          std::vector<std::string>* notes);

/// The replicas of one segment, each read as far as it is asked for, and a little ahead. Offsets
/// that are asked for only grow.
///
/// Thread safety: none.
class LogReplicas {
 public:
  /// `kept`: where all memory that is read into comes from; null: it goes with this.
  LogReplicas(pool::PoolClient* client, ConcurrentArena* kept) : client_(client), kept_(kept) {}

  /// Bytes from `from` to `end` of `segment` are of interest. `reader` and `segment` outlive this.
  void Start(pool::PoolReader* reader, const LogSegment* segment, uint64_t from, uint64_t end);
  size_t count() const { return segment_->copies.size(); }
  /// The replica's bytes from `offset` to the end, of which at least the first `n` (or as many as
  /// there are) can be looked at; none if the replica cannot be read.
  Slice From(size_t number, uint64_t offset, size_t n) {
    Replica& replica = replicas_[number];
    if (replica.state == Replica::State::kRead && HasFirst(replica, offset, n)) [[likely]]
      return Slice(replica.bytes + (offset - replica.from), end_ - offset);
    return Fetch(number, offset, n);
  }
  /// Whether a record of the segment with this stamp may begin at `offset` or behind it, at a
  /// multiple of the alignment from there. Does not keep what it reads for that.
  bool MayHoldRecord(size_t number, uint64_t offset, uint32_t stamp);

  /// `Unavailable` naming the nodes if no replica can be read any more.
  Status CheckReadable() const;
  /// Names the replicas that cannot be read.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Replica {
    enum class State : char { kUnread, kRead, kLost } state = State::kUnread;
    uint64_t from = 0;
    std::unique_ptr<char[]> own;  ///< Used if nothing is kept.
    char* bytes = nullptr;
    std::unique_ptr<pool::ReplicaRead> read;  ///< Ends before its memory.
  };

  bool HasFirst(const Replica& replica, uint64_t offset, size_t n) const {
    return replica.read->arrived() >=
           std::min<uint64_t>(offset - replica.from + n, end_ - replica.from);
  }
  Slice Fetch(size_t number, uint64_t offset, size_t n);
  Status Begin(size_t number, uint64_t from);
  void Lose(size_t number, const Status& why);

  pool::PoolClient* const client_;
  ConcurrentArena* const kept_;
  pool::PoolReader* reader_ = nullptr;
  const LogSegment* segment_ = nullptr;
  uint64_t end_ = 0;
  std::vector<std::string> notes_;
  /// Failure of the replica that was lost last.
  Status failure_ = Status::Unavailable("it has none");
  std::vector<Replica> replicas_;
};

}  // namespace nacre
