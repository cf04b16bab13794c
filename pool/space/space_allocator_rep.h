#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include "pool/space/free_ranges.h"
#include "pool/space/space_allocator.h"
#include "pool/wire/node_stats.h"
#include "util/mutex.h"

namespace nacre::pool {

/// What a SpaceAllocator knows of its nodes: the slabs that are leased there, and what is free in
/// them. Slabs are leased and returned without the mutex.
///
/// Thread safety: all methods may be called from many threads at once.
class SpaceAllocator::Rep {
 public:
  Rep(PoolClient* client, uint64_t database_id, uint64_t slab_bytes, uint64_t chunk_size)
      : client_(client),
        database_id_(database_id),
        slab_bytes_(slab_bytes),
        chunk_size_(chunk_size) {}
  ~Rep();

  Status Reserve(const Redundancy& redundancy, uint64_t table_bytes, NodeId preferred,
                 uint64_t chunk_size, Placement* placement) EXCLUDES(mutex_);
  /// `*held`: of what it gives back, that which must not be used again yet.
  void Trim(Placement* placement, uint64_t table_bytes, std::vector<ExtentAddr>* held)
      EXCLUDES(mutex_);
  Status ReserveFragments(const Placement& placement, uint64_t table_bytes, FragmentSet wanted,
                          std::vector<ExtentAddr>* extents) EXCLUDES(mutex_);
  void Free(const ExtentAddr& extent) EXCLUDES(mutex_);
  void End() EXCLUDES(mutex_);
  void SettleOn(int nodes) EXCLUDES(mutex_);
  HomeNodes Home() const EXCLUDES(mutex_);
  void SetDraining(std::vector<NodeId> nodes) EXCLUDES(mutex_);
  Status Restore(NodeId node, const std::vector<uint64_t>& slab_offsets,
                 const std::vector<ExtentAddr>& live) EXCLUDES(mutex_);
  std::vector<uint64_t> Slabs(NodeId node) EXCLUDES(mutex_);
  Status ReturnFreeSlabs() EXCLUDES(mutex_);
  Status MeasureFree(NodeId node, uint64_t piece, FreeSpace* free) EXCLUDES(mutex_);
  SpaceUsage Usage(NodeId node) const EXCLUDES(mutex_);
  uint64_t chunk_size() const { return chunk_size_; }

 private:
  struct Node {
    std::set<uint64_t> slabs;  ///< Offsets.
    FreeRanges free;           ///< Within the slabs.
    uint64_t used_bytes = 0;
    /// Slabs whose return was not answered, by request: those of one request the node took back
    /// together, or not at all. It is asked again.
    std::vector<std::vector<uint64_t>> unanswered;
    /// A lease or a return is in progress; the next one waits, so that returned slabs are not
    /// missed and one need never leases twice. Counting free space waits as well.
    bool exchanging = false;
    NodeStats measured;  ///< What the node said last; no slabs: nothing yet.
    bool draining = false;
    bool lease_scheduled = false;
    bool return_scheduled = false;
  };

  /// One for each node, made when it is first asked for. References stay valid.
  class PerNode {
   public:
    Node& operator[](size_t node) {
      while (node >= nodes_.size()) nodes_.emplace_back();
      return nodes_[node];
    }
    auto begin() { return nodes_.begin(); }
    auto end() { return nodes_.end(); }

   private:
    std::deque<Node> nodes_;
  };

  /// Slabs that would make the free end of a slab before them as large as is needed.
  struct Growth {
    uint64_t at = 0;
    uint64_t slabs = 0;  ///< 0: no slab has a free end.
  };

  uint64_t SlabsFor(uint64_t bytes) const { return (bytes + slab_bytes_ - 1) / slab_bytes_; }
  bool MustLeave(NodeId node) const REQUIRES(mutex_) {
    return !client_->alive(node) || nodes_[node].draining;
  }
  /// A database with little data has no slabs ahead of need: there may be many such.
  bool IsSmall() const REQUIRES(mutex_);
  /// Nodes in the order in which they are tried.
  std::vector<NodeId> Candidates(NodeId preferred, uint64_t bytes) const REQUIRES(mutex_);
  /// How long to wait for a node that is to lease slabs: as long as a prompt one takes, or as a
  /// request may.
  enum class Wait : uint8_t { kInTime, kLong };
  /// Takes `bytes` of the node, leasing slabs if need be, and more ahead of need. `Unavailable`
  /// when the node is lost, `NoSpace` when it is full, `TimedOut` when it is late.
  Status Take(NodeId node, uint64_t bytes, Wait wait, ExtentAddr* extent) REQUIRES(mutex_);
  bool Carve(NodeId node, uint64_t bytes, ExtentAddr* extent) REQUIRES(mutex_);
  /// Nodes are in the order of their use, which is nearly the same for each table: reads shall
  /// spread over all of them, and parity has none.
  void Turn(Placement* placement) REQUIRES(mutex_);
  void Release(const ExtentAddr& extent) REQUIRES(mutex_);
  /// Makes `bytes` fit on `node`: leases what is missing, giving the mutex up meanwhile. With
  /// `extend`, that may be what is missing behind a free end, which another caller may have taken
  /// when this returns OK.
  Status MakeRoom(NodeId node, uint64_t bytes, bool extend) REQUIRES(mutex_);
  /// As MakeRoom, but waits for no node that is slow: `TimedOut`. What it leases then serves later.
  Status MakeRoomInTime(NodeId node, uint64_t bytes, bool extend) REQUIRES(mutex_);
  Growth FindGrowth(const Node& node, uint64_t bytes) const;
  void LeaseAhead(NodeId node) REQUIRES(mutex_);
  /// Wholly free slabs beyond the spare ones to keep, highest first.
  std::vector<uint64_t> Surplus(const Node& node, uint64_t keep) const REQUIRES(mutex_);
  uint64_t SparesToKeep(const Node& node) const REQUIRES(mutex_) {
    return node.draining || IsSmall() ? 0 : std::max<uint64_t>(1, SlabsFor(ahead_bytes_));
  }
  void ReturnSurplusLater(NodeId node) REQUIRES(mutex_);
  Status ReturnSurplus(NodeId node, uint64_t keep, NodeRequests::Late late) REQUIRES(mutex_);
  void Schedule(std::function<void()> task) REQUIRES(mutex_);
  Status TooFewAlive(const Redundancy& redundancy) const;

  PoolClient* const client_;
  const uint64_t database_id_;
  const uint64_t slab_bytes_;
  const uint64_t chunk_size_;
  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  /// Mutable, as one for a node that was not used yet is made when it is asked for.
  mutable PerNode nodes_ GUARDED_BY(mutex_);
  HomeNodes home_ GUARDED_BY(mutex_);
  /// Bytes of the latest extent: the next may be alike.
  uint64_t ahead_bytes_ GUARDED_BY(mutex_) = 0;
  int background_ GUARDED_BY(mutex_) = 0;
  bool ended_ GUARDED_BY(mutex_) = false;
  uint64_t turn_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::pool
