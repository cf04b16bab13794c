#include "pool/read/point_lane.h"

#include <algorithm>

namespace nacre::pool {

Status PointLane::AllocateLanding(size_t bytes) {
  std::unique_ptr<rdma::MemoryRegion> region;
  NACRE_RETURN_IF_ERROR(
      fabric().context.device->AllocateRegion(bytes, rdma::Access::kLocalOnly, &region));
  landing_ = std::move(region);
  return Status::OK();
}

Status PointLane::Connect(NodeId node, bool patient) {
  NodeLink* const link = fabric().link(node);
  if (link == nullptr) return Status::InvalidArgument("the pool has no such node");
  if (node >= targets_.size()) targets_.resize(size_t{node} + 1);
  Target& target = targets_[node];
  if (target.queue_pair != nullptr) [[likely]] {
    if (!target.queue_pair->broken()) [[likely]]
      return Status::OK();
    if (HasEnded(node, target.posted)) {
      target = {.posted = target.posted, .ended = target.ended};
    } else {
      // It will never say how its reads ended.
      GiveUp(node, StatusOfCompletion(link->address(), rdma::CompletionCode::kPeerGone));
    }
  }
  rdma::QueuePair* queue_pair = nullptr;
  const auto late = patient ? Lane::Late::kAwaited : Lane::Late::kGivenUp;
  NACRE_RETURN_IF_ERROR(lane_->Get(link, &queue_pair, late));
  target.queue_pair = queue_pair;
  if (link->single_piece()) {
    uint64_t contiguous = 0;
    const rdma::RemoteBuffer start = link->Translate(0, &contiguous);
    target.address = start.address;
    target.key = start.key;
    target.limit = link->region_bytes();
  }
  return Status::OK();
}

void PointLane::PostRead(const PointRead& read, char* landing, bool last, uint64_t* number) {
  const auto node = static_cast<NodeId>(read.from.node);
  const NodeLink& link = *fabric().link(node);
  Target& target = targets_[node];
  *number = ++target.posted;
  const uint64_t id = IdOf(node, *number);
  uint64_t offset = read.from.offset;
  uint32_t left = read.length;
  do {
    if (target.queue_pair == nullptr) [[unlikely]]
      return GiveUp(node, Status::Unavailable(link.address() + ": connection lost"));
    uint64_t contiguous = 0;
    // An empty read at the very end of the region has nothing to translate.
    const rdma::RemoteBuffer from = link.Translate(left == 0 ? 0 : offset, &contiguous);
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(left, contiguous));
    const uint8_t flags = last && part == left ? rdma::kSignaled : rdma::kMore;
    if (Status s = target.queue_pair->PostRead(
            id, {.data = landing, .size = part, .region = landing_.get()}, from, flags);
        !s.ok()) [[unlikely]] {
      // The one that would report for its predecessors may be missing.
      return GiveUp(node, s);
    }
    offset += part;
    landing += part;
    left -= part;
  } while (left > 0);
}

void PointLane::Take(const rdma::Completion& completion) {
  const auto node = static_cast<NodeId>(completion.id & ((uint64_t{1} << kNodeBits) - 1));
  const uint64_t number = completion.id >> kNodeBits;
  Target& target = targets_[node];
  if (number <= target.ended) return;  // It belongs to one that was given up.
  if (completion.code == rdma::CompletionCode::kSuccess) [[likely]] {
    target.ended = number;
    return;
  }
  // What was posted before one that failed has succeeded.
  target.ended = number - 1;
  GiveUp(node, StatusOfCompletion(fabric().link(node)->address(), completion.code));
}

void PointLane::GiveUp(NodeId node, const Status& why, bool backs_off) {
  Target& target = targets_[node];
  const uint64_t first = target.ended + 1;
  target = {.posted = target.posted, .ended = target.posted};
  lane_->Discard(fabric().link(node), why, backs_off);
  FailReads(node, first, why);
}

void PointLane::GiveUpLate(NodeId node) {
  GiveUp(node, Status::TimedOut(fabric().link(node)->address() + ": a read did not end"));
}

}  // namespace nacre::pool
