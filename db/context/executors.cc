#include "db/context/executors.h"

#include <algorithm>
#include <utility>

namespace nacre {

NodeId Executors::Take(const pool::PoolClient& client, const pool::SpaceAllocator& space,
                       const std::map<NodeId, uint64_t>& local_bytes,
                       const std::vector<NodeId>& tried) {
  std::vector<uint64_t> used_bytes;
  used_bytes.reserve(static_cast<size_t>(client.node_count()));
  for (int node = 0; node < client.node_count(); ++node) {
    used_bytes.push_back(space.Usage(static_cast<NodeId>(node)).used_bytes);
  }
  MutexLock lock(&mutex_);
  NodeId best = kNoNode;
  std::pair<uint64_t, uint64_t> best_rank;
  for (size_t node = 0; node < used_bytes.size(); ++node) {
    const auto id = static_cast<NodeId>(node);
    if (!client.alive(id) || std::find(tried.begin(), tried.end(), id) != tried.end()) continue;
    // It has not said that it ended an earlier job, so it may be stopped.
    if (space.AwaitsEndOn(id)) continue;
    // Most input first, shared with the jobs that run there; among equals the one with the least
    // data.
    const auto local = local_bytes.find(id);
    const uint64_t bytes = local == local_bytes.end() ? 0 : local->second;
    const uint64_t share = bytes / (1 + jobs_on_node_[id]);
    const std::pair<uint64_t, uint64_t> rank{UINT64_MAX - share, used_bytes[id]};
    if (best != kNoNode && rank >= best_rank) continue;
    best = id;
    best_rank = rank;
  }
  if (best != kNoNode) ++jobs_on_node_[best];
  return best;
}

void Executors::Leave(NodeId executor) {
  if (executor == kNoNode) return;
  MutexLock lock(&mutex_);
  --jobs_on_node_[executor];
}

}  // namespace nacre
