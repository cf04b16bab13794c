#include <utility>
#include <vector>

#include "pool/reports.h"
#include "pool/space/extent_placing.h"
#include "pool/space/space_allocator_rep.h"

namespace nacre::pool {

void SpaceAllocator::Rep::SettleOn(int nodes) {
  const std::vector<NodeId> domains = client_->Domains();
  std::vector<HomeNodes::Candidate> candidates;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    NodeStats stats;
    if (!client_->alive(node)) continue;
    if (!GetStats(client_, node, &stats, NodeRequests::Late::kLeft).ok()) stats = NodeStats();
    candidates.push_back({.node = node,
                          .domain = DomainOf(domains, node),
                          .leased = stats.slabs_leased,
                          .slabs = stats.slabs_total});
  }
  MutexLock lock(&mutex_);
  for (HomeNodes::Candidate& candidate : candidates) {
    candidate.used_bytes = nodes_[candidate.node].used_bytes;
  }
  home_.Choose(database_id_, std::move(candidates), static_cast<size_t>(nodes));
}

HomeNodes SpaceAllocator::Rep::Home() const {
  MutexLock lock(&mutex_);
  return home_;
}

}  // namespace nacre::pool
