#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/connection_pool.h"
#include "pool/store/write_keys.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// Writes to several nodes, in flight together until they are awaited. They belong to flights, each
/// of which has a buffer that is free again when its writes have ended.
///
/// Failures: the first one ends all. Nothing is written after it, and nothing is under way any
/// more. `Unavailable` or `TimedOut` naming the nodes; `InvalidArgument` where this client, or the
/// job, has no key to write. `TimedOut`, too, when a node becomes slow (pool/connect/pool_pace.h)
/// while writes to others end; one that was slow at its first write is waited for.
///
/// Thread safety: none.
class ExtentWrites {
 public:
  /// `fabric` and `connections` outlive this. `lane`: what to begin with; null: one is taken for
  /// the first write. `keys`: see TableStore::NewWriter; null: the client's own.
  ExtentWrites(Fabric* fabric, ConnectionPool* connections, size_t flights,
               std::unique_ptr<Lane> lane = nullptr, const WriteKeys* keys = nullptr);
  /// Waits for nothing: what is on its way is given up.
  ~ExtentWrites();
  ExtentWrites(const ExtentWrites&) = delete;
  ExtentWrites& operator=(const ExtentWrites&) = delete;

  /// Has `from` written to `offset` of the node's region. The bytes stay as they are until the
  /// flight's writes have ended. Waits only if as many are under way as may be.
  Status WriteTo(NodeId node, uint64_t offset, rdma::LocalBuffer from, size_t flight);
  /// The flight's buffer of at least `bytes`, always as many, once its writes have ended.
  Status Buffered(size_t flight, size_t bytes, Buffer** buffer);
  Status AwaitFlight(size_t flight) { return AwaitBelow(&flights_[flight].outstanding, 1); }
  Status AwaitAll() { return AwaitBelow(&outstanding_, 1); }
  /// Whether the flight, or any, has writes whose end was not seen yet.
  bool IsUnderWay(size_t flight) const { return flights_[flight].outstanding > 0; }
  bool AnyUnderWay() const { return outstanding_ > 0; }
  /// Takes what has ended.
  void Poll();

  /// No more can be written. Nothing will be written once this returns. Returns the first failure.
  Status Fail(Status why);
  const Status& failure() const { return failure_; }

 private:
  struct Target {
    NodeLink* link = nullptr;
    int outstanding = 0;
    bool taken_slow = false;  ///< It was slow when it was written to first.
    bool moved = true;  ///< A write has ended, or the first was posted, since a waiter looked.
    uint64_t moved_nanos = 0;  ///< When a waiter last saw that.
  };
  struct Flight {
    Buffer buffer;
    int outstanding = 0;
  };
  /// An id is the flight, then the target.
  static constexpr uint64_t kTargetBits = 16;

  Status FindTarget(NodeId node, size_t* target);
  bool Translate(const NodeLink& link, uint64_t offset, rdma::RemoteBuffer* to,
                 uint64_t* contiguous) const;
  Status AwaitBelow(const int* outstanding, int limit);
  /// Fails for nodes that are slow, as told above.
  Status FailLate(uint64_t now);

  Fabric* const fabric_;
  ConnectionPool* const connections_;
  const WriteKeys* const keys_;
  std::vector<Target> targets_;  ///< Nodes that were written to, as few as a file or table has.
  std::vector<Flight> flights_;
  std::unique_ptr<Lane> lane_;  ///< Ends before the buffers.
  int outstanding_ = 0;         ///< Counted over all targets.
  Status failure_;
  bool late_ = false;  ///< The failure is that nodes are slow, and nothing worse.
};

}  // namespace nacre::pool
