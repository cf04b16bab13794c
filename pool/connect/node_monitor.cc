#include "pool/connect/node_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pool/connect/fabric.h"
#include "pool/connect/pool_pace.h"
#include "pool/connect/request_channel.h"
#include "pool/wire/control.pb.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstBackOff = milliseconds(20);
/// Patience with a first connection to a node, once another one has not answered at all.
constexpr nanoseconds kNextPatience = milliseconds(1000);
constexpr nanoseconds kLastBackOff = milliseconds(2000);
/// How long the monitor waits for the lifeline of a suspected node to end before it asks the node
/// whether the trouble was one of a single connection.
constexpr nanoseconds kSuspicion = milliseconds(100);
/// How long such a node may take to answer before the members of roots go on without it.
constexpr nanoseconds kSilence = milliseconds(100);
/// Patience with an attempt to reach a node that may be gone for good, or one that was there a
/// moment ago. A slow one is given more by and by, up to kConnectTimeout.
constexpr nanoseconds kFirstPatience = milliseconds(300);
constexpr nanoseconds kReturnPatience = milliseconds(1000);
/// How long a slow node may be silent before it counts as down. Machines that pause do so for
/// shorter, as a rule, and are asked nothing meanwhile but whether they are back.
constexpr nanoseconds kSlowPatience = milliseconds(3000);
/// A node that has answered a knock is given so many times as long to take its client in.
constexpr int kSlack = 10;
/// Nodes that are asked at once whether they are there.
constexpr size_t kMaxKnocks = 16;
/// Wake-ups tell of all that happens; this bounds the damage if one is missed.
constexpr nanoseconds kIdle = milliseconds(500);
/// Nothing arrives on a lifeline; the receive is there to be flushed, so all share its memory.
constexpr uint32_t kReceiveBytes = 64;
constexpr int kNodeBits = 16;

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
  Stop();
  // They wake the queue.
  candidates_.clear();
  for (Lifeline& lifeline : lifelines_) {
    lifeline.attempts.knock.reset();
    lifeline.probe.reset();
  }
  for (Lifeline& lifeline : lifelines_) lifeline.queue_pair.reset();
}

void NodeMonitor::CutOffThoseWithout() {
  const FeatureSet on = fabric_->features_on();
  if (on == checked_features_) return;
  checked_features_ = on;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    Lifeline* const lifeline = &lifelines_[static_cast<size_t>(i)];
    if (lifeline->queue_pair == nullptr) continue;
    if (const Status s = fabric_->CheckFeatures(*lifeline->link); !s.ok()) CutOff(lifeline, s);
  }
}

Status NodeMonitor::ConnectAll() {
  const nanoseconds most = context_->options.operation_timeout;
  std::vector<Lifeline*> slow;
  Connecting result;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    Lifeline* lifeline = &lifelines_[static_cast<size_t>(i)];
    if (lifeline->link->is_self() || !lifeline->link->alive()) continue;
    // Nodes that are there answer one after the other as fast as their client can ask. From the
    // first silent one on, no node waits for another one.
    if (!slow.empty()) {
      slow.push_back(lifeline);
      continue;
    }
    const Deadline deadline = Deadline::After(context_->clock, std::min(most, kFirstPatience));
    const Status s = TryConnect(lifeline, deadline);
    if (!s.ok() && deadline.Expired()) {
      slow.push_back(lifeline);
    } else {
      NACRE_RETURN_IF_ERROR(result.Take(this, lifeline, s));
    }
  }
  NACRE_RETURN_IF_ERROR(ConnectSlow(&slow, &result));
  CutOffThoseWithout();
  return result.connected ? Status::OK() : result.failure;
}

Status NodeMonitor::Connecting::Take(NodeMonitor* monitor, Lifeline* lifeline, const Status& s) {
  lifeline->attempts = Attempts();
  connected = connected || s.ok();
  if (s.ok()) return s;
  if (!s.IsUnavailable() && !s.IsTimedOut()) return s;
  if (failure.ok()) failure = s;
  monitor->Lose(lifeline->link, s);
  return Status::OK();
}

