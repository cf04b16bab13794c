#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nacre/status.h"
#include "table/format/placement.h"

namespace nacre::pool {

class ClientSession;
class PointSessions;

/// One read of a few bytes by the calling thread.
struct PointRead {
  RemoteAddr from;
  uint32_t length = 0;
  /// How many patiences it waits (pool/connect/pool_pace.h) before it may be left behind, as
  /// `TimedOut`: for callers that can have the bytes of other nodes. 0: as long as an operation may
  /// take.
  int patience = 0;
  const char* data = nullptr;  ///< Out: where the bytes landed, if `status` is OK.
  Status status;               ///< Out. `Unavailable` or `TimedOut`, naming the node.
};

/// What the calling thread reads records with: its own queue pairs, or, if the pool's are bounded,
/// those that it has the turn of as long as this lives. A thread has one at a time, on its stack.
class PointReader {
 public:
  static constexpr size_t kMaxReadsAtOnce = 128;
  static constexpr uint64_t kMaxStarted = 8;

  /// `sessions` outlives this: PoolClient::point_sessions().
  explicit PointReader(PointSessions* sessions);
  /// Awaits what was started and not finished, which is so if its caller throws.
  ~PointReader() {
    while (started_ > 0) [[unlikely]] FinishReads();
    if (turn_ != nullptr) [[unlikely]]
      EndTurn();
  }
  PointReader(const PointReader&) = delete;
  PointReader& operator=(const PointReader&) = delete;

  /// Performs all of `reads` with one doorbell a node, in flight together; returns when each has
  /// its status. The bytes land in registered memory and stay until the next call, and no longer
  /// than this object. No allocation, no lock, no shared write.
  void ReadAll(std::span<PointRead> reads);

  /// A pipeline of reads: work goes on between the start of some and their end. Begins `reads` (at
  /// most kMaxReadsAtOnce), which stay where they are until FinishReads has ended them; at most
  /// kMaxStarted calls are ahead of it.
  void StartReads(std::span<PointRead> reads);
  /// Waits until each of the reads that were started first, and are not finished, has its status.
  /// Their bytes stay until the next FinishReads or ReadAll; no ReadAll while reads are started.
  void FinishReads();

 private:
  friend class PointSessions;
  struct Turn;

  void EndTurn();
  void Fail(std::span<PointRead> reads) const;

  ClientSession* session_ = nullptr;  ///< Null: there is none, for the reason below.
  Turn* turn_ = nullptr;              ///< Null: the session is the thread's own.
  uint64_t started_ = 0;              ///< Calls of StartReads that FinishReads has not ended.
  Status failure_;
};

}  // namespace nacre::pool
