#include "memnode/node_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memnode/lane.h"
#include "memnode/request_channel.h"

namespace nacre::memnode {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstBackOff = milliseconds(20);
/// Of a first connection to a node, once another one has not answered at all.
constexpr nanoseconds kNextPatience = milliseconds(1000);
constexpr nanoseconds kLastBackOff = milliseconds(2000);
/// How long the monitor waits for the lifeline of a suspected node to end before it takes the
/// trouble for one of a single connection.
constexpr nanoseconds kSuspicion = milliseconds(100);
/// Of an attempt to reach a node that may be gone for good: it keeps the thread from the others.
/// A node that is there, but slow, is given more by and by, up to kConnectTimeout.
constexpr nanoseconds kJoinTimeout = milliseconds(300);
/// Wake-ups tell of all that happens; this bounds the damage if one is missed.
constexpr nanoseconds kIdle = milliseconds(500);
/// Nothing arrives on a lifeline; the receive is there to be flushed, so all share its memory.
constexpr uint32_t kReceiveBytes = 64;
constexpr int kNodeBits = 16;

uint64_t Nanos(nanoseconds duration) { return static_cast<uint64_t>(duration.count()); }

}  // namespace

NodeMonitor::NodeMonitor(Fabric* fabric, Welcome welcome)
    : fabric_(fabric),
      context_(&fabric->context),
      welcome_(std::move(welcome)),
      wanted_(static_cast<size_t>(fabric->node_count()), false) {
  for (int i = 0; i < fabric->node_count(); ++i) {
    lifelines_.emplace_back().link = fabric->links[static_cast<size_t>(i)].get();
  }
}

Status NodeMonitor::Create(Fabric* fabric, Welcome welcome, std::unique_ptr<NodeMonitor>* monitor) {
  std::unique_ptr<NodeMonitor> result(new NodeMonitor(fabric, std::move(welcome)));
  rdma::Device* device = fabric->context.device;
  const size_t lifelines = std::min(fabric->slots(), kMaxLifelines);
  NACRE_RETURN_IF_ERROR(
      device->CreateCompletionQueue(static_cast<int>(4 * lifelines + 4), &result->queue_));
  NACRE_RETURN_IF_ERROR(
      device->AllocateRegion(kReceiveBytes, rdma::Access::kLocalOnly, &result->region_));
  *monitor = std::move(result);
  return Status::OK();
}

NodeMonitor::~NodeMonitor() {
  stopping_.store(true, std::memory_order_release);
  queue_->Wake();
  if (thread_.joinable()) thread_.Join();
  for (Lifeline& lifeline : lifelines_) lifeline.queue_pair.reset();
}

Status NodeMonitor::ConnectAll() {
  Status failure;
  bool connected = false;
  std::chrono::nanoseconds patience = context_->options.operation_timeout;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    Lifeline* lifeline = &lifelines_[static_cast<size_t>(i)];
    if (lifeline->link->is_self() || !lifeline->link->alive()) continue;
    const uint64_t started = context_->clock->NowNanos();
    const Status s = TryConnect(lifeline, Deadline::After(context_->clock, patience));
    connected = connected || s.ok();
    if (s.ok()) continue;
    if (!s.IsUnavailable() && !s.IsTimedOut()) return s;
    if (failure.ok()) failure = s;
    Lose(lifeline->link, s);
    // Hosts that vanish do so together: the first may take its time, the others may not add to it.
    if (context_->clock->NowNanos() - started >= Nanos(kNextPatience)) {
      patience = std::min(patience, kNextPatience);
    }
  }
  return connected ? Status::OK() : failure;
}

void NodeMonitor::Lose(NodeLink* link, const Status& why) {
  link->SetLost(why);
  fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
}

void NodeMonitor::Start() {
  thread_ = Thread("nacre-monitor", [this] { Loop(); });
}

Status NodeMonitor::AwaitConnected(NodeLink* link) {
  if (link->is_self()) {
    return Status::InvalidArgument(link->address() + ": a node does not connect to itself");
  }
  if (link->state() != NodeLink::State::kUnconnected) return link->CheckUp();
  const Deadline deadline = context_->OperationDeadline();
  MutexLock lock(&mutex_);
  if (link->id() >= wanted_.size()) wanted_.resize(size_t{link->id()} + 1, false);
  wanted_[link->id()] = true;
  queue_->Wake();
  while (link->state() == NodeLink::State::kUnconnected && !deadline.Expired()) {
    connected_.WaitFor(deadline.Remaining());
  }
  return link->CheckUp();
}

void NodeMonitor::Suspect(NodeLink* link, const Status& why) {
  link->Suspect(why);
  queue_->Wake();
}

