#include "memnode/client_session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "memnode/spin_wait.h"

namespace nacre::memnode {
namespace {

/// Each read lands on a cache line of its own.
constexpr size_t kLandingAlignment = 64;

constexpr size_t LandingBytes(uint32_t length) {
  return (size_t{length} + kLandingAlignment - 1) / kLandingAlignment * kLandingAlignment;
}

constexpr uint64_t BitOf(NodeId node) { return uint64_t{1} << node; }

}  // namespace

/// The reads that are in flight together.
struct ClientSession::Window {
  std::span<PointRead> reads;
  uint64_t number = 0;                  ///< Above the index in the ids of its requests.
  uint64_t waiting = 0;                 ///< Nodes whose last read has not completed, by bit.
  uint64_t pending[kWindow / 64] = {};  ///< Reads that were posted, by bit.

  bool IsPending(size_t i) const { return (pending[i / 64] >> (i % 64) & 1) != 0; }
  void SetPending(size_t i) { pending[i / 64] |= uint64_t{1} << (i % 64); }
};

Status ClientSession::Create(Fabric* fabric, std::unique_ptr<ClientSession>* session) {
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(Lane::Create(fabric, 1, &lane));
  std::unique_ptr<ClientSession> result(new ClientSession(std::move(lane)));
  result->queue_ = result->lane_->queue();
  NACRE_RETURN_IF_ERROR(result->EnsureLanding(kLandingBytes));
  *session = std::move(result);
  return Status::OK();
}

bool ClientSession::ReadOne(PointRead* read) {
  const size_t node = read->from.node;
  if (node >= targets_.size()) [[unlikely]]
    return false;
  const Target& target = targets_[node];
  const uint64_t offset = read->from.offset;
  const uint32_t length = read->length;
  // An unconnected target has limit 0.
  if (offset + length > target.limit || length > landing_bytes_ ||
      landing_bytes_ > kMaxKeptLandingBytes) [[unlikely]] {
    return false;
  }
  const uint64_t id = ++window_number_ << kIndexBits;
  if (!target.queue_pair
           ->PostRead(id, {.data = landing_data_, .size = length, .region = landing_.get()},
                      {.address = target.address + offset, .key = target.key}, rdma::kSignaled)
           .ok()) [[unlikely]] {
    return false;
  }
  read->data = landing_data_;
  rdma::Completion completion;
  if (queue_->Poll(&completion, 1) == 1 && completion.id == id &&
      completion.code == rdma::CompletionCode::kSuccess) [[likely]] {
    if (!read->status.ok()) [[unlikely]]
      read->status = Status::OK();
    return true;
  }
  Window window;
  window.reads = std::span<PointRead>(read, 1);
  window.number = window_number_;
  window.waiting = BitOf(read->from.node);
  window.SetPending(0);
  read->status = Status::OK();
  if (completion.id == id) TakeCompletion(completion, &window);
  Await(&window);
  return true;
}

void ClientSession::ReadMany(std::span<PointRead> reads) {
  size_t bytes = 0;
  for (const PointRead& read : reads) bytes += LandingBytes(read.length);
  if (Status s = EnsureLanding(bytes); !s.ok()) {
    for (PointRead& read : reads) read.status = s;
    return;
  }
  char* landing = landing_data_;
  for (size_t done = 0; done < reads.size();) {
    const std::span<PointRead> window = reads.subspan(done, std::min(kWindow, reads.size() - done));
    ReadWindow(window, landing);
    for (const PointRead& read : window) landing += LandingBytes(read.length);
    done += window.size();
  }
}

void ClientSession::ReadWindow(std::span<PointRead> reads, char* landing) {
  Window window;
  window.reads = reads;
  window.number = ++window_number_;

  // Connects, which may take time, before anything is posted.
  uint64_t usable = 0;
  for (PointRead& read : reads) {
    NodeLink* link = nullptr;
    read.status = Prepare(read, &link);
    if (read.status.ok()) usable |= BitOf(read.from.node);
  }
  // A node's last read rings its doorbell and reports for all.
  uint64_t last_of[kWindow / 64] = {};
  for (size_t i = reads.size(); i-- > 0;) {
    if (!reads[i].status.ok()) continue;
    if ((usable & BitOf(reads[i].from.node)) == 0) continue;
    usable &= ~BitOf(reads[i].from.node);
    last_of[i / 64] |= uint64_t{1} << (i % 64);
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    PointRead& read = reads[i];
    char* const to = landing;
    read.data = to;
    landing += LandingBytes(read.length);
    if (!read.status.ok()) continue;
    const NodeLink& link = *lane_->fabric()->link(read.from.node);
    const bool last = (last_of[i / 64] >> (i % 64) & 1) != 0;
    const Status s = Post(read, link, window.number << kIndexBits | i, to, last);
    if (!s.ok()) {
      // The one that would report for its predecessors may be missing: give them up as well.
      read.status = s;
      FailNode(&window, read.from.node, 0, s);
      continue;
    }
    window.SetPending(i);
    if (last) window.waiting |= BitOf(read.from.node);
  }
  Await(&window);
}

Status ClientSession::Prepare(const PointRead& read, NodeLink** link) {
  *link = lane_->fabric()->link(read.from.node);
  if (*link == nullptr) return Status::InvalidArgument("the pool has no such node");
  Target& target = targets_[read.from.node];
  if (target.queue_pair == nullptr || target.queue_pair->broken()) {
    target = Target();
    rdma::QueuePair* queue_pair = nullptr;
    NACRE_RETURN_IF_ERROR(lane_->Get(*link, &queue_pair));
    target.queue_pair = queue_pair;
    if ((*link)->single_piece()) {
      uint64_t contiguous = 0;
      const rdma::RemoteBuffer start = (*link)->Translate(0, &contiguous);
      target.address = start.address;
      target.key = start.key;
      target.limit = (*link)->region_bytes();
    }
  }
  return Fabric::CheckRange(*link, read.from.offset, read.length);
}

Status ClientSession::Post(const PointRead& read, const NodeLink& link, uint64_t id, char* landing,
                           bool last) {
  rdma::QueuePair* queue_pair = targets_[read.from.node].queue_pair;
  if (queue_pair == nullptr) return Status::Unavailable(link.address() + ": connection lost");
  uint64_t offset = read.from.offset;
  uint32_t left = read.length;
  do {
    uint64_t contiguous = 0;
    // An empty read at the very end of the region has nothing to translate.
    const rdma::RemoteBuffer from =
        left == 0 ? link.Translate(0, &contiguous) : link.Translate(offset, &contiguous);
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(left, contiguous));
    const uint8_t flags = last && part == left ? rdma::kSignaled : rdma::kMore;
    NACRE_RETURN_IF_ERROR(queue_pair->PostRead(
        id, {.data = landing, .size = part, .region = landing_.get()}, from, flags));
    offset += part;
    landing += part;
    left -= part;
  } while (left > 0);
  return Status::OK();
}

