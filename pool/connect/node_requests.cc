#include "pool/connect/node_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "pool/connect/connect_in_time.h"
#include "pool/connect/pool_pace.h"
#include "pool/connect/request_channel.h"
#include "pool/connect/spin_wait.h"
#include "pool/wire/protocol.h"
#include "util/threads/thread.h"

namespace nacre::pool {
namespace {

/// A connection for requests. To a node that may be left and does not answer in time: `TimedOut`.
Status TakeChannel(Fabric* fabric, NodeLink* link, Deadline deadline, NodeRequests::Late late,
                   std::unique_ptr<RequestChannel>* channel) {
  const auto connect = [&](Deadline attempt) { return link->TakeChannel(attempt, channel); };
  if (late != NodeRequests::Late::kLeft) return connect(deadline);
  bool left = false;
  Status s = ConnectInTime(fabric, link, fabric->pace.Patience(NodeOperation::kRequest), deadline,
                           /*may_leave=*/true, connect, &left);
  if (s.ok() || !(left || deadline.Expired())) return s;
  return Status::TimedOut(link->address() + ": slow to connect");
}

/// One request to each of several nodes, all at once.
class NodeCalls {
 public:
  struct Terms {
    const NodeRequests::Make& make;
    const Deadline deadline;
    const NodeRequests::Late late;
    const NodeRequests::Enough& enough;
  };

  NodeCalls(NodeRequests* requests, Fabric* fabric, const std::vector<NodeId>& nodes, Terms terms)
      : requests_(requests),
        fabric_(fabric),
        terms_(terms),
        answers_(nodes.size()),
        calls_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      answers_[i].node = nodes[i];
      calls_[i].link = fabric->link(nodes[i]);
    }
  }

  void Ask() {
    const bool some_may_do = terms_.enough != nullptr;
    std::vector<size_t> unconnected;
    std::vector<size_t> late;
    for (size_t i = 0; i < calls_.size(); ++i) {
      Call& call = calls_[i];
      if (call.link != nullptr) call.channel = call.link->TakeIdleChannel();
      if (call.channel != nullptr) {
        Begin(i);
      } else if (some_may_do && call.link != nullptr && call.link->pace().slow()) {
        late.push_back(i);
      } else {
        unconnected.push_back(i);
      }
    }
    Connect(unconnected, some_may_do);
    for (const size_t i : unconnected) {
      if (calls_[i].channel == nullptr && !calls_[i].ended) late.push_back(i);
    }
    Await();
    if (late.empty()) return;
    if (Suffice()) {
      for (const size_t i : late) End(i, Status::TimedOut(calls_[i].link->address() + ": slow"));
      return;
    }
    Connect(late, /*in_time=*/false);
    Await();
  }

  std::vector<NodeRequests::Answer> TakeAnswers() { return std::move(answers_); }

 private:
  struct Call {
    NodeLink* link = nullptr;
    std::unique_ptr<RequestChannel> channel;  ///< Null: it has not begun, or has ended.
    bool ended = false;
  };

  void Begin(size_t i) {
    control::Request request;
    terms_.make(answers_[i].node, &request);
    Status s = calls_[i].channel->Begin(&request);
    if (!s.ok()) End(i, requests_->Lost(calls_[i].link, std::move(s)));
  }

  void End(size_t i, Status status) {
    Call& call = calls_[i];
    // What may still be answered must not be written into this memory.
    if (!status.ok()) call.channel.reset();
    answers_[i].status = std::move(status);
    call.ended = true;
  }

  /// A node that lets its callers wait for a connection must not use up the time of the others.
  /// `in_time`: what does not take one soon has neither a channel nor ended afterwards.
  void Connect(const std::vector<size_t>& unconnected, bool in_time) {
    const std::chrono::nanoseconds soon =
        fabric_->pace.Patience(NodeOperation::kRequest) / kQuickConnectionPart;
    const Deadline deadline = in_time && soon < terms_.deadline.Remaining()
                                  ? Deadline::After(fabric_->context.clock, soon)
                                  : terms_.deadline;
    RunTogether("nacre-connect", unconnected.size(), [&](size_t n) {
      const size_t i = unconnected[n];
      Call& call = calls_[i];
      Status s = requests_->UpLink(answers_[i].node, &call.link);
      if (s.ok()) {
        s = TakeChannel(fabric_, call.link, deadline, terms_.late, &call.channel);
        if (s.ok()) return Begin(i);
        if (in_time && deadline.Expired()) {
          fabric_->pace.NoteLate(call.link);
          return;
        }
        s = requests_->Lost(call.link, std::move(s));
      }
      End(i, std::move(s));
    });
  }

  void Await() {
    SpinWait pause(fabric_->context.clock);
    const uint64_t start = fabric_->context.clock->NowNanos();
    for (bool waiting = true; waiting; pause.Pause()) {
      waiting = false;
      for (size_t i = 0; i < calls_.size(); ++i) {
        if (calls_[i].channel == nullptr) continue;
        const std::chrono::nanoseconds waited(fabric_->context.clock->NowNanos() - start);
        waiting = !TryEnd(i, waited, pause.TimeToCheckClock()) || waiting;
      }
      if (waiting && pause.TimeToCheckClock() && OnlySlowOnesAreLeft() && Suffice()) LeaveThem();
    }
  }