void NodeMonitor::Loop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    TakeCompletions();
    uint64_t next = context_->clock->NowNanos() + Nanos(kIdle);
    for (int i = 0; i < fabric_->node_count(); ++i) {
      next = std::min(next, Step(&lifelines_[static_cast<size_t>(i)]));
    }
    if (context_->options.nodes_join) {
      FindCandidates();
      next = std::min(next, TryCandidates());
    }
    const uint64_t now = context_->clock->NowNanos();
    if (next <= now) continue;
    const Status woken = queue_->Wait(nanoseconds(next - now));
    // A queue that cannot be waited for leaves polling.
    if (!woken.ok() && !woken.IsTimedOut()) context_->clock->SleepFor(milliseconds(10));
  }
}

void NodeMonitor::TakeCompletions() {
  rdma::Completion completions[16];
  int n = 0;
  while ((n = queue_->Poll(completions, 16)) > 0) {
    for (int i = 0; i < n; ++i) {
      Lifeline& lifeline = lifelines_[completions[i].id & UINT16_MAX];
      // One of an earlier lifeline to the same node says nothing.
      if (completions[i].id >> kNodeBits == lifeline.attempt) lifeline.failed = true;
    }
  }
}

void NodeMonitor::HangUp(Lifeline* lifeline) {
  if (lifeline->queue_pair == nullptr) return;
  // Before the node hears of it.
  fabric_->hang_ups.fetch_add(1);
  lifeline->queue_pair.reset();
}

Deadline NodeMonitor::AttemptDeadline() const {
  return Deadline::After(
      context_->clock, std::min<nanoseconds>(kConnectTimeout, context_->options.operation_timeout));
}

uint64_t NodeMonitor::Step(Lifeline* lifeline) {
  NodeLink* link = lifeline->link;
  if (link->is_self()) return UINT64_MAX;
  const uint64_t now = context_->clock->NowNanos();

  if (lifeline->queue_pair != nullptr && (lifeline->failed || lifeline->queue_pair->broken())) {
    lifeline->suspected = false;
    lifeline->back_off = kFirstBackOff;
    lifeline->act_at_nanos = now + Nanos(lifeline->back_off);
    link->SetCutOff(Status::Unavailable(link->address() + ": connection lost"));
    HangUp(lifeline);
    fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
  }

  switch (link->state()) {
    case NodeLink::State::kLost:
      // If it lives, it may be followed.
      HangUp(lifeline);
      return UINT64_MAX;
    case NodeLink::State::kUp:
      lifeline->suspected = false;
      return UINT64_MAX;
    case NodeLink::State::kUnconnected: {
      {
        MutexLock lock(&mutex_);
        if (link->id() >= wanted_.size() || !wanted_[link->id()]) return UINT64_MAX;
      }
      if (Status s = TryConnect(lifeline, AttemptDeadline()); !s.ok()) {
        lifeline->back_off = kFirstBackOff;
        lifeline->act_at_nanos = context_->clock->NowNanos() + Nanos(lifeline->back_off);
        link->SetDown(s);
      }
      MutexLock lock(&mutex_);
      connected_.SignalAll();
      return link->state() == NodeLink::State::kUp ? UINT64_MAX : lifeline->act_at_nanos;
    }
    case NodeLink::State::kDown:
      break;
  }

  if (lifeline->queue_pair != nullptr) {
    if (!lifeline->suspected) {
      lifeline->suspected = true;
      lifeline->act_at_nanos = now + Nanos(kSuspicion);
    } else if (now >= lifeline->act_at_nanos) {
      lifeline->suspected = false;
      link->SetUp();
      // Roots may have been published without it meanwhile.
      fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
      return UINT64_MAX;
    }
    return lifeline->act_at_nanos;
  }
  if (now < lifeline->act_at_nanos) return lifeline->act_at_nanos;
  if (Status s = TryConnect(lifeline, AttemptDeadline()); !s.ok()) {
    if (IsOtherInstance(s) || s.IsNotFound()) {
      Lose(link, s);
      return UINT64_MAX;
    }
    link->SetDown(s);
    lifeline->back_off = std::min(2 * lifeline->back_off, kLastBackOff);
    lifeline->act_at_nanos = context_->clock->NowNanos() + Nanos(lifeline->back_off);
    return lifeline->act_at_nanos;
  }
  return UINT64_MAX;
}

void NodeMonitor::AddNode(const std::string& address) {
  MutexLock lock(&mutex_);
  added_.push_back(address);
  queue_->Wake();
}

void NodeMonitor::AwaitNode(const std::string& address, Deadline deadline) {
  if (Knows(address)) return;
  AddNode(address);
  MutexLock lock(&mutex_);
  while (!Knows(address) && !not_reached_.contains(address) && !deadline.Expired()) {
    connected_.WaitFor(deadline.Remaining());
  }
}

bool NodeMonitor::Knows(const std::string& address) const {
  for (int i = 0; i < fabric_->node_count(); ++i) {
    if (fabric_->link(static_cast<NodeId>(i))->address() == address) return true;
  }
  return false;
}

void NodeMonitor::FindCandidates() {
  for (int i = 0; i < fabric_->node_count(); ++i) {
    Lifeline& lifeline = lifelines_[static_cast<size_t>(i)];
    if (lifeline.followed || lifeline.link->state() != NodeLink::State::kLost) continue;
    lifeline.followed = true;
    Follow(lifeline.link->address());
  }
  std::vector<std::string> added;
  {
    MutexLock lock(&mutex_);
    added.swap(added_);
  }
  for (const std::string& address : added) {
    // The address of a node that was lost is looked after already.
    if (!Knows(address)) Follow(address);
  }
}

