#include "db/context/executors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "pool/reports.h"
#include "pool/wire/node_stats.h"

namespace nacre {

NodeId Executors::Take(const pool::PoolClient& client, const pool::SpaceAllocator& space,
                       const std::map<NodeId, uint64_t>& local_bytes,
                       const std::vector<NodeId>& tried, Choice choice) {
  std::vector<uint64_t> used_bytes;
  used_bytes.reserve(static_cast<size_t>(client.node_count()));
  for (int node = 0; node < client.node_count(); ++node) {
    used_bytes.push_back(space.Usage(static_cast<NodeId>(node)).used_bytes);
  }
  const pool::HomeNodes home = space.Home();
  MutexLock lock(&mutex_);
  NodeId best = kNoNode;
  std::tuple<bool, bool, uint64_t, uint64_t> best_rank;
  for (size_t node = 0; node < used_bytes.size(); ++node) {
    const auto id = static_cast<NodeId>(node);
    if (!client.prompt(id) || std::find(tried.begin(), tried.end(), id) != tried.end()) continue;
    // It has not said that it ended an earlier job, so it may be stopped.
    if (space.AwaitsEndOn(id)) continue;
    // Those at home first. Most input first, shared with the jobs that run there; among equals the
    // one with the least data.
    const auto local = local_bytes.find(id);
    const uint64_t bytes = local == local_bytes.end() ? 0 : local->second;
    const uint64_t share = bytes / (1 + jobs_on_node_[id]);
    const bool busy = choice == Choice::kIdle && !HasIdleWorker(id);
    const std::tuple<bool, bool, uint64_t, uint64_t> rank{home.Excludes(id), busy,
                                                          UINT64_MAX - share, used_bytes[id]};
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

bool Executors::HasIdleWorker(NodeId node) const {
  const auto jobs = jobs_on_node_.find(node);
  const auto workers = workers_.find(node);
  return jobs == jobs_on_node_.end() ||
         jobs->second < (workers == workers_.end() ? 1 : workers->second.count);
}

uint64_t Executors::WorkersOf(pool::PoolClient* client, NodeId node) {
  const uint32_t start = client->start_id(node);
  {
    MutexLock lock(&mutex_);
    const auto known = workers_.find(node);
    if (known != workers_.end() && known->second.start_id == start) return known->second.count;
  }
  pool::NodeStats stats;
  if (!pool::GetStats(client, node, &stats, pool::NodeRequests::Late::kLeft).ok()) return 1;
  const uint64_t count = std::max<uint64_t>(stats.workers, 1);
  MutexLock lock(&mutex_);
  workers_[node] = {start, count};
  return count;
}

uint64_t Executors::IdleWorkers(pool::PoolClient* client, const pool::SpaceAllocator& space) {
  uint64_t idle = 0;
  const pool::HomeNodes home = space.Home();
  for (int i = 0; i < client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!client->prompt(node) || space.AwaitsEndOn(node) || home.Excludes(node)) continue;
    const uint64_t workers = WorkersOf(client, node);
    MutexLock lock(&mutex_);
    idle += workers - std::min(workers, jobs_on_node_[node]);
  }
  return idle;
}

}  // namespace nacre
