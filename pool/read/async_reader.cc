#include "pool/read/async_reader.h"

#include <algorithm>
#include <utility>

#include "pool/connect/pool_pace.h"

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
  std::unique_ptr<AsyncReader> result(new AsyncReader(std::move(lane)));
  NACRE_RETURN_IF_ERROR(result->AllocateLanding(size_t{kSmallSlots} * kSmallBytes +
                                                size_t{kLargeSlots} * kMaxReadBytes));
  *reader = std::move(result);
  return Status::OK();
}

AsyncReader::AsyncReader(std::unique_ptr<Lane> lane)
    : PointLane(std::move(lane)),
      timeout_nanos_(static_cast<uint64_t>(
          std::chrono::nanoseconds(fabric().context.options.operation_timeout).count())) {
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
    peers_.resize(static_cast<size_t>(fabric().node_count()));
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
  const uint64_t now = fabric().context.clock->CoarseNanos();
  for (const NodeId node : added_to_) {
    peers_[node].listed = false;
    PostTo(node, &peers_[node], now);
  }
  added_to_.clear();
}

void AsyncReader::PostTo(NodeId node, Peer* peer, uint64_t now) {
  const Status connected = Connect(node, /*patient=*/true);
  // The one that was found right last. Whether it is the last to be posted shows later.
  AsyncRead* ready = nullptr;
  const auto post = [&](bool last) {
    if (ready == nullptr) return;
    ready->posted_nanos = now;
    peer->patient += ready->read.patience == 0 ? 1 : 0;
    peer->posted.Push(ready);
    PostRead(ready->read, SlotData(ready->slot), last, &ready->number);
  };
  while (!peer->added.empty()) {
    AsyncRead* const read = peer->added.Pop();
    Status failure = connected;
    if (failure.ok()) {
      failure = Fabric::CheckRange(fabric().link(node), read->read.from.offset, read->read.length);
    }
    if (failure.ok()) {
      post(/*last=*/false);
      ready = read;
    } else {
      peer->requests -= kRequestsOfRead;
      End(read, std::move(failure));
    }
  }
  post(/*last=*/true);
}

AsyncRead* AsyncReader::Take() {
  if (ended_.empty() && under_way_ > 0 && Poll([this](NodeId node) { TakeEnded(node); }) == 0) {
    FailLate();
  }
  if (ended_.empty()) return nullptr;
  --under_way_;
  return ended_.Pop();
}

void AsyncReader::TakeEnded(NodeId node) {
  Peer& peer = peers_[node];
  while (!peer.posted.empty() && HasEnded(node, peer.posted.front()->number)) {
    peer.requests -= kRequestsOfRead;
    End(PopPosted(&peer), Status::OK());
  }
}

void AsyncReader::FailReads(NodeId node, uint64_t first, const Status& why) {
  Peer& peer = peers_[node];
  while (!peer.posted.empty()) {
    AsyncRead* const read = PopPosted(&peer);
    peer.requests -= kRequestsOfRead;
    End(read, read->number < first ? Status::OK() : why);
  }
}

AsyncRead* AsyncReader::PopPosted(Peer* peer) {
  AsyncRead* const read = peer->posted.Pop();
  peer->patient -= read->read.patience == 0 ? 1 : 0;
  return read;
}

void AsyncReader::FailLate() {
  const uint64_t now = fabric().context.clock->CoarseNanos();
  PoolPace* const pace = &fabric().pace;
  // The coarse clock is a few milliseconds behind at times.
  const auto patience = static_cast<uint64_t>((2 * pace->Patience(NodeOperation::kRead)).count());
  for (size_t node = 0; node < peers_.size(); ++node) {
    Peer& peer = peers_[node];
    if (peer.posted.empty()) continue;
    const AsyncRead& first = *peer.posted.front();
    const uint64_t late_at =
        first.posted_nanos + patience * static_cast<uint64_t>(first.read.patience);
    if (now >= first.posted_nanos + timeout_nanos_) {
      GiveUpLate(static_cast<NodeId>(node));
    } else if (peer.patient == 0 && now >= late_at) {
      NodeLink* const link = fabric().link(static_cast<NodeId>(node));
      const bool again = std::exchange(peer.late, first.number) == first.number;
      if (pace->MayHedge({&link, 1}, again)) GiveUpLate(static_cast<NodeId>(node));
    }
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
