#include "pool/store/write_keys.h"

#include <algorithm>
#include <iterator>

namespace nacre::pool {

void WriteKeys::Add(const ExtentAddr& extent, uint32_t key) {
  const auto node = static_cast<NodeId>(extent.start.node);
  ranges_[{node, extent.start.offset}] = {.end = extent.start.offset + extent.length, .key = key};
}

bool WriteKeys::Translate(const NodeLink& link, uint64_t offset, rdma::RemoteBuffer* to,
                          uint64_t* contiguous) const {
  const auto next = ranges_.upper_bound({link.id(), offset});
  if (next == ranges_.begin()) return false;
  const auto& [start, range] = *std::prev(next);
  if (start.first != link.id() || offset >= range.end) return false;
  *to = link.Translate(offset, contiguous);
  to->key = range.key;
  *contiguous = std::min(*contiguous, range.end - offset);
  return true;
}

}  // namespace nacre::pool
