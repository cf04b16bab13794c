#include "pool/store/mirrored_extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "pool/connect/node_waits.h"
#include "pool/connect/spin_wait.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

using std::chrono::microseconds;

/// A reply within this time is not worth a sleep.
constexpr microseconds kShortestSpin{8};
constexpr microseconds kLongestSpin{32};
/// After a sleep so long the waiter looks whether the nodes are still there. Shorter ones would
/// cost more: a timer before the system's next tick is set for each of them.
constexpr microseconds kLongestSleep{8000};

}  // namespace

MirroredExtent::MirroredExtent(Fabric* fabric, std::unique_ptr<Lane> lane, uint64_t length)
    : fabric_(fabric),
      lane_(std::move(lane)),
      length_(length),
      spin_(kShortestSpin, kLongestSpin) {}

MirroredExtent::~MirroredExtent() {
  for (const Replica& replica : replicas_) {
    if (replica.outstanding > 0) lane_->AbandonWrites(replica.link, Status::Aborted("given up"));
  }
}

Status MirroredExtent::Open(Fabric* fabric, std::vector<ExtentAddr> replicas,
                            std::unique_ptr<MirroredExtent>* extent, uint64_t chosen) {
  std::unique_ptr<Lane> lane;
  return Open(fabric, std::move(replicas), &lane, extent, chosen);
}

Status MirroredExtent::Open(Fabric* fabric, std::vector<ExtentAddr> replicas,
                            std::unique_ptr<Lane>* lane, std::unique_ptr<MirroredExtent>* extent,
                            uint64_t chosen) {
  if (replicas.empty() || replicas.size() > kMaxReplicas) {
    return Status::InvalidArgument(fmt::format("{} replicas of an extent", replicas.size()));
  }
  if (*lane == nullptr) {
    NACRE_RETURN_IF_ERROR(Lane::Create(fabric, kMaxReplicas, lane));
  }
  std::vector<Replica> connected;
  for (const ExtentAddr& replica : replicas) {
    if (replica.length != replicas.front().length) {
      return Status::InvalidArgument("replicas of an extent that differ in length");
    }
    Replica& mine = connected.emplace_back();
    mine.extent = replica;
    NACRE_RETURN_IF_ERROR(fabric->FindLink(replica.start.node, &mine.link));
    mine.taken_slow = mine.link->pace().slow_at(chosen);
    if (!mine.taken_slow && mine.link->pace().slow()) {
      return Status::Unavailable(mine.link->address() + ": slow since it was chosen");
    }
    NACRE_RETURN_IF_ERROR((*lane)->Get(mine.link, &mine.queue_pair,
                                       mine.taken_slow ? Lane::Late::kAwaited : Lane::Late::kLeft));
    NACRE_RETURN_IF_ERROR(Fabric::CheckRange(mine.link, replica.start.offset, replica.length));
  }
  extent->reset(new MirroredExtent(fabric, std::move(*lane), replicas.front().length));
  (*extent)->replicas_ = std::move(connected);
  return Status::OK();
}

Status MirroredExtent::Write(uint64_t offset, const rdma::LocalBuffer& from, uint64_t* ticket) {
  NACRE_RETURN_IF_ERROR(failure_);
  if (lane_ == nullptr) return Status::InvalidArgument("the extent has given its connections up");
  if (from.size == 0 || offset > length_ || from.size > length_ - offset) {
    return Status::InvalidArgument(
        fmt::format("a write of {} bytes at {} of an extent of {}", from.size, offset, length_));
  }
  ++last_ticket_;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if (Status s = Post(i, offset, from); !s.ok()) return s;
  }
  *ticket = last_ticket_;
  return Status::OK();
}

Status MirroredExtent::Post(size_t number, uint64_t offset, const rdma::LocalBuffer& from) {
  Replica& replica = replicas_[number];
  if (replica.outstanding < Lane::kDepth && offset >= replica.from &&
      offset + from.size <= replica.to) [[likely]] {
    return PostPart(number, offset, from, /*last=*/true, /*more=*/false);
  }
  for (uint32_t done = 0; done < from.size;) {
    if (replica.outstanding == Lane::kDepth) NACRE_RETURN_IF_ERROR(AwaitRoom(&replica));
    const uint64_t at = offset + done;
    if (at < replica.from || at >= replica.to) {
      if (Status s = Locate(&replica, at); !s.ok()) return Fail(&replica, s);
    }
    rdma::LocalBuffer part = from;
    part.data += done;
    part.size = static_cast<uint32_t>(std::min<uint64_t>(from.size - done, replica.to - at));
    done += part.size;
    const bool last = done == from.size;
    // A caller that waits for room must not wait for requests that wait for more.
    const bool more = !last && replica.outstanding + 1 < Lane::kDepth;
    NACRE_RETURN_IF_ERROR(PostPart(number, at, part, last, more));
  }
  return Status::OK();
}

