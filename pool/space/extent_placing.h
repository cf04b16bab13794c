#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "table/format/fragment_checksums.h"
#include "table/format/placement.h"

namespace nacre::pool {

// What decides where fragments may lie, and how much they take there.

/// Whether a fragment of `placement` lies in the node's failure domain. `domains` is
/// PoolClient::Domains.
inline bool SharesDomain(const std::vector<NodeId>& domains, NodeId node,
                         const Placement& placement) {
  const auto domain_of = [&](NodeId of) { return of < domains.size() ? domains[of] : of; };
  return std::any_of(placement.fragments.begin(), placement.fragments.end(),
                     [&](const ExtentAddr& fragment) {
                       return domain_of(fragment.start.node) == domain_of(node);
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
