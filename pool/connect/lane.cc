#include "pool/connect/lane.h"

#include <algorithm>
#include <utility>

#include "pool/connect/connect_in_time.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kFirstBackOffNanos = 10'000'000;
constexpr uint64_t kLastBackOffNanos = 1'000'000'000;

}  // namespace

Status Lane::Create(Fabric* fabric, int nodes_at_once, std::unique_ptr<Lane>* lane) {
  std::unique_ptr<Lane> result(new Lane(fabric));
  // Every request may come back as a failure, signalled or not.
  NACRE_RETURN_IF_ERROR(fabric->context.device->CreateCompletionQueue(
      (kDepth + 1) * std::max(1, nodes_at_once), &result->queue_));
  *lane = std::move(result);
  return Status::OK();
}

Lane::Peer& Lane::PeerOf(const NodeLink& link) {
  if (link.id() >= peers_.size()) peers_.resize(size_t{link.id()} + 1);
  return peers_[link.id()];
}

Status Lane::Get(NodeLink* link, rdma::QueuePair** queue_pair, Late late) {
  Peer& peer = PeerOf(*link);
  if (peer.queue_pair != nullptr) {
    if (!peer.queue_pair->broken()) {
      *queue_pair = peer.queue_pair.get();
      return Status::OK();
    }
    // As after a restart of the node, which is no reason to suspect it.
    peer.queue_pair.reset();
  }
  NACRE_RETURN_IF_ERROR(fabric_->monitor->AwaitConnected(link));
  Clock* clock = fabric_->context.clock;
  if (peer.back_off_nanos > 0 && clock->NowNanos() < peer.retry_at_nanos) return peer.last_failure;

  peer.connection = fabric_->connections_made.fetch_add(1, std::memory_order_relaxed) + 1;
  bool left = false;
  Status s = Connect(link, &peer, late, &left);
  if (left) return s;
  if (!s.ok()) {
    peer.back_off_nanos =
        std::clamp(2 * peer.back_off_nanos, kFirstBackOffNanos, kLastBackOffNanos);
    peer.retry_at_nanos = clock->NowNanos() + peer.back_off_nanos;
    peer.last_failure = s;
    fabric_->monitor->Suspect(link, s);
    return s;
  }
  peer.back_off_nanos = 0;
  *queue_pair = peer.queue_pair.get();
  return Status::OK();
}

Status Lane::Connect(NodeLink* link, Peer* peer, Late late, bool* left) {
  const auto connect = [&](Deadline deadline) {
    return link->Connect(fabric_->context.device, ConnectionKind::kData,
                         rdma::QueueDepths{.send = kDepth, .receive = 1}, queue_.get(), deadline,
                         &peer->queue_pair, peer->connection);
  };
  PoolPace* const pace = &fabric_->pace;
  std::chrono::nanoseconds patience = pace->Patience(NodeOperation::kRequest);
  if (late != Late::kAwaited) {
    patience = std::max(patience / kQuickConnectionPart, pace->Patience(NodeOperation::kWrite));
  }
  const Deadline deadline = late == Late::kGivenUp
                                ? Deadline::After(fabric_->context.clock, patience)
                                : fabric_->context.OperationDeadline();
  Status s =
      ConnectInTime(fabric_, link, patience, deadline, late != Late::kAwaited, connect, left);
  if (!*left && late == Late::kGivenUp && !s.ok() && deadline.Expired()) {
    *left = true;
    // Else each read that finds it first would wait as long.
    pace->NoteLate(link);
  }
  if (!*left) return s;
  std::string message = link->address() + ": slow to connect";
  return late == Late::kGivenUp ? Status::TimedOut(message) : Status::Unavailable(message);
}

void Lane::AbandonWrites(NodeLink* link, const Status& why) {
  const Peer& peer = PeerOf(*link);
  if (peer.queue_pair != nullptr && !NACRE_PLANTED_BUG("write.forgotten-when-it-is-given-up")) {
    fabric_->abandoned_writes.Add(link->id(), peer.connection);
  }
  Discard(link, why);
}

void Lane::AbandonAllWrites(const Status& why) {
  for (size_t node = 0; node < peers_.size(); ++node) {
    if (peers_[node].queue_pair == nullptr) continue;
    AbandonWrites(fabric_->link(static_cast<NodeId>(node)), why);
  }
}

void Lane::Discard(NodeLink* link, const Status& why, bool backs_off) {
  Peer& peer = PeerOf(*link);
  if (peer.queue_pair == nullptr) return;
  peer.queue_pair.reset();
  if (!backs_off) return;
  peer.last_failure = why;
  peer.back_off_nanos = kFirstBackOffNanos;
  peer.retry_at_nanos = fabric_->context.clock->NowNanos() + peer.back_off_nanos;
  if (why.IsUnavailable()) fabric_->monitor->Suspect(link, why);
}

}  // namespace nacre::pool