Status NodeMonitor::ConnectSlow(std::vector<Lifeline*>* slow, Connecting* result) {
  nanoseconds patience = context_->options.operation_timeout;
  while (!slow->empty()) {
    for (size_t i = 0; i < slow->size();) {
      Lifeline* const lifeline = (*slow)[i];
      NodeLink* const link = lifeline->link;
      lifeline->attempts.patience = std::min<nanoseconds>(patience, kConnectTimeout);
      Status s;
      const Answer answer = Knock(&lifeline->attempts, link->address(), link->instance_id(), &s);
      if (answer == Answer::kNone) {
        ++i;
        continue;
      }
      if (answer == Answer::kYes) {
        s = ConnectAgain(lifeline);
      } else if (s.IsTimedOut() || s.IsUnavailable()) {
        // Hosts that vanish do so together: the first may take their time, others may not add to
        // it.
        patience = std::min(patience, kNextPatience);
      }
      NACRE_RETURN_IF_ERROR(result->Take(this, lifeline, s));
      slow->erase(slow->begin() + static_cast<ptrdiff_t>(i));
    }
    // The end of a knock wakes it; so do nodes that hang up, of which the thread will learn.
    TakeCompletions();
    if (slow->empty()) break;
    const Status woken = queue_->Wait(kIdle);
    if (!woken.ok() && !woken.IsTimedOut()) context_->clock->SleepFor(milliseconds(10));
  }
  return Status::OK();
}

Status NodeMonitor::ConnectAgain(Lifeline* lifeline) {
  const Deadline deadline = Deadline::After(
      context_->clock,
      std::min<nanoseconds>(lifeline->attempts.patience, context_->options.operation_timeout));
  while (true) {
    const Status s = TryConnect(lifeline, deadline);
    // It has yet to notice that a connection was given up, which it was too slow for.
    if (!s.IsUnavailable() || deadline.Expired()) return s;
    context_->clock->SleepFor(kFirstBackOff);
  }
}

void NodeMonitor::Lose(NodeLink* link, const Status& why) {
  link->SetLost(why);
  fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
}

void NodeMonitor::Start() {
  thread_ = Thread("nacre-monitor", [this] { Loop(); });
}

void NodeMonitor::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  queue_->Wake();
  thread_.Join();
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
    CutOffThoseWithout();
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
      if (completions[i].id >> kNodeBits == lifeline.number) lifeline.failed = true;
    }
  }
}

void NodeMonitor::HangUp(Lifeline* lifeline) {
  if (lifeline->queue_pair == nullptr) return;
  // Before the node hears of it.
  fabric_->hang_ups.fetch_add(1);
  lifeline->queue_pair.reset();
}

// ---- Attempts -----------------------------------------------------------------------------------

NodeMonitor::Answer NodeMonitor::Knock(Attempts* attempts, const std::string& address,
                                       uint64_t instance_id, Status* why) {
  if (attempts->knock == nullptr) {
    if (context_->clock->NowNanos() < attempts->act_at_nanos || knocks_ == kMaxKnocks) {
      return Answer::kNone;
    }
    attempts->patience = std::max(attempts->patience, kFirstPatience);
    ++knocks_;
    attempts->knock = std::make_unique<NodeKnock>(
        *context_, address, instance_id,
        std::min<nanoseconds>(attempts->patience, context_->options.operation_timeout),
        [this] { queue_->Wake(); });
    return Answer::kNone;
  }
  if (!attempts->knock->done()) return Answer::kNone;
  --knocks_;
  const std::unique_ptr<NodeKnock> knock = std::move(attempts->knock);
  if (!knock->status().ok()) {
    *why = knock->status();
    BackOff(attempts, *why);
    return Answer::kNo;
  }
  attempts->patience =
      std::clamp<nanoseconds>(kSlack * knock->took(), attempts->patience, kConnectTimeout);
  return Answer::kYes;
}

uint64_t NodeMonitor::NextLook(const Attempts& attempts) const {
  // The end of a knock wakes the thread; of others, too, if there are too many for this one.
  return attempts.knock != nullptr || knocks_ == kMaxKnocks ? UINT64_MAX : attempts.act_at_nanos;
}

void NodeMonitor::BackOff(Attempts* attempts, const Status& why) {
  if (why.IsTimedOut() || why.IsUnavailable()) {
    attempts->patience = std::min<nanoseconds>(2 * attempts->patience, kConnectTimeout);
  }
  attempts->back_off = std::clamp(2 * attempts->back_off, kFirstBackOff, kLastBackOff);
  attempts->act_at_nanos = context_->clock->NowNanos() + Nanos(attempts->back_off);
}

// ---- Nodes of the pool --------------------------------------------------------------------------

