#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "pool/pool_client.h"
#include "pool/space/space_allocator.h"
#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre {

/// Which nodes run how many jobs of this database, and which is to run the next one.
/// Thread safety: all methods may be called from many threads at once.
class Executors {
 public:
  /// Leaves a node at the end, also if something throws.
  class Turn {
   public:
    Turn(Executors* executors, NodeId node) : executors_(executors), node_(node) {}
    ~Turn() { Leave(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    void Leave() {
      if (executors_ != nullptr) std::exchange(executors_, nullptr)->Leave(node_);
    }

   private:
    Executors* executors_;
    const NodeId node_;
  };

  enum class Choice : uint8_t {
    kNear,  ///< The node with most of the input.
    kIdle,  ///< Among those with a thread that is free as far as is known; if there is none, kNear.
  };
  /// A node for a job that has not been tried, busy with it until Leave; kNoNode if there is none.
  NodeId Take(const pool::PoolClient& client, const pool::SpaceAllocator& space,
              const std::map<NodeId, uint64_t>& local_bytes, const std::vector<NodeId>& tried,
              Choice choice = Choice::kNear) EXCLUDES(mutex_);
  void Leave(NodeId executor) EXCLUDES(mutex_);
  /// How many threads for jobs the nodes (those at home, if there is one) have that run none of
  /// this database's. Asks a node that has started since the last call, and takes it for one with a
  /// single thread if it does not answer.
  uint64_t IdleWorkers(pool::PoolClient* client, const pool::SpaceAllocator& space)
      EXCLUDES(mutex_);

 private:
  /// What one start of a node has told.
  struct Workers {
    uint32_t start_id = 0;
    uint64_t count = 0;
  };

  bool HasIdleWorker(NodeId node) const REQUIRES(mutex_);
  uint64_t WorkersOf(pool::PoolClient* client, NodeId node) EXCLUDES(mutex_);

  Mutex mutex_;
  std::map<NodeId, uint64_t> jobs_on_node_ GUARDED_BY(mutex_);
  std::map<NodeId, Workers> workers_ GUARDED_BY(mutex_);
};

}  // namespace nacre
