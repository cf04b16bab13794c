#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include "pool/connect/node_link.h"
#include "pool/connect/node_pace.h"
#include "util/mutex.h"

namespace nacre::pool {

struct Fabric;

/// Judges which nodes of a pool are slow, by how long they let this client wait beside what the
/// others of them take. A node that pauses keeps its connections and its memory: nothing is wrong
/// with it but that waiting for it takes long. So callers that have a choice go on without it, and
/// what is there stays a part of the database.
///
/// A wait is *late* when it exceeds the patience, which follows from what operations of that kind
/// take at present: four times the time within which 99 of 100 end on the node in the middle, and
/// never less than four times that of one in two, so that a pool in which everything takes long is
/// not taken for one of slow nodes.
///
/// Hysteresis: a slow node is on probation for 50 ms, and returns when reads and requests of its
/// own are not late after that. Each time that it becomes slow again soon, its probation is twice
/// as long, up to ten seconds. It is asked meanwhile, too: when another node is late and no more
/// may be slow, one on probation that answers well takes that one's place, a few times a second at
/// most. One that answers nothing for three seconds is down (node_monitor.h).
///
/// Invariants: less than half of the nodes that are alive are slow at a time. Reads that were asked
/// of others since they were late are at most the share of all reads that the options say, once a
/// first few have been, and what was under way on nodes that became slow.
///
/// Thread safety: all methods may be called from many threads at once.
class PoolPace {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// `fabric` outlives this.
  explicit PoolPace(Fabric* fabric) : fabric_(fabric) {}

  /// How long to wait for one operation before it is late. Without a limit of the patience, as long
  /// as any operation may take.
  nanoseconds Patience(NodeOperation operation);
  /// A thread looks so often after the patience has ended before it takes a read for late: it, or
  /// the one that receives, may have been away itself.
  static constexpr int kLateLooks = 3;
  /// A read that is late at all nodes that have its bytes is asked of them again, and waits for
  /// twice as many patiences each time; after so many, as long as an operation may take.
  static constexpr int kLongPatience = 64;
  static constexpr int MorePatience(int patience) {
    return patience < kLongPatience ? 2 * patience : 0;
  }

  /// A wait for `link` was late. Whether the node counts as slow from here on; false: too many
  /// others do.
  bool NoteLate(NodeLink* link) EXCLUDES(mutex_);
  /// A read is late that these nodes have not answered. Whether others may be asked: all of these
  /// count as slow from here on, or one more read may be hedged. `again`: so it was at the last
  /// look, and is told once.
  bool MayHedge(std::span<NodeLink* const> late, bool again) EXCLUDES(mutex_);
  uint64_t hedges() const { return hedges_.load(std::memory_order_relaxed); }
  /// A job was given up since its node became slow.
  void NoteJobLeft() { jobs_left_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t jobs_left() const { return jobs_left_.load(std::memory_order_relaxed); }
  /// Whether the node is in maintenance (pool/node_maintenance.h): it is done without where others
  /// serve, as if it were slow, but is neither probed nor counted as slow.
  void SetLeaves(NodeLink* link, bool leaves) EXCLUDES(mutex_);
  /// Grows when a node becomes slow, or no longer is.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // ---- By the monitor -----------------------------------------------------------------------

  /// When a slow node is to be asked next whether it is slow still.
  uint64_t ProbeAt(const NodeLink& link) const EXCLUDES(mutex_);
  /// It has answered a probe, whose longest operations took so long.
  void NoteProbe(NodeLink* link, nanoseconds read, nanoseconds request) EXCLUDES(mutex_);
  /// It was reached anew.
  void Forget(NodeLink* link) EXCLUDES(mutex_);

 private:
  /// Whether one more read may be asked of others than a node that does not count as slow.
  bool TakeHedge();
  /// Whether the late node counts as slow from here on.
  bool MakeSlow(NodeLink* link) EXCLUDES(mutex_);
  /// Whether waits are ever late: the patience has a limit.
  bool active() const;
  /// Adapts patience and hedges to what was noted since the last time.
  void Refresh(uint64_t now);
  nanoseconds PatienceOf(NodeOperation operation) const;
  /// Whether reads of the node's memory load it, so that they are no operations.
  bool IsLoaded(const NodeLink& link) const;
  void SetSlow(NodeLink* link, bool slow) REQUIRES(mutex_);
  /// Whether one more may be slow.
  bool MayBecomeSlow() const REQUIRES(mutex_);
  /// Ends the probation of a node that answers well, so that another one may be slow.
  bool EndAProbation(uint64_t now) REQUIRES(mutex_);
  void Return(NodeLink* link, uint64_t now) REQUIRES(mutex_);

  Fabric* const fabric_;
  std::array<std::atomic<int64_t>, kNodeOperations> patience_nanos_{};  ///< 0: not known yet.
  std::atomic<uint64_t> refresh_at_nanos_{0};
  std::atomic<uint64_t> age_at_nanos_{0};
  std::atomic<int64_t> hedges_left_{kFirstHedges};  ///< Below 0 after those of slow nodes.
  std::atomic<uint64_t> hedge_percents_{0};         ///< Hundredths of the next one. Relaxed.
  std::atomic<uint64_t> hedges_{0};
  std::atomic<uint64_t> jobs_left_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> reads_seen_{0};  ///< By Refresh. Relaxed, as what it counts.
  mutable Mutex mutex_;
  int early_ends_ GUARDED_BY(mutex_) = kEarlyEnds;    ///< Probations that may end early now.
  uint64_t early_ends_since_ GUARDED_BY(mutex_) = 0;  ///< What has come to these is counted from.

  static constexpr int64_t kFirstHedges = 64;
  static constexpr int kEarlyEnds = 4;
};

}  // namespace nacre::pool
