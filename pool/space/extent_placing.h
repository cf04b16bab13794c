#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "table/format/fragment_checksums.h"
#include "table/format/placement.h"

namespace nacre::pool {

// What decides where fragments may lie, and how much they take there.

/// `domains` is PoolClient::Domains; a node that has joined since is a domain of its own.
inline NodeId DomainOf(const std::vector<NodeId>& domains, NodeId node) {
  return node < domains.size() ? domains[node] : node;
}

/// Whether a fragment of `placement` lies in the node's failure domain. `domains` is
/// PoolClient::Domains.
inline bool SharesDomain(const std::vector<NodeId>& domains, NodeId node,
                         const Placement& placement) {
  return std::any_of(placement.fragments.begin(), placement.fragments.end(),
                     [&](const ExtentAddr& fragment) {
                       return DomainOf(domains, fragment.start.node) == DomainOf(domains, node);
                     });
}

/// Size of an extent that holds `fragment_bytes`, a head and a tail. Extents start and end at
/// pages, so that heads and point indexes are aligned in the region.
inline uint64_t ExtentBytes(uint64_t fragment_bytes, uint64_t chunk_size) {
  constexpr uint64_t kAlignment = 4096;
  const uint64_t bytes =
      kFragmentHeadBytes + fragment_bytes + FragmentTailBytes(fragment_bytes, chunk_size);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace nacre::pool
