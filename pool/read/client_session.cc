#include "pool/read/client_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "pool/connect/spin_wait.h"
#include "pool/read/post_read.h"

namespace nacre::pool {
namespace {

/// Each read lands on a cache line of its own.
constexpr size_t kLandingAlignment = 64;

constexpr size_t LandingBytes(uint32_t length) {
  return (size_t{length} + kLandingAlignment - 1) / kLandingAlignment * kLandingAlignment;
}

}  // namespace

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
  read->status = Status::OK();
  Window* window = BeginWindow({read, 1});
  window->number = window_number_;
  window->posted = true;
  window->pending.set(0);
  window->waiting.set(0);
  if (completion.id == id) TakeCompletion(completion);
  Await(window);
  ++finished_;
  return true;
}

ClientSession::Window* ClientSession::BeginWindow(std::span<PointRead> reads) {
  Window* window = WindowAt(started_++);
  *window = Window();
  window->reads = reads;
  for (const PointRead& read : reads) window->bytes += LandingBytes(read.length);
  return window;
}

void ClientSession::StartReads(std::span<PointRead> reads) {
  assert(reads.size() <= PointReader::kMaxReadsAtOnce && started_ - finished_ < kWindows);
  const bool alone = started_ == finished_;
  const bool follows_posted = alone || WindowAt(started_ - 1)->posted;
  Window* window = BeginWindow(reads);
  if (alone) {
    // Room for as much as the last pipeline needed, so that this one need not wait for it.
    const size_t wanted = std::min(pipeline_bytes_, kMaxKeptLandingBytes);
    pipeline_bytes_ = 0;
    landing_used_ = 0;
    if (!EnsureLanding(std::max(window->bytes, wanted)).ok()) return;  // FinishReads will tell.
  }
  pipeline_bytes_ += window->bytes;
  // What does not fit beside the others is posted when they have been finished.
  if (!follows_posted || window->bytes > landing_bytes_ - landing_used_ ||
      reads.size() > PointReader::kMaxReadsAtOnce - reads_under_way_) {
    return;
  }
  char* const landing = landing_data_ + landing_used_;
  landing_used_ += window->bytes;
  PostWindow(window, landing);
}

void ClientSession::FinishReads() {
  assert(started_ != finished_);
  Window* window = WindowAt(finished_);
  if (!window->posted) {
    // All before it are finished and all after it wait as well, so the old memory may go.
    if (Status s = EnsureLanding(window->bytes); s.ok()) {
      landing_used_ = window->bytes;
      PostWindow(window, landing_data_);
    } else {
      for (PointRead& read : window->reads) read.status = s;
    }
  }
  Await(window);
  if (window->posted) reads_under_way_ -= window->reads.size();
  ++finished_;
}

void ClientSession::ReadMany(std::span<PointRead> reads) {
  assert(started_ == finished_);
  size_t bytes = 0;
  for (const PointRead& read : reads) bytes += LandingBytes(read.length);
  if (Status s = EnsureLanding(bytes); !s.ok()) {
    for (PointRead& read : reads) read.status = s;
    return;
  }
  char* landing = landing_data_;
  for (size_t done = 0; done < reads.size();) {
    Window* window = BeginWindow(
        reads.subspan(done, std::min(PointReader::kMaxReadsAtOnce, reads.size() - done)));
    PostWindow(window, landing);
    landing += window->bytes;
    done += window->reads.size();
    FinishReads();
  }
}

void ClientSession::PostWindow(Window* window, char* landing) {
  const std::span<PointRead> reads = window->reads;
  window->number = ++window_number_;
  window->posted = true;
  reads_under_way_ += reads.size();

  // Connects, which may take time, before anything is posted.
  for (PointRead& read : reads) {
    NodeLink* link = nullptr;
    read.status = Prepare(read, &link);
  }
  // A node's last read rings its doorbell and reports for all.
  ReadSet last_of;
  for (size_t i = reads.size(); i-- > 0;) {
    if (!reads[i].status.ok()) continue;
    if (std::exchange(window_of_[reads[i].from.node], window->number) != window->number) {
      last_of.set(i);
    }
  }
  if (last_of.count() > 1) {
    for (size_t i = 0; i < reads.size(); ++i) {
      // What follows in its own batch is seen by the transport itself.
      if (!last_of[i]) continue;
      const Target& target = targets_[reads[i].from.node];
      if (target.limit == 0) continue;
      target.queue_pair->ExpectRead(
          {.address = target.address + reads[i].from.offset, .key = target.key}, reads[i].length);
    }
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    PointRead& read = reads[i];
    char* const to = landing;
    read.data = to;
    landing += LandingBytes(read.length);
    if (!read.status.ok()) continue;
    const NodeLink& link = *lane_->fabric()->link(read.from.node);
    const bool last = last_of[i];
    const Status s = Post(read, link, window->number << kIndexBits | i, to, last);
    if (!s.ok()) {
      // The one that would report for its predecessors may be missing: give them up as well.
      read.status = s;
      FailNode(window, read.from.node, 0, s);
      continue;
    }
    window->pending.set(i);
    if (last) window->waiting.set(i);
  }
}