void NodeMonitor::CutOff(Lifeline* lifeline, const Status& why) {
  NodeLink* link = lifeline->link;
  lifeline->suspected = false;
  lifeline->attempts.patience = kReturnPatience;
  lifeline->attempts.back_off = kFirstBackOff;
  lifeline->attempts.act_at_nanos = context_->clock->NowNanos() + Nanos(kFirstBackOff);
  link->SetCutOff(why);
  HangUp(lifeline);
  fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
}

uint64_t NodeMonitor::Step(Lifeline* lifeline) {
  NodeLink* link = lifeline->link;
  if (link->is_self()) return UINT64_MAX;
  if (lifeline->queue_pair != nullptr && (lifeline->failed || lifeline->queue_pair->broken())) {
    CutOff(lifeline, Status::Unavailable(link->address() + ": connection lost"));
  }
  switch (link->state()) {
    case NodeLink::State::kLost: {
      // If it lives, it may be followed.
      HangUp(lifeline);
      NodeKnock* const knock = lifeline->attempts.knock.get();
      if (knock != nullptr && knock->done()) {
        lifeline->attempts.knock.reset();
        --knocks_;
      }
      return UINT64_MAX;
    }
    case NodeLink::State::kUp:
      lifeline->suspected = false;
      return StepSlow(lifeline);
    case NodeLink::State::kUnconnected: {
      MutexLock lock(&mutex_);
      if (link->id() >= wanted_.size() || !wanted_[link->id()]) return UINT64_MAX;
      lifeline->attempts.patience = kConnectTimeout;  // A caller waits for it.
      break;
    }
    case NodeLink::State::kDown:
      break;
  }
  return lifeline->queue_pair != nullptr ? StepSuspected(lifeline) : StepUnreached(lifeline);
}

uint64_t NodeMonitor::StepSlow(Lifeline* lifeline) {
  NodeLink* const link = lifeline->link;
  PoolPace* const pace = &fabric_->pace;
  if (lifeline->probe != nullptr) {
    if (!lifeline->probe->done()) return UINT64_MAX;  // Its end wakes the thread.
    const std::unique_ptr<NodeProbe> probe = std::move(lifeline->probe);
    const Status& status = probe->status();
    if (!link->pace().slow()) return UINT64_MAX;  // It was reached anew since.
    if (status.ok()) {
      pace->NoteProbe(link, probe->longest_read(), probe->longest_request());
    } else if (status.IsTimedOut() && probe->answered()) {
      pace->NoteProbe(link, nanoseconds::max(), nanoseconds::max());  // It is there, and as slow.
    } else {
      // It may be stopped, or its network gone, and is down until it answers.
      Suspect(link, status);
      return context_->clock->NowNanos();
    }
  }
  if (!link->pace().slow()) return UINT64_MAX;
  const uint64_t at = pace->ProbeAt(*link);
  if (context_->clock->NowNanos() < at) return at;
  lifeline->probe = std::make_unique<NodeProbe>(
      *context_, link, std::min<nanoseconds>(kSlowPatience, context_->options.operation_timeout),
      [this] { queue_->Wake(); });
  return UINT64_MAX;
}

uint64_t NodeMonitor::StepSuspected(Lifeline* lifeline) {
  const uint64_t now = context_->clock->NowNanos();
  Attempts* attempts = &lifeline->attempts;
  if (!lifeline->suspected) {
    lifeline->suspected = true;
    lifeline->silent_at_nanos = now + Nanos(kSuspicion + kSilence);
    attempts->patience = kReturnPatience;
    attempts->back_off = nanoseconds(0);
    attempts->act_at_nanos = now + Nanos(kSuspicion);
  }
  Status why;
  const Answer answer =
      Knock(attempts, lifeline->link->address(), lifeline->link->instance_id(), &why);
  if (answer == Answer::kYes) {
    lifeline->suspected = false;
    fabric_->pace.Forget(lifeline->link);
    lifeline->link->SetUp();
    // Roots may have been published without it meanwhile.
    fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
    return UINT64_MAX;
  }
  if (answer == Answer::kNo) lifeline->link->SetDown(why);
  uint64_t next = NextLook(*attempts);
  if (lifeline->silent_at_nanos != 0) {
    if (now < lifeline->silent_at_nanos) return std::min(next, lifeline->silent_at_nanos);
    lifeline->silent_at_nanos = 0;
    fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
  }
  return next;
}