  bool TryEnd(size_t i, std::chrono::nanoseconds waited, bool time_to_look) {
    Call& call = calls_[i];
    bool done = false;
    Status s = call.channel->TryEnd(&answers_[i].reply, &done);
    if (s.ok() && !done && time_to_look) s = Look(call, waited);
    if (s.ok() && !done) return false;
    if (s.ok()) {
      call.link->mutable_pace()->Note(NodeOperation::kRequest, waited);
      call.link->GiveChannel(std::move(call.channel));
      End(i, GetStatus(answers_[i].reply).WithContext(call.link->address()));
    } else {
      End(i, requests_->Lost(call.link, std::move(s)));
    }
    return true;
  }

  /// Why not to wait for it any longer.
  Status Look(const Call& call, std::chrono::nanoseconds waited) {
    NACRE_RETURN_IF_ERROR(call.channel->CheckConnection());
    if (terms_.deadline.Expired()) {
      return Status::TimedOut(call.link->address() + ": no answer to a request");
    }
    if (terms_.late == NodeRequests::Late::kLeft &&
        waited > fabric_->pace.Patience(NodeOperation::kRequest) &&
        fabric_->pace.NoteLate(call.link)) {
      return Status::TimedOut(call.link->address() + ": slow to answer a request");
    }
    return Status::OK();
  }

  bool OnlySlowOnesAreLeft() const {
    return terms_.enough != nullptr &&
           std::all_of(calls_.begin(), calls_.end(), [](const Call& call) {
             return call.channel == nullptr || call.link->pace().slow();
           });
  }

  bool Suffice() const {
    std::vector<const NodeRequests::Answer*> ended;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].ended) ended.push_back(&answers_[i]);
    }
    return terms_.enough(ended);
  }

  void LeaveThem() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].channel == nullptr) continue;
      End(i, Status::TimedOut(calls_[i].link->address() + ": slow, and others suffice"));
    }
  }

  NodeRequests* const requests_;
  Fabric* const fabric_;
  const Terms terms_;
  std::vector<NodeRequests::Answer> answers_;
  std::vector<Call> calls_;
};

}  // namespace

Status NodeRequests::UpLink(NodeId node, NodeLink** link) {
  *link = fabric_->link(node);
  if (*link == nullptr) return Status::InvalidArgument(fmt::format("no node {} in the pool", node));
  return fabric_->monitor->AwaitConnected(*link);
}

Status NodeRequests::Lost(NodeLink* link, Status why) {
  if (why.IsUnavailable()) fabric_->monitor->Suspect(link, why);
  return why;
}

Status NodeRequests::Call(NodeId node, control::Request* request, control::Reply* reply,
                          Late late) {
  if (late == Late::kLeft) {
    const auto copy = [&](NodeId, control::Request* message) { *message = *request; };
    Answer answer = std::move(CallAll({node}, copy, late).front());
    NodeLink* const asked = fabric_->link(node);
    // As below, unless it was left.
    if (answer.status.IsTimedOut() && !asked->pace().slow()) {
      fabric_->monitor->Suspect(asked, answer.status);
    }
    *reply = std::move(answer.reply);
    return std::move(answer.status);
  }
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(UpLink(node, &link));
  const Deadline deadline = fabric_->context.OperationDeadline();
  std::unique_ptr<RequestChannel> channel;
  if (Status s = link->TakeChannel(deadline, &channel); !s.ok()) return Lost(link, std::move(s));
  if (Status s = channel->Call(request, deadline, reply); !s.ok()) {
    // It has had as long as any operation may take; the monitor asks it whether it is there.
    if (s.IsTimedOut()) fabric_->monitor->Suspect(link, s);
    return Lost(link, std::move(s));
  }
  link->GiveChannel(std::move(channel));
  return GetStatus(*reply).WithContext(link->address());
}

std::vector<NodeRequests::Answer> NodeRequests::CallAll(const std::vector<NodeId>& nodes,
                                                        const Make& make, Deadline deadline,
                                                        Late late, const Enough& enough) {
  NodeCalls calls(this, fabric_, nodes, {make, deadline, late, enough});
  calls.Ask();
  return calls.TakeAnswers();
}

std::vector<NodeRequests::Answer> NodeRequests::CallUntilDone(std::vector<NodeId> nodes,
                                                              const Make& make) {
  const Deadline deadline = fabric_->context.OperationDeadline();
  std::vector<Answer> ended;
  while (!nodes.empty()) {
    std::vector<NodeId> again;
    const bool last = deadline.Expired();
    for (Answer& answer : CallAll(nodes, make)) {
      if (answer.status.IsTryAgain() && !last) {
        again.push_back(answer.node);
      } else {
        ended.push_back(std::move(answer));
      }
    }
    nodes = std::move(again);
    if (!nodes.empty()) fabric_->context.clock->SleepFor(std::chrono::milliseconds(1));
  }
  return ended;
}

}  // namespace nacre::pool
