#include "pool/read/client_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "pool/connect/node_waits.h"
#include "pool/connect/pool_pace.h"
#include "pool/connect/spin_wait.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

/// Each read lands on a cache line of its own.
constexpr size_t kLandingAlignment = 64;

using std::chrono::nanoseconds;

constexpr size_t LandingBytes(uint32_t length) {
  return (size_t{length} + kLandingAlignment - 1) / kLandingAlignment * kLandingAlignment;
}

/// A request that ends so at once was posted to a connection that had broken before, as those of a
/// process do that is cut off for a while. That says nothing of the node.
bool HadBroken(rdma::CompletionCode code) {
  return code == rdma::CompletionCode::kPeerGone || code == rdma::CompletionCode::kFlushed;
}

}  // namespace

Status ClientSession::Create(Fabric* fabric, std::unique_ptr<ClientSession>* session) {
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(Lane::Create(fabric, 1, &lane));
  std::unique_ptr<ClientSession> result(new ClientSession(std::move(lane)));
  NACRE_RETURN_IF_ERROR(result->EnsureLanding(kLandingBytes));
  *session = std::move(result);
  return Status::OK();
}

bool ClientSession::ReadOne(PointRead* read) {
  const size_t node = read->from.node;
  if (node >= targets_.size()) [[unlikely]]
    return false;
  Target& target = targets_[node];
  const uint64_t offset = read->from.offset;
  const uint32_t length = read->length;
  // An unconnected target has limit 0.
  if (offset + length > target.limit || length > landing_bytes_ ||
      landing_bytes_ > kMaxKeptLandingBytes) [[unlikely]] {
    return false;
  }
  const uint64_t number = target.posted + 1;
  const uint64_t id = IdOf(static_cast<NodeId>(node), number);
  if (!target.queue_pair
           ->PostRead(id, {.data = landing_data_, .size = length, .region = landing_.get()},
                      {.address = target.address + offset, .key = target.key}, rdma::kSignaled)
           .ok()) [[unlikely]] {
    return false;
  }
  target.posted = number;
  read->data = landing_data_;
  rdma::Completion completion;
  const bool any = queue_->Poll(&completion, 1) == 1;
  if (any && completion.id == id) [[likely]] {
    if (completion.code == rdma::CompletionCode::kSuccess) [[likely]] {
      target.ended = number;
      if (!read->status.ok()) [[unlikely]]
        read->status = Status::OK();
      return true;
    }
    if (HadBroken(completion.code) && target.ended + 1 == number) {
      // Nothing else is under way on it: the long way connects again.
      target = {.posted = number, .ended = number};
      return false;
    }
  }
  read->status = Status::OK();
  Window* window = BeginWindow({read, 1});
  window->posted = true;
  window->last_of.set(0);
  window->numbers[0] = number;
  if (any) Take(completion);
  Await(*window);
  ++finished_;
  return true;
}

ClientSession::Window* ClientSession::BeginWindow(std::span<PointRead> reads) {
  Window* window = WindowAt(started_++);
  window->reads = reads;
  window->bytes = 0;
  window->posted = false;
  window->last_of.reset();
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
  Await(*window);
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
  window->posted = true;
  ++posted_;
  std::fill_n(window->numbers.begin(), reads.size(), 0);
  reads_under_way_ += reads.size();

  // Connects, which may take time, before anything is posted.
  for (PointRead& read : reads) {
    read.status = Connect(read.from.node, read.patience == 0);
    if (!read.status.ok()) [[unlikely]]
      continue;
    read.status = Fabric::CheckRange(fabric().link(read.from.node), read.from.offset, read.length);
  }
  // A node's last read rings its doorbell and reports for all.
  if (window_of_.size() < targets_.size()) window_of_.resize(targets_.size());
  for (size_t i = reads.size(); i-- > 0;) {
    if (!reads[i].status.ok()) continue;
    if (std::exchange(window_of_[reads[i].from.node], posted_) != posted_) window->last_of.set(i);
  }
  if (window->last_of.count() > 1) {
    for (size_t i = 0; i < reads.size(); ++i) {
      // What follows in its own batch is seen by the transport itself.
      if (!window->last_of[i]) continue;
      const Target& target = targets_[reads[i].from.node];
      if (target.limit == 0) continue;
      target.queue_pair->ExpectRead(
          {.address = target.address + reads[i].from.offset, .key = target.key}, reads[i].length);
    }
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i].data = landing;
    if (reads[i].status.ok()) PostRead(reads[i], landing, window->last_of[i], &window->numbers[i]);
    landing += LandingBytes(reads[i].length);
  }
}