Status ClientSession::Prepare(const PointRead& read, NodeLink** link) {
  *link = lane_->fabric()->link(read.from.node);
  if (*link == nullptr) return Status::InvalidArgument("the pool has no such node");
  if (read.from.node >= targets_.size()) {
    targets_.resize(size_t{read.from.node} + 1);
    window_of_.resize(targets_.size());
  }
  Target& target = targets_[read.from.node];
  if (target.queue_pair == nullptr || target.queue_pair->broken()) {
    // Windows that were started before will get no completion from a queue pair that is replaced.
    if (target.queue_pair != nullptr) {
      FailNode(nullptr, read.from.node, 0,
               StatusOfCompletion((*link)->address(), rdma::CompletionCode::kPeerGone));
    }
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
  return PostPointRead(read, link, queue_pair, id, landing, landing_.get(), last);
}

void ClientSession::Await(Window* window) {
  if (window->waiting.none()) return;
  const ClientContext& context = lane_->fabric()->context;
  SpinWait pause(context.clock);
  uint64_t deadline_nanos = 0;
  while (true) {
    rdma::Completion completions[16];
    const int n = queue_->Poll(completions, 16);
    for (int i = 0; i < n; ++i) TakeCompletion(completions[i]);
    if (window->waiting.none()) return;
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
    while (window->waiting.any()) {
      const NodeId node = window->reads[window->waiting._Find_first()].from.node;
      FailNode(window, node, 0,
               Status::TimedOut(lane_->fabric()->link(node)->address() + ": a read did not end"));
    }
    return;
  }
}

void ClientSession::TakeCompletion(const rdma::Completion& completion) {
  const uint64_t number = completion.id >> kIndexBits;
  for (uint64_t i = finished_; i != started_; ++i) {
    Window* window = WindowAt(i);
    if (!window->posted || window->number != number) continue;
    const size_t index = completion.id & ((uint64_t{1} << kIndexBits) - 1);
    if (completion.code == rdma::CompletionCode::kSuccess) {
      window->waiting.reset(index);
      return;
    }
    const NodeId node = window->reads[index].from.node;
    if (!WaitsFor(*window, node)) return;
    // Requests complete in order: what was posted before this one has succeeded.
    FailNode(window, node, index,
             StatusOfCompletion(lane_->fabric()->link(node)->address(), completion.code));
    return;
  }
}

bool ClientSession::WaitsFor(const Window& window, NodeId node) {
  for (size_t i = 0; i < window.reads.size(); ++i) {
    if (window.waiting[i] && window.reads[i].from.node == node) return true;
  }
  return false;
}

void ClientSession::FailNode(Window* window, NodeId node, size_t first, const Status& why) {
  if (window != nullptr) FailReads(window, node, first, why);
  for (uint64_t i = finished_; i != started_; ++i) {
    Window* other = WindowAt(i);
    if (other->posted && WaitsFor(*other, node)) FailReads(other, node, 0, why);
  }
  targets_[node] = Target();
  lane_->Discard(lane_->fabric()->link(node), why);
}

void ClientSession::FailReads(Window* window, NodeId node, size_t first, const Status& why) {
  for (size_t i = first; i < window->reads.size(); ++i) {
    PointRead& read = window->reads[i];
    if (read.from.node == node && window->pending[i]) read.status = why;
  }
  for (size_t i = 0; i < window->reads.size(); ++i) {
    if (window->reads[i].from.node == node) window->waiting.reset(i);
  }
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

}  // namespace nacre::pool
