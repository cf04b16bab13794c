#include "pool/space/home_nodes.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "util/hash.h"

namespace nacre::pool {

void HomeNodes::Choose(uint64_t database_id, std::vector<Candidate> candidates, size_t count) {
  const auto rank = [&](const Candidate& candidate) {
    const uint64_t part = candidate.slabs == 0 ? 1000 : 1000 * candidate.leased / candidate.slabs;
    const uint64_t seed[] = {database_id, candidate.node};
    return std::make_tuple(~candidate.used_bytes, part,
                           Hash64(Slice(reinterpret_cast<const char*>(seed), sizeof(seed))));
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  nodes_.clear();
  std::set<NodeId> domains;
  for (const Candidate& candidate : candidates) {
    if (nodes_.size() == count) break;
    if (domains.insert(candidate.domain).second) nodes_.push_back(candidate.node);
  }
}

bool HomeNodes::Contains(NodeId node) const {
  return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
}

void HomeNodes::Move(const Placement& placement, const std::function<bool(NodeId)>& failed) {
  for (const ExtentAddr& fragment : placement.fragments) {
    const auto node = static_cast<NodeId>(fragment.start.node);
    if (Contains(node)) continue;
    const auto left = std::find_if(nodes_.begin(), nodes_.end(), failed);
    if (left == nodes_.end()) return;
    *left = node;
  }
}

}  // namespace nacre::pool