void ClientSession::Await(const Window& window) {
  const ClientContext& context = fabric().context;
  SpinWait pause(context.clock);
  uint64_t start_nanos = 0;
  int late_looks = 0;
  const auto waited = [&] { return nanoseconds(context.clock->NowNanos() - start_nanos); };
  nanoseconds for_others{0};
  const auto note_wait = [&](NodeId node) {
    NodeWaits* const waits = CurrentNodeWaits();
    if (waits == nullptr) [[likely]]
      return;
    const nanoseconds before = std::exchange(for_others, waited());
    waits->Add(NodeWaits::What::kRead, node, static_cast<uint64_t>((for_others - before).count()));
  };
  for (size_t i = window.last_of._Find_first(); i < window.reads.size();) {
    const NodeId node = window.reads[i].from.node;
    if (HasEnded(node, window.numbers[i])) {
      if (start_nanos != 0) {
        fabric().link(node)->mutable_pace()->Note(NodeOperation::kRead, waited());
        note_wait(node);
      }
      i = window.last_of._Find_next(i);
      continue;
    }
    if (Poll([](NodeId) {}) > 0) continue;
    if (start_nanos == 0) start_nanos = context.clock->NowNanos();
    pause.Pause();
    if (!pause.TimeToCheckClock()) continue;
    const nanoseconds so_far = waited();
    if (so_far >= context.options.operation_timeout) {
      GiveUpLate(node);
    } else if (MayLeave(window, node, so_far, &late_looks)) {
      LeaveBehind(window, node);
      note_wait(node);
      i = window.last_of._Find_next(i);
      late_looks = 0;
    }
  }
}

bool ClientSession::MayLeave(const Window& window, NodeId node, nanoseconds waited,
                             int* late_looks) {
  int patience = 0;
  for (const PointRead& read : window.reads) {
    if (read.from.node != node) continue;
    if (read.patience == 0) return false;
    patience = std::max(patience, read.patience);
  }
  PoolPace* const pace = &fabric().pace;
  if (waited <= patience * pace->Patience(NodeOperation::kRead)) return false;
  if (++*late_looks <= PoolPace::kLateLooks) return false;
  NodeLink* const link = fabric().link(node);
  return pace->MayHedge({&link, 1}, /*again=*/*late_looks > PoolPace::kLateLooks + 1);
}

void ClientSession::LeaveBehind(const Window& window, NodeId node) {
  if (left_.size() == kMaxLeft && landing_ != nullptr) {
    // The node is there, and may have to be awaited soon, as others may be late, too.
    return GiveUp(node, Status::TimedOut(fabric().link(node)->address() + ": slow"),
                  /*backs_off=*/false);
  }
  uint64_t last = 0;
  for (size_t i = 0; i < window.reads.size(); ++i) {
    PointRead& read = window.reads[i];
    if (read.from.node != node || HasEnded(node, window.numbers[i])) continue;
    read.status = Status::TimedOut(fabric().link(node)->address() + ": slow");
    last = std::max(last, window.numbers[i]);
  }
  if (NACRE_PLANTED_BUG("read.late-read-lands-where-others-do")) return;
  // Other windows may be on their way to the same memory, and be left behind, too.
  if (landing_ != nullptr) {
    left_.push_back({.landing = std::move(landing_), .last = {}});
    landing_data_ = nullptr;
    landing_bytes_ = 0;
    landing_used_ = 0;
  }
  if (!left_.empty()) left_.back().last.emplace_back(node, last);
}

void ClientSession::ForgetEnded() {
  if (left_.empty()) [[likely]]
    return;
  Poll([](NodeId) {});
  std::erase_if(left_, [this](const Left& left) {
    return std::all_of(left.last.begin(), left.last.end(),
                       [this](const auto& last) { return HasEnded(last.first, last.second); });
  });
}

void ClientSession::FailReads(NodeId node, uint64_t first, const Status& why) {
  for (uint64_t i = finished_; i != started_; ++i) {
    const Window& window = *WindowAt(i);
    if (!window.posted) continue;
    for (size_t j = 0; j < window.reads.size(); ++j) {
      PointRead& read = window.reads[j];
      if (read.from.node == node && window.numbers[j] >= first) read.status = why;
    }
  }
}

Status ClientSession::EnsureLanding(size_t bytes) {
  ForgetEnded();
  if (bytes <= landing_bytes_ &&
      (landing_bytes_ <= kMaxKeptLandingBytes || bytes > kMaxKeptLandingBytes)) {
    return Status::OK();
  }
  // Nothing is outstanding between calls, so the old memory may go.
  NACRE_RETURN_IF_ERROR(AllocateLanding(std::max(std::bit_ceil(bytes), kLandingBytes)));
  landing_data_ = landing_->data();
  landing_bytes_ = landing_->size();
  return Status::OK();
}

}  // namespace nacre::pool
