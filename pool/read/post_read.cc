#include "pool/read/post_read.h"

#include <algorithm>

namespace nacre::pool {

Status PostPointRead(const PointRead& read, const NodeLink& link, rdma::QueuePair* queue_pair,
                     uint64_t id, char* landing, const rdma::MemoryRegion* region, bool last) {
  uint64_t offset = read.from.offset;
  uint32_t left = read.length;
  do {
    uint64_t contiguous = 0;
    // An empty read at the very end of the region has nothing to translate.
    const rdma::RemoteBuffer from =
        left == 0 ? link.Translate(0, &contiguous) : link.Translate(offset, &contiguous);
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(left, contiguous));
    const uint8_t flags = last && part == left ? rdma::kSignaled : rdma::kMore;
    NACRE_RETURN_IF_ERROR(
        queue_pair->PostRead(id, {.data = landing, .size = part, .region = region}, from, flags));
    offset += part;
    landing += part;
    left -= part;
  } while (left > 0);
  return Status::OK();
}

}  // namespace nacre::pool
