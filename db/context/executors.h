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

  /// The node with most of a job's input that has not been tried, busy with it until Leave; kNoNode
  /// if there is none.
  NodeId Take(const pool::PoolClient& client, const pool::SpaceAllocator& space,
              const std::map<NodeId, uint64_t>& local_bytes, const std::vector<NodeId>& tried)
      EXCLUDES(mutex_);
  void Leave(NodeId executor) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<NodeId, uint64_t> jobs_on_node_ GUARDED_BY(mutex_);
};

}  // namespace nacre