void ClientSession::Await(Window* window) {
  if (window->waiting == 0) return;
  const ClientContext& context = lane_->fabric()->context;
  SpinWait pause(context.clock);
  uint64_t deadline_nanos = 0;
  while (true) {
    rdma::Completion completions[16];
    const int n = queue_->Poll(completions, 16);
    for (int i = 0; i < n; ++i) TakeCompletion(completions[i], window);
    if (window->waiting == 0) return;
    if (n > 0) continue;

    pause.Pause();
    if (!pause.TimeToCheckClock()) continue;
    const uint64_t now = context.clock->NowNanos();
    if (deadline_nanos == 0) {
      deadline_nanos =
          now + static_cast<uint64_t>(
                    std::chrono::nanoseconds(context.options.operation_timeout).count());
    }
    if (now < deadline_nanos) continue;
    while (window->waiting != 0) {
      const auto node = static_cast<NodeId>(std::countr_zero(window->waiting));
      FailNode(window, node, 0,
               Status::TimedOut(lane_->fabric()->link(node)->address() + ": a read did not end"));
    }
    return;
  }
}

void ClientSession::TakeCompletion(const rdma::Completion& completion, Window* window) {
  if (completion.id >> kIndexBits != window->number) return;
  const size_t index = completion.id & ((uint64_t{1} << kIndexBits) - 1);
  const NodeId node = window->reads[index].from.node;
  if ((window->waiting & BitOf(node)) == 0) return;
  if (completion.code == rdma::CompletionCode::kSuccess) {
    window->waiting &= ~BitOf(node);
    return;
  }
  // Requests complete in order: what was posted before this one has succeeded.
  FailNode(window, node, index,
           StatusOfCompletion(lane_->fabric()->link(node)->address(), completion.code));
}

void ClientSession::FailNode(Window* window, NodeId node, size_t first, const Status& why) {
  for (size_t i = first; i < window->reads.size(); ++i) {
    PointRead& read = window->reads[i];
    if (read.from.node == node && window->IsPending(i)) read.status = why;
  }
  window->waiting &= ~BitOf(node);
  targets_[node] = Target();
  lane_->Discard(lane_->fabric()->link(node), why);
}

Status ClientSession::EnsureLanding(size_t bytes) {
  if (bytes <= landing_bytes_ &&
      (landing_bytes_ <= kMaxKeptLandingBytes || bytes > kMaxKeptLandingBytes)) {
    return Status::OK();
  }
  // Nothing is outstanding between calls, so the old memory may go.
  const size_t size = std::max(std::bit_ceil(bytes), kLandingBytes);
  std::unique_ptr<rdma::MemoryRegion> region;
  NACRE_RETURN_IF_ERROR(
      lane_->fabric()->context.device->AllocateRegion(size, rdma::Access::kLocalOnly, &region));
  landing_ = std::move(region);
  landing_data_ = landing_->data();
  landing_bytes_ = landing_->size();
  return Status::OK();
}

}  // namespace nacre::memnode