uint64_t NodeMonitor::StepUnreached(Lifeline* lifeline) {
  NodeLink* link = lifeline->link;
  Attempts* attempts = &lifeline->attempts;
  Status s;
  const Answer answer = Knock(attempts, link->address(), link->instance_id(), &s);
  if (answer == Answer::kNone) return NextLook(*attempts);
  if (answer == Answer::kYes) {
    const nanoseconds most = context_->options.operation_timeout;
    s = TryConnect(lifeline, Deadline::After(context_->clock, std::min(attempts->patience, most)));
    if (!s.ok()) BackOff(attempts, s);
  }
  if (IsOtherInstance(s) || s.IsNotFound()) {
    Lose(link, s);
  } else if (!s.ok()) {
    link->SetDown(s);
  } else {
    *attempts = Attempts();
  }
  MutexLock lock(&mutex_);
  connected_.SignalAll();
  return link->state() == NodeLink::State::kDown ? attempts->act_at_nanos : UINT64_MAX;
}

Status NodeMonitor::JoinRefusal() const {
  MutexLock lock(&mutex_);
  return join_refusal_;
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
  candidates_.push_back({.address = address, .attempts = {}});
}

uint64_t NodeMonitor::TryCandidates() {
  uint64_t next = UINT64_MAX;
  for (size_t i = 0; i < candidates_.size();) {
    Candidate& candidate = candidates_[i];
    Status s;
    const Answer answer = Knock(&candidate.attempts, candidate.address, /*instance_id=*/0, &s);
    if (answer == Answer::kYes) {
      s = Join(candidate);
      if (!s.ok()) BackOff(&candidate.attempts, s);
    }
    if (answer != Answer::kNone) {
      MutexLock lock(&mutex_);
      if (s.ok() || s.IsNoSpace()) join_refusal_ = s;
      if (!s.ok()) not_reached_.insert(candidate.address);
      connected_.SignalAll();
    }
    if (answer == Answer::kYes && s.ok()) {
      candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    next = std::min(next, NextLook(candidate.attempts));
    ++i;
  }
  return next;
}

Status NodeMonitor::Join(const Candidate& candidate) {
  const std::string& address = candidate.address;
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
  // The slot is unknown to other threads before it is taken.
  std::unique_ptr<NodeLink>& link = fabric_->links[slot];
  Lifeline* lifeline = &lifelines_[slot];
  link = std::make_unique<NodeLink>(context_, static_cast<NodeId>(slot), address);
  lifeline->link = link.get();
  lifeline->failed = false;
  ++lifeline->number;
  const nanoseconds most = context_->options.operation_timeout;
  const Deadline deadline =
      Deadline::After(context_->clock, std::min(candidate.attempts.patience, most));
  std::unique_ptr<RequestChannel> channel;
  Status s = Introduce(lifeline, deadline, &channel);
  if (s.ok()) s = welcome_(link.get(), /*returns=*/false, deadline);
  if (!s.ok()) {
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
  ++lifeline->number;
  std::unique_ptr<RequestChannel> channel;
  Status s = Introduce(lifeline, deadline, &channel);
  const bool returns = databases_.load(std::memory_order_relaxed) > 0;
  if (s.ok() && returns) s = welcome_(lifeline->link, returns, deadline);
  if (!s.ok()) {
    HangUp(lifeline);
    return s;
  }
  fabric_->pace.Forget(lifeline->link);
  lifeline->link->SetUp();
  lifeline->link->GiveChannel(std::move(channel));
  if (returns) fabric_->membership_changes.fetch_add(1, std::memory_order_acq_rel);
  return s;
}

Status NodeMonitor::Introduce(Lifeline* lifeline, Deadline deadline,
                              std::unique_ptr<RequestChannel>* channel) {
  NodeLink* link = lifeline->link;
  FeatureSet features_on = 0;
  NACRE_RETURN_IF_ERROR(
      link->ConnectLifeline(context_->device, rdma::QueueDepths{.send = 2, .receive = 2},
                            queue_.get(), deadline, &lifeline->queue_pair, &features_on));
  fabric_->HearFeatures(features_on);
  NACRE_RETURN_IF_ERROR(fabric_->CheckFeatures(*link));
  NACRE_RETURN_IF_ERROR(lifeline->queue_pair->PostRecv(
      lifeline->number << kNodeBits | link->id(),
      {.data = region_->data(), .size = kReceiveBytes, .region = region_.get()}));
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(context_, link, deadline, channel));
  control::Request request;
  request.mutable_describe();
  control::Reply reply;
  NACRE_RETURN_IF_ERROR((*channel)->Call(&request, deadline, &reply));
  NACRE_RETURN_IF_ERROR(GetStatus(reply).WithContext(link->address()));
  return link->SetDescription(reply.description());
}

}  // namespace nacre::pool
