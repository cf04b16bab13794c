#include "pool/store/extent_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pool/connect/pool_pace.h"
#include "pool/connect/spin_wait.h"

namespace nacre::pool {

namespace {

/// How much longer a node may take over a chunk than over a record before it is late.
constexpr int kChunkFactor = 4;

}  // namespace

ExtentWrites::ExtentWrites(Fabric* fabric, ConnectionPool* connections, size_t flights,
                           std::unique_ptr<Lane> lane, const WriteKeys* keys)
    : fabric_(fabric),
      connections_(connections),
      keys_(keys),
      flights_(flights),
      lane_(std::move(lane)) {}

ExtentWrites::~ExtentWrites() {
  // Normally all is done; a writer that gave up leaves writes behind.
  if (outstanding_ > 0) Fail(Status::Aborted("given up")).IgnoreError();
  // After a failure, completions of given up writes may still be in the queue.
  if (failure_.ok() && lane_ != nullptr) connections_->GiveLane(std::move(lane_));
}

Status ExtentWrites::Buffered(size_t flight, size_t bytes, Buffer** buffer) {
  NACRE_RETURN_IF_ERROR(AwaitFlight(flight));
  Flight& mine = flights_[flight];
  if (!mine.buffer.valid()) {
    if (Status s = connections_->buffers()->Take(bytes, &mine.buffer); !s.ok()) return Fail(s);
  }
  *buffer = &mine.buffer;
  return Status::OK();
}

Status ExtentWrites::FindTarget(NodeId node, size_t* target) {
  for (*target = 0; *target < targets_.size(); ++*target) {
    if (targets_[*target].link->id() == node) return Status::OK();
  }
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(fabric_->FindLink(node, &link));
  if (lane_ == nullptr) NACRE_RETURN_IF_ERROR(connections_->TakeLane(&lane_));
  rdma::QueuePair* queue_pair = nullptr;
  const bool taken_slow = link->pace().slow();
  NACRE_RETURN_IF_ERROR(
      lane_->Get(link, &queue_pair, taken_slow ? Lane::Late::kAwaited : Lane::Late::kLeft));
  targets_.push_back({.link = link, .taken_slow = taken_slow});
  return Status::OK();
}

bool ExtentWrites::Translate(const NodeLink& link, uint64_t offset, rdma::RemoteBuffer* to,
                             uint64_t* contiguous) const {
  return keys_ == nullptr ? link.TranslateWrite(offset, to, contiguous)
                          : keys_->Translate(link, offset, to, contiguous);
}

Status ExtentWrites::WriteTo(NodeId node, uint64_t offset, rdma::LocalBuffer from, size_t flight) {
  NACRE_RETURN_IF_ERROR(failure_);
  size_t number = 0;
  if (Status s = FindTarget(node, &number); !s.ok()) return Fail(std::move(s));
  Target& target = targets_[number];
  const uint64_t id = uint64_t{flight} << kTargetBits | number;
  while (from.size > 0) {
    NACRE_RETURN_IF_ERROR(AwaitBelow(&target.outstanding, Lane::kDepth));
    uint64_t contiguous = 0;
    rdma::RemoteBuffer to;
    if (!Translate(*target.link, offset, &to, &contiguous)) {
      return Fail(Status::InvalidArgument(
          fmt::format("{}: no key to write at {}: it is not this client's, or the job's",
                      target.link->address(), offset)));
    }
    rdma::LocalBuffer part = from;
    part.size = static_cast<uint32_t>(std::min<uint64_t>(from.size, contiguous));
    // A caller that waits for room must not wait for requests that wait for more.
    const bool more = part.size < from.size && target.outstanding + 1 < Lane::kDepth;
    const auto flags = static_cast<uint8_t>(rdma::kSignaled | (more ? rdma::kMore : 0));
    // Never another connection than that which has the writes before: they would be forgotten.
    if (Status s = lane_->GetConnected(node)->PostWrite(id, part, to, flags); !s.ok()) {
      return Fail(std::move(s));
    }
    target.moved = target.moved || target.outstanding == 0;
    ++target.outstanding;
    ++flights_[flight].outstanding;
    ++outstanding_;
    from.data += part.size;
    from.size -= part.size;
    offset += part.size;
  }
  return Status::OK();
}

void ExtentWrites::Poll() {
  rdma::Completion completions[16];
  int n = 0;
  while (outstanding_ > 0 && (n = lane_->queue()->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      Target& target = targets_[completions[i].id & ((uint64_t{1} << kTargetBits) - 1)];
      if (completions[i].code != rdma::CompletionCode::kSuccess) {
        Fail(StatusOfCompletion(target.link->address(), completions[i].code)).IgnoreError();
        return;
      }
      --target.outstanding;
      target.moved = true;
      --flights_[completions[i].id >> kTargetBits].outstanding;
      --outstanding_;
    }
  }
}

Status ExtentWrites::AwaitBelow(const int* outstanding, int limit) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (*outstanding < limit) return Status::OK();
  SpinWait pause(fabric_->context.clock);
  Deadline deadline = fabric_->context.OperationDeadline();
  int before = outstanding_;
  while (true) {
    Poll();
    NACRE_RETURN_IF_ERROR(failure_);
    if (*outstanding < limit) return Status::OK();
    if (std::exchange(before, outstanding_) != outstanding_) {
      deadline = fabric_->context.OperationDeadline();
    }
    if (!pause.TimeToCheckClock()) {
      pause.Pause();
      continue;
    }
    NACRE_RETURN_IF_ERROR(FailLate(fabric_->context.clock->NowNanos()));
    if (deadline.Expired()) {
      std::string slow;
      for (const Target& target : targets_) {
        if (target.outstanding == 0) continue;
        if (!slow.empty()) slow += ", ";
        slow += target.link->address();
      }
      return Fail(Status::TimedOut(slow + ": writes do not end"));
    }
    pause.Pause();
  }
}

