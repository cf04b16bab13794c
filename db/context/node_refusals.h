#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jobs/compaction_job.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre {

/// What of the application's a job needs on the node that runs it. Empty: nothing.
struct JobNeeds {
  explicit JobNeeds(const pool::CompactionJob& job)
      : comparator(job.comparator_name),
        merge_operator(job.merge_operator),
        compaction_filter(job.compaction_filter) {}

  auto operator<=>(const JobNeeds&) const = default;

  std::string comparator;
  std::string merge_operator;
  std::string compaction_filter;
};

/// Which nodes do not have what jobs need (plug-ins), as they answered, so that each is asked once.
/// A node's process is given its plug-ins when it starts: what one answered says nothing of the
/// next one, which may serve the same memory.
///
/// Thread safety: all methods may be called from many threads at once.
class NodeRefusals {
 public:
  /// That `start` of `node` (PoolClient::start_id, before it was asked) has answered
  /// `NotSupported`.
  void Add(NodeId node, uint32_t start, const JobNeeds& needs) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    OfNode& of_node = nodes_[node];
    // Families come and go. A node that is forgotten is asked once more.
    if (of_node.start != start || of_node.needs.size() >= kMostNeeds) of_node = {.start = start};
    of_node.needs.insert(needs);
  }

  /// Those of `client` that answered so and were not started anew since.
  std::vector<NodeId> NodesWithout(const pool::PoolClient& client, const JobNeeds& needs) const
      EXCLUDES(mutex_) {
    std::vector<NodeId> without;
    MutexLock lock(&mutex_);
    for (const auto& [node, of_node] : nodes_) {
      if (of_node.start == client.start_id(node) && of_node.needs.contains(needs)) {
        without.push_back(node);
      }
    }
    return without;
  }

 private:
  static constexpr size_t kMostNeeds = 256;

  struct OfNode {
    uint32_t start = 0;
    std::set<JobNeeds> needs{};
  };

  mutable Mutex mutex_;
  std::map<NodeId, OfNode> nodes_ GUARDED_BY(mutex_);
};

}  // namespace nacre
