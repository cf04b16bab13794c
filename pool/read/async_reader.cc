#include "pool/read/async_reader.h"

#include <algorithm>
#include <utility>

#include "pool/read/post_read.h"

namespace nacre::pool {

void AsyncReader::Queue::Push(AsyncRead* read) {
  read->next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = read;
  last_ = read;
}

AsyncRead* AsyncReader::Queue::Pop() {
  AsyncRead* const read = first_;
  first_ = read->next;
  return read;
}

Status AsyncReader::Create(Fabric* fabric, std::unique_ptr<AsyncReader>* reader) {
  // Reads of all nodes may be under way at once, as many as there are slots.
  constexpr int kNodesAtOnce = kRequestsOfRead * (kSmallSlots + kLargeSlots) / Lane::kDepth + 1;
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(Lane::Create(fabric, kNodesAtOnce, &lane));
  std::unique_ptr<rdma::MemoryRegion> landing;
  NACRE_RETURN_IF_ERROR(fabric->context.device->AllocateRegion(
      size_t{kSmallSlots} * kSmallBytes + size_t{kLargeSlots} * kMaxReadBytes,
      rdma::Access::kLocalOnly, &landing));
  reader->reset(new AsyncReader(std::move(lane), std::move(landing)));
  return Status::OK();
}

AsyncReader::AsyncReader(std::unique_ptr<Lane> lane, std::unique_ptr<rdma::MemoryRegion> landing)
    : landing_(std::move(landing)),
      timeout_nanos_(static_cast<uint64_t>(
          std::chrono::nanoseconds(lane->fabric()->context.options.operation_timeout).count())),
      lane_(std::move(lane)) {
  // The slots that were used last are used next: they are in the cache.
  for (uint32_t slot = kSmallSlots; slot-- > 0;) small_.push_back(slot);
  for (uint32_t slot = kLargeSlots; slot-- > 0;) large_.push_back(kSmallSlots + slot);
}

AsyncReader::~AsyncReader() = default;

char* AsyncReader::SlotData(uint32_t slot) const {
  if (slot < kSmallSlots) [[likely]]
    return landing_->data() + size_t{slot} * kSmallBytes;
  return landing_->data() + size_t{kSmallSlots} * kSmallBytes +
         size_t{slot - kSmallSlots} * kMaxReadBytes;
}

bool AsyncReader::Add(AsyncRead* read) {
  std::vector<uint32_t>& slots = read->read.length <= kSmallBytes ? small_ : large_;
  const NodeId node = read->read.from.node;
  if (slots.empty()) return false;
  if (node >= peers_.size()) [[unlikely]] {
    peers_.resize(static_cast<size_t>(lane_->fabric()->node_count()));
  }
  if (node < peers_.size()) [[likely]] {
    Peer& peer = peers_[node];
    if (peer.requests + kRequestsOfRead > Lane::kDepth) return false;
    peer.requests += kRequestsOfRead;
    peer.added.Push(read);
    if (!peer.listed) {
      peer.listed = true;
      added_to_.push_back(node);
    }
  }
  read->slot = slots.back();
  slots.pop_back();
  read->read.data = SlotData(read->slot);
  ++under_way_;
  if (node >= peers_.size()) [[unlikely]]
    End(read, Status::InvalidArgument("the pool has no such node"));
  return true;
}

void AsyncReader::Post() {
  if (added_to_.empty()) return;
  const uint64_t now = lane_->fabric()->context.clock->CoarseNanos();
  for (const NodeId node : added_to_) {
    peers_[node].listed = false;
    PostTo(node, &peers_[node], now);
  }
  added_to_.clear();
}

void AsyncReader::PostTo(NodeId node, Peer* peer, uint64_t now) {
  NodeLink* const link = lane_->fabric()->link(node);
  rdma::QueuePair* queue_pair = nullptr;
  Status status = Status::InvalidArgument("the pool has no such node");
  if (link != nullptr) {
    // One that broke will never say how its reads ended.
    if (!peer->posted.empty() && lane_->GetConnected(node)->broken()) {
      FailNode(node, StatusOfCompletion(link->address(), rdma::CompletionCode::kPeerGone));
    }
    status = lane_->Get(link, &queue_pair);
  }
  while (!peer->added.empty()) {
    AsyncRead* const read = peer->added.Pop();
    Status failure = status;
    if (failure.ok()) failure = Fabric::CheckRange(link, read->read.from.offset, read->read.length);
    if (!failure.ok()) {
      peer->requests -= kRequestsOfRead;
      End(read, std::move(failure));
      continue;
    }
    read->number = ++peer->number;
    read->posted_nanos = now;
    peer->posted.Push(read);
    // The last one reports for all.
    status = PostPointRead(read->read, *link, queue_pair, peer->number << kNodeBits | node,
                           SlotData(read->slot), landing_.get(), peer->added.empty());
    // What was posted before it may have no reader left: it is given up as well.
    if (!status.ok()) [[unlikely]]
      FailNode(node, status);
  }
}

AsyncRead* AsyncReader::Take() {
  if (ended_.empty() && under_way_ > 0) Poll();
  if (ended_.empty()) return nullptr;
  --under_way_;
  return ended_.Pop();
}

void AsyncReader::Poll() {
  constexpr int kAtOnce = 16;
  rdma::Completion completions[kAtOnce];
  const int count = lane_->queue()->Poll(completions, kAtOnce);
  for (int i = 0; i < count; ++i) TakeCompletion(completions[i]);
  if (count == 0) FailLate();
}

void AsyncReader::TakeCompletion(const rdma::Completion& completion) {
  const auto node = static_cast<NodeId>(completion.id & ((uint64_t{1} << kNodeBits) - 1));
  const uint64_t number = completion.id >> kNodeBits;
  Peer& peer = peers_[node];
  if (number <= peer.connection) return;  // It belongs to one that was given up.
  const bool success = completion.code == rdma::CompletionCode::kSuccess;
  // What was posted before one that failed has succeeded.
  const uint64_t succeeded = success ? number : number - 1;
  while (!peer.posted.empty() && peer.posted.front()->number <= succeeded) {
    peer.requests -= kRequestsOfRead;
    End(peer.posted.Pop(), Status::OK());
  }
  if (success) return;
  FailNode(node, StatusOfCompletion(lane_->fabric()->link(node)->address(), completion.code));
}

void AsyncReader::FailLate() {
  const uint64_t now = lane_->fabric()->context.clock->CoarseNanos();
  for (size_t node = 0; node < peers_.size(); ++node) {
    const Peer& peer = peers_[node];
    if (peer.posted.empty() || now < peer.posted.front()->posted_nanos + timeout_nanos_) continue;
    const auto id = static_cast<NodeId>(node);
    FailNode(id, Status::TimedOut(lane_->fabric()->link(id)->address() + ": a read did not end"));
  }
}

void AsyncReader::FailNode(NodeId node, const Status& why) {
  Peer& peer = peers_[node];
  peer.connection = peer.number;
  lane_->Discard(lane_->fabric()->link(node), why);
  while (!peer.posted.empty()) {
    peer.requests -= kRequestsOfRead;
    End(peer.posted.Pop(), why);
  }
}

void AsyncReader::End(AsyncRead* read, Status status) {
  read->read.status = std::move(status);
  ended_.Push(read);
}

void AsyncReader::Release(AsyncRead* read) {
  (read->slot < kSmallSlots ? small_ : large_).push_back(read->slot);
}

}  // namespace nacre::pool
