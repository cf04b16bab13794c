#include "pool/read/loadable_nodes.h"

#include <mutex>

namespace nacre::pool {

std::shared_ptr<const LoadableMemory> LoadableNodes::Region(NodeId node) {
  NodeLink* const link = fabric_->link(node);
  if (link == nullptr || link->is_self() || !link->alive() ||
      !fabric_->context.device->ForPeer(link->address())->may_map()) {
    return nullptr;
  }
  // One that connects may take seconds; the others read meanwhile.
  if (!mutex_.TryLock()) return nullptr;
  const MutexLock lock(&mutex_, std::adopt_lock);
  if (closed_) return nullptr;
  for (auto& region : regions_) {
    if (region != nullptr && !region->Valid()) region.reset();
  }
  if (regions_[node] == nullptr) regions_[node] = Map(link);
  return regions_[node];
}

std::shared_ptr<const LoadableMemory> LoadableNodes::RegionOf(const ExtentAddr& extent) {
  std::shared_ptr<const LoadableMemory> region = Region(static_cast<NodeId>(extent.start.node));
  const bool holds = region != nullptr && extent.start.offset <= region->size() &&
                     extent.length <= region->size() - extent.start.offset;
  return holds ? region : nullptr;
}

void LoadableNodes::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  regions_.assign(regions_.size(), nullptr);
  lane_.reset();  // What was mapped through a connection is valid as long as that.
}

std::shared_ptr<const LoadableMemory> LoadableNodes::Map(NodeLink* link) {
  if (lane_ == nullptr && !Lane::Create(fabric_, 1, &lane_).ok()) return nullptr;
  rdma::QueuePair* queue_pair = nullptr;
  if (!lane_->Get(link, &queue_pair).ok() || !link->single_piece()) return nullptr;
  uint64_t contiguous = 0;
  const rdma::RemoteBuffer start = link->Translate(0, &contiguous);
  std::shared_ptr<const LoadableMemory> region;
  // Whatever is the matter, the bytes are read, and that names it.
  queue_pair->Map(start, contiguous, &region).IgnoreError();
  return region;
}

}  // namespace nacre::pool
