#include "pool/connect/node_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

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
  PoolPace* const pace = &fabric->pace;
  if (late == NodeRequests::Late::kLeft) {
    const Deadline attempt =
        Deadline::After(fabric->context.clock,
                        std::min(pace->Patience(NodeOperation::kRequest), deadline.Remaining()));
    Status s = link->TakeChannel(attempt, channel);
    // Transports answer `Unavailable` for silence, too.
    if (s.ok() || !attempt.Expired()) return s;
    if (deadline.Expired() || pace->NoteLate(link)) {
      return Status::TimedOut(link->address() + ": slow to connect");
    }
  }
  return link->TakeChannel(deadline, channel);
}

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
                                                        Late late) {
  struct Call {
    NodeLink* link = nullptr;
    std::unique_ptr<RequestChannel> channel;  ///< Null: it has ended.
  };
  std::vector<Answer> answers(nodes.size());
  std::vector<Call> calls(nodes.size());
  const auto begin = [&](size_t i) {
    Call& call = calls[i];
    control::Request request;
    make(nodes[i], &request);
    answers[i].status = call.channel->Begin(&request);
    if (answers[i].status.ok()) return;
    call.channel.reset();
    answers[i].status = Lost(call.link, std::move(answers[i].status));
  };
  std::vector<size_t> unconnected;
  for (size_t i = 0; i < nodes.size(); ++i) {
    answers[i].node = nodes[i];
    calls[i].link = fabric_->link(nodes[i]);
    if (calls[i].link != nullptr) calls[i].channel = calls[i].link->TakeIdleChannel();
    if (calls[i].channel != nullptr) {
      begin(i);
    } else {
      unconnected.push_back(i);
    }
  }
  // A node that lets its callers wait for a connection must not use up the time of the others.
  RunTogether("nacre-connect", unconnected.size(), [&](size_t n) {
    const size_t i = unconnected[n];
    Call& call = calls[i];
    Status s = UpLink(nodes[i], &call.link);
    if (s.ok()) {
      s = TakeChannel(fabric_, call.link, deadline, late, &call.channel);
      if (s.ok()) return begin(i);
      s = Lost(call.link, std::move(s));
    }
    answers[i].status = std::move(s);
  });

  SpinWait pause(fabric_->context.clock);
  Clock* const clock = fabric_->context.clock;
  const uint64_t start = clock->NowNanos();
  const auto waited = [&] { return std::chrono::nanoseconds(clock->NowNanos() - start); };
  for (bool waiting = true; waiting; pause.Pause()) {
    waiting = false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      Call& call = calls[i];
      if (call.channel == nullptr) continue;
      bool done = false;
      Status s = call.channel->TryEnd(&answers[i].reply, &done);
      if (s.ok() && !done && pause.TimeToCheckClock()) {
        s = call.channel->CheckConnection();
        if (s.ok() && deadline.Expired()) {
          s = Status::TimedOut(call.link->address() + ": no answer to a request");
        } else if (s.ok() && late == Late::kLeft &&
                   waited() > fabric_->pace.Patience(NodeOperation::kRequest) &&
                   fabric_->pace.NoteLate(call.link)) {
          s = Status::TimedOut(call.link->address() + ": slow to answer a request");
        }
      }
      if (s.ok() && !done) {
        waiting = true;
      } else if (s.ok()) {
        call.link->mutable_pace()->Note(NodeOperation::kRequest, waited());
        call.link->GiveChannel(std::move(call.channel));
        answers[i].status = GetStatus(answers[i].reply).WithContext(call.link->address());
      } else {
        // What may still be answered must not be written into this memory.
        call.channel.reset();
        answers[i].status = Lost(call.link, std::move(s));
      }
    }
  }
  return answers;
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
