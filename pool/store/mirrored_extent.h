#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "rdma/transport.h"
#include "rdma/wait.h"
#include "table/format/placement.h"
#include "util/clock.h"

namespace nacre::pool {

/// Writes the same bytes into one extent on each of several nodes: logs and manifests, which are on
/// their way to all replicas at once and there after one round trip.
///
/// Invariant: the writes of one replica take place in the order of their tickets, so what is behind
/// a ticket that Poll has answered is whole on every replica.
///
/// Failures: the first one ends all. Nothing is written after it, and nothing is under way any
/// more: the buffers of all writes are free. A replica fails when its node does not answer, or is
/// known to be gone (`Unavailable`), or refuses the write since this client has not got the key any
/// more (`InvalidArgument`). The message names the nodes. One fails, too, whose node becomes slow
/// (`Unavailable`; pool/connect/pool_pace.h) while others have the write: so a caller that can go
/// on elsewhere does not wait for it. A node that was slow when it was chosen was taken knowingly,
/// and is waited for.
///
/// Thread safety: none; used by one thread at a time.
class MirroredExtent {
 public:
  static constexpr size_t kMaxReplicas = 16;

  /// The nodes were chosen just now.
  static constexpr uint64_t kChosenNow = UINT64_MAX;

  /// Connects to the nodes of `replicas`, which are of equal lengths and leased to this client.
  /// `Unavailable` naming a node that cannot be reached, or has become slow since
  /// PoolPace::changes() was `chosen`, when the nodes were chosen. `fabric` outlives the extent.
  static Status Open(Fabric* fabric, std::vector<ExtentAddr> replicas,
                     std::unique_ptr<MirroredExtent>* extent, uint64_t chosen = kChosenNow);
  /// The same with the connections of `lane`, if it is not null, or new ones. `*lane` is null
  /// afterwards if that succeeds.
  static Status Open(Fabric* fabric, std::vector<ExtentAddr> replicas, std::unique_ptr<Lane>* lane,
                     std::unique_ptr<MirroredExtent>* extent, uint64_t chosen = kChosenNow);
  /// Waits for nothing: what is under way is given up, and its buffers are free afterwards.
  ~MirroredExtent();
  MirroredExtent(const MirroredExtent&) = delete;
  MirroredExtent& operator=(const MirroredExtent&) = delete;

  /// Posts a write of `from` (of registered memory: see AllocateBuffer) at `offset` to each
  /// replica, with one doorbell a node. The bytes stay as they are until the write has ended; to
  /// memory that this process can store to it has ended when this returns.
  /// `*ticket` is one more than that of the write before; the first is 1.
  Status Write(uint64_t offset, const rdma::LocalBuffer& from, uint64_t* ticket);
  /// Takes completions. The highest ticket up to which every replica has all writes.
  uint64_t Poll();
  /// The same as far as is known without taking any.
  uint64_t Known() const;
  /// Waits until Poll would answer `ticket` or more. Replicas that are not there by the deadline
  /// have failed.
  Status Await(uint64_t ticket, Deadline deadline);

  /// From here on a replica that is late does not fail (`waits`), or does.
  void WaitForLate(bool waits) { waits_for_late_ = waits; }

  const Status& failure() const { return failure_; }
  /// Whether a node has become slow since this was opened, and is.
  bool BecameSlow() const;
  /// The nodes that failed.
  std::vector<NodeId> failed_nodes() const;
  uint64_t length() const { return length_; }
  /// The connections, for the next extent; null after a failure or while writes are under way.
  /// Nothing more can be written here.
  std::unique_ptr<Lane> TakeLane();

 private:
  struct Replica {
    ExtentAddr extent;
    NodeLink* link = nullptr;
    rdma::QueuePair* queue_pair = nullptr;
    uint64_t done = 0;         ///< The ticket up to which all writes have ended.
    uint32_t outstanding = 0;  ///< Requests.
    bool failed = false;
    bool taken_slow = false;  ///< Its node was slow already.
    bool timed = false;       ///< The time of the write that is awaited was noted.
    /// Bytes [from, to) of the extent are those from `start` on, for the transport.
    uint64_t from = 0;
    uint64_t to = 0;
    rdma::RemoteBuffer start;
  };
  /// An id is ticket, then whether this is the last request of the ticket, then the replica.
  static constexpr int kReplicaBits = 4;
  static_assert(size_t{1} << kReplicaBits == kMaxReplicas);

  MirroredExtent(Fabric* fabric, std::unique_ptr<Lane> lane, uint64_t length);

  Status Post(size_t number, uint64_t offset, const rdma::LocalBuffer& from);
  /// What lies in one piece of the target's memory. `last`: of its ticket; `more`: see kMore.
  Status PostPart(size_t number, uint64_t offset, const rdma::LocalBuffer& part, bool last,
                  bool more);
  Status Locate(Replica* replica, uint64_t offset) const;
  Status AwaitRoom(Replica* replica);
  void TakeCompletions();
  Status FailSlow(uint64_t ticket, bool only_dead);
  /// Those whose nodes count as slow since they lack the write, if others have it.
  Status FailLate(uint64_t ticket);
  /// Notes how long the replicas took that have the write now.
  void NoteTimes(uint64_t ticket, uint64_t start_nanos);
  Status Fail(Replica* replica, const Status& why);
  void EndAfterFailure();

  Fabric* const fabric_;
  std::unique_ptr<Lane> lane_;
  const uint64_t length_;
  std::vector<Replica> replicas_;
  uint64_t last_ticket_ = 0;
  rdma::AdaptiveSpin spin_;
  Status failure_;
  bool late_ = false;  ///< Those that failed are slow, and nothing worse.
  bool waits_for_late_ = false;
};

/// Registered memory of at least `bytes`, as the source of writes to any node. `NoSpace` if the
/// machine has not got it. Outlives what uses it.
Status AllocateBuffer(Fabric* fabric, uint64_t bytes, std::unique_ptr<rdma::MemoryRegion>* buffer);

}  // namespace nacre::pool