Status MirroredExtent::PostPart(size_t number, uint64_t offset, const rdma::LocalBuffer& part,
                                bool last, bool more) {
  Replica& replica = replicas_[number];
  rdma::RemoteBuffer to = replica.start;
  to.address += offset - replica.from;
  // Behind writes that were posted it would complete before them.
  if (replica.outstanding == 0) {
    if (const auto code = replica.queue_pair->WriteNow(part, to); code.has_value()) {
      if (*code != rdma::CompletionCode::kSuccess) [[unlikely]]
        return Fail(&replica, StatusOfCompletion(replica.link->address(), *code));
      if (last) replica.done = last_ticket_;
      return Status::OK();
    }
  }
  const uint64_t id = (last_ticket_ << 1 | (last ? 1 : 0)) << kReplicaBits | number;
  const auto flags = static_cast<uint8_t>(rdma::kSignaled | (more ? rdma::kMore : 0));
  if (Status s = replica.queue_pair->PostWrite(id, part, to, flags); !s.ok())
    return Fail(&replica, s);
  ++replica.outstanding;
  return Status::OK();
}

Status MirroredExtent::Locate(Replica* replica, uint64_t offset) const {
  uint64_t contiguous = 0;
  if (!replica->link->TranslateWrite(replica->extent.start.offset + offset, &replica->start,
                                     &contiguous)) {
    return Status::InvalidArgument(
        fmt::format("{}: no key to write at {}: the slab is not leased to this client",
                    replica->link->address(), replica->extent.start.offset + offset));
  }
  replica->from = offset;
  replica->to = std::min(length_, offset + contiguous);
  return Status::OK();
}

Status MirroredExtent::AwaitRoom(Replica* replica) {
  SpinWait pause(fabric_->context.clock);
  const Deadline deadline = fabric_->context.OperationDeadline();
  while (replica->outstanding == Lane::kDepth) {
    TakeCompletions();
    NACRE_RETURN_IF_ERROR(failure_);
    if (replica->outstanding < Lane::kDepth) break;
    if (pause.TimeToCheckClock() && deadline.Expired()) {
      return Fail(replica, Status::Unavailable(replica->link->address() + ": writes do not end"));
    }
    pause.Pause();
  }
  return Status::OK();
}

void MirroredExtent::TakeCompletions() {
  if (lane_ == nullptr) return;
  constexpr int kAtOnce = 4;  // As a rule there is one a replica; each place is cleared.
  rdma::Completion completions[kAtOnce];
  int n = 0;
  bool failed = false;
  do {
    n = lane_->queue()->Poll(completions, kAtOnce);
    for (int i = 0; i < n; ++i) {
      const uint64_t id = completions[i].id;
      Replica& replica = replicas_[id & (kMaxReplicas - 1)];
      if (completions[i].code != rdma::CompletionCode::kSuccess) [[unlikely]] {
        const Status why = StatusOfCompletion(replica.link->address(), completions[i].code);
        // The first of several failures of one replica tells most.
        if (!replica.failed && failure_.ok()) failure_ = why;
        replica.failed = true;
        failed = true;
        continue;
      }
      --replica.outstanding;
      if ((id >> kReplicaBits & 1) != 0) replica.done = id >> (kReplicaBits + 1);
    }
  } while (n == kAtOnce);
  if (failed) [[unlikely]]
    EndAfterFailure();
}

uint64_t MirroredExtent::Poll() {
  if (failure_.ok()) TakeCompletions();
  return Known();
}

uint64_t MirroredExtent::Known() const {
  uint64_t done = last_ticket_;
  for (const Replica& replica : replicas_) done = std::min(done, replica.done);
  return done;
}

Status MirroredExtent::Await(uint64_t ticket, Deadline deadline) {
  // Where Wait looks itself, a look before it costs system calls for what is not there yet.
  const bool spins = lane_ == nullptr || !lane_->queue()->waits_awake();
  if ((spins ? Poll() : Known()) >= ticket) [[likely]]
    return Status::OK();
  const auto ended = [&] { return Poll() >= ticket || !failure_.ok(); };
  const auto look = [&] { return spins ? spin_.Until(ended, deadline.Remaining()) : ended(); };
  const uint64_t start = fabric_->context.clock->NowNanos();
  for (Replica& replica : replicas_) {
    replica.timed = replica.done >= ticket;
    // Where one replica keeps the writer waiting, it counts that the others did not. Otherwise
    // nothing would be known of memory of this host, and the patience follow from the slow one.
    if (replica.timed) replica.link->mutable_pace()->Note(NodeOperation::kWrite, {});
  }
  const Deadline patience =
      Deadline::After(fabric_->context.clock, fabric_->pace.Patience(NodeOperation::kWrite));
  for (bool done = spins ? look() : !failure_.ok(); !done; done = look()) {
    NoteTimes(ticket, start);
    NACRE_RETURN_IF_ERROR(FailSlow(ticket, /*only_dead=*/true));
    if (deadline.Expired()) return FailSlow(ticket, /*only_dead=*/false);
    auto most = std::min<std::chrono::nanoseconds>(deadline.Remaining(), kLongestSleep);
    if (const auto left = patience.Remaining(); left.count() > 0) {
      most = std::min(most, left);
    } else {
      NACRE_RETURN_IF_ERROR(FailLate(ticket));
    }
    // Without effect on what follows: completions are looked for in any case.
    lane_->queue()->Wait(most).IgnoreError();
  }
  NoteTimes(ticket, start);
  return Known() >= ticket ? Status::OK() : failure_;
}