Status ExtentWrites::FailLate(uint64_t now) {
  PoolPace* const pace = &fabric_->pace;
  const std::chrono::nanoseconds patience = pace->Patience(NodeOperation::kWrite);
  bool others_go_on = false;
  std::vector<Target*> late;
  for (Target& target : targets_) {
    if (std::exchange(target.moved, false) || target.outstanding == 0) target.moved_nanos = now;
    // Chunks take longer than records do; that a node is slow may be known from those.
    const auto factor = target.link->pace().slow() ? 1 : kChunkFactor;
    const std::chrono::nanoseconds waited(now - target.moved_nanos);
    if (waited <= factor * patience) {
      others_go_on = true;
    } else if (!target.taken_slow) {
      late.push_back(&target);
    }
  }
  if (!others_go_on) return Status::OK();
  std::string slow;
  for (Target* const target : late) {
    if (!pace->NoteLate(target->link)) continue;
    if (!slow.empty()) slow += ", ";
    slow += target->link->address();
  }
  if (slow.empty()) return Status::OK();
  late_ = true;
  return Fail(Status::TimedOut(slow + ": slow, and others are not"));
}

Status ExtentWrites::Fail(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  for (Target& target : targets_) {
    if (target.outstanding == 0) continue;
    // The other nodes are not to blame, and not to be suspected.
    const bool culprit =
        !late_ && failure_.message().find(target.link->address()) != std::string_view::npos;
    const Status told = culprit ? failure_ : Status::Aborted(failure_.message());
    if (keys_ == nullptr) {
      lane_->AbandonWrites(target.link, told);
    } else {
      lane_->Discard(target.link, told);  // They end with the job's keys.
    }
    target.outstanding = 0;
  }
  outstanding_ = 0;
  for (Flight& flight : flights_) flight.outstanding = 0;
  return failure_;
}

}  // namespace nacre::pool