void NodeMonitor::Follow(const std::string& address) {
  for (const Candidate& candidate : candidates_) {
    if (candidate.address == address) return;
  }
  candidates_.push_back({.address = address, .back_off = kFirstBackOff, .patience = kJoinTimeout});
}

uint64_t NodeMonitor::TryCandidates() {
  uint64_t next = UINT64_MAX;
  for (size_t i = 0; i < candidates_.size();) {
    Candidate& candidate = candidates_[i];
    const uint64_t now = context_->clock->NowNanos();
    if (now >= candidate.act_at_nanos) {
      const bool joined = Join(&candidate).ok();
      {
        MutexLock lock(&mutex_);
        if (!joined) not_reached_.insert(candidate.address);
        connected_.SignalAll();
      }
      if (joined) {
        candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(i));
        continue;
      }
      candidate.act_at_nanos = context_->clock->NowNanos() + Nanos(candidate.back_off);
      candidate.back_off = std::min(2 * candidate.back_off, kLastBackOff);
    }
    next = std::min(next, candidate.act_at_nanos);
    ++i;
  }
  return next;
}

Status NodeMonitor::Join(Candidate* candidate) {
  const std::string& address = candidate->address;
  const auto slot = static_cast<size_t>(fabric_->node_count());
  if (slot == fabric_->slots()) {
    return Status::NoSpace(
        fmt::format("{}: all {} slots for nodes have been used", address, fabric_->slots()));
  }
  const auto alive = std::count_if(lifelines_.begin(), lifelines_.end(),
                                   [](const Lifeline& l) { return l.queue_pair != nullptr; });
  if (static_cast<size_t>(alive) >= kMaxLifelines) {
    return Status::NoSpace(
        fmt::format("{}: {} nodes are connected, and no more can be", address, alive));
  }
  if (slot == lifelines_.size()) lifelines_.emplace_back();
  // Nobody knows of the slot before it is taken.
  std::unique_ptr<NodeLink>& link = fabric_->links[slot];
  Lifeline* lifeline = &lifelines_[slot];
  link = std::make_unique<NodeLink>(context_, static_cast<NodeId>(slot), address);
  lifeline->link = link.get();
  lifeline->failed = false;
  ++lifeline->attempt;
  const Deadline deadline = Deadline::After(
      context_->clock,
      std::min<nanoseconds>(candidate->patience, context_->options.operation_timeout));
  std::unique_ptr<RequestChannel> channel;
  Status s = Introduce(lifeline, deadline, &channel);
  if (s.ok()) s = welcome_(link.get(), /*returns=*/false, deadline);
  if (!s.ok()) {
    if (deadline.Expired() && lifeline->queue_pair != nullptr) {
      candidate->patience = std::min<nanoseconds>(2 * candidate->patience, kConnectTimeout);
    }
    HangUp(lifeline);
    return s;
  }
  link->SetUp();
  link->GiveChannel(std::move(channel));
  fabric_->taken.store(static_cast<int>(slot) + 1, std::memory_order_release);
  fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
  return s;
}

Status NodeMonitor::TryConnect(Lifeline* lifeline, Deadline deadline) {
  lifeline->failed = false;
  ++lifeline->attempt;
  std::unique_ptr<RequestChannel> channel;
  Status s = Introduce(lifeline, deadline, &channel);
  const bool returns = databases_.load(std::memory_order_relaxed) > 0;
  if (s.ok() && returns) s = welcome_(lifeline->link, returns, deadline);
  if (!s.ok()) {
    HangUp(lifeline);
    return s;
  }
  lifeline->link->SetUp();
  lifeline->link->GiveChannel(std::move(channel));
  if (returns) fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
  return s;
}

Status NodeMonitor::Introduce(Lifeline* lifeline, Deadline deadline,
                              std::unique_ptr<RequestChannel>* channel) {
  NodeLink* link = lifeline->link;
  NACRE_RETURN_IF_ERROR(link->Connect(context_->device, ConnectionKind::kLifeline,
                                      rdma::QueueDepths{.send = 2, .receive = 2}, queue_.get(),
                                      deadline, &lifeline->queue_pair));
  NACRE_RETURN_IF_ERROR(lifeline->queue_pair->PostRecv(
      lifeline->attempt << kNodeBits | link->id(),
      {.data = region_->data(), .size = kReceiveBytes, .region = region_.get()}));
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(context_, link, deadline, channel));
  control::Request request;
  request.mutable_describe();
  control::Reply reply;
  NACRE_RETURN_IF_ERROR((*channel)->Call(&request, deadline, &reply));
  NACRE_RETURN_IF_ERROR(GetStatus(reply).WithContext(link->address()));
  return link->SetDescription(reply.description());
}

}  // namespace nacre::memnode