void MirroredExtent::NoteTimes(uint64_t ticket, uint64_t start_nanos) {
  std::chrono::nanoseconds took{0};
  for (Replica& replica : replicas_) {
    if (replica.timed || replica.done < ticket) continue;
    replica.timed = true;
    if (took.count() == 0)
      took = std::chrono::nanoseconds(fabric_->context.clock->NowNanos() - start_nanos);
    replica.link->mutable_pace()->Note(NodeOperation::kWrite, took);
    if (NodeWaits* const waits = CurrentNodeWaits(); waits != nullptr) [[unlikely]] {
      waits->Add(NodeWaits::What::kLog, replica.link->id(), static_cast<uint64_t>(took.count()));
    }
  }
}

Status MirroredExtent::FailLate(uint64_t ticket) {
  const bool any = std::any_of(replicas_.begin(), replicas_.end(),
                               [&](const Replica& replica) { return replica.done >= ticket; });
  if (!any || waits_for_late_) return Status::OK();
  std::string late;
  for (Replica& replica : replicas_) {
    if (replica.done >= ticket || replica.taken_slow) continue;
    if (!fabric_->pace.NoteLate(replica.link)) continue;
    if (NACRE_PLANTED_BUG("log.late-copy-counted-as-if-it-had-the-write")) {
      replica.done = last_ticket_;
      continue;
    }
    replica.failed = true;
    if (!late.empty()) late += ", ";
    late += replica.link->address();
  }
  if (late.empty()) return Status::OK();
  failure_ = Status::Unavailable(late + ": slow");
  late_ = true;
  EndAfterFailure();
  return failure_;
}

Status MirroredExtent::FailSlow(uint64_t ticket, bool only_dead) {
  std::string slow;
  for (Replica& replica : replicas_) {
    if (replica.done >= ticket || (only_dead && replica.link->alive())) continue;
    replica.failed = true;
    if (!slow.empty()) slow += ", ";
    slow += replica.link->address();
  }
  if (slow.empty()) return Status::OK();
  failure_ = Status::Unavailable(slow + (only_dead ? ": lost" : ": writes do not end"));
  EndAfterFailure();
  return failure_;
}

Status MirroredExtent::Fail(Replica* replica, const Status& why) {
  replica->failed = true;
  if (failure_.ok()) failure_ = why;
  EndAfterFailure();
  return failure_;
}

void MirroredExtent::EndAfterFailure() {
  for (Replica& replica : replicas_) {
    // Not the fault of the other nodes, and nothing to suspect them for.
    const Status why = replica.failed && !late_ ? failure_ : Status::Aborted(failure_.message());
    if (replica.outstanding > 0 &&
        !(late_ && NACRE_PLANTED_BUG("log.write-forgotten-since-its-copy-is-late"))) {
      lane_->AbandonWrites(replica.link, why);
    } else {
      lane_->Discard(replica.link, why);
    }
    replica.queue_pair = nullptr;
    replica.outstanding = 0;
  }
}

bool MirroredExtent::BecameSlow() const {
  return std::any_of(replicas_.begin(), replicas_.end(), [](const Replica& replica) {
    return replica.link->pace().slow() && !replica.taken_slow;
  });
}

std::vector<NodeId> MirroredExtent::failed_nodes() const {
  std::vector<NodeId> nodes;
  for (const Replica& replica : replicas_) {
    if (replica.failed) nodes.push_back(replica.link->id());
  }
  return nodes;
}

std::unique_ptr<Lane> MirroredExtent::TakeLane() {
  if (!failure_.ok() || Poll() != last_ticket_ || !failure_.ok()) return nullptr;
  return std::move(lane_);
}

Status AllocateBuffer(Fabric* fabric, uint64_t bytes, std::unique_ptr<rdma::MemoryRegion>* buffer) {
  return fabric->context.device->AllocateRegion(bytes, rdma::Access::kLocalOnly, buffer);
}

}  // namespace nacre::pool
