#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "memnode/compaction_codec.h"
#include "memnode/pool_client.h"
#include "memnode/pool_client_rep.h"

namespace nacre::memnode {
namespace {

/// How soon a cancellation, or a death that nobody reported, is noticed.
constexpr std::chrono::milliseconds kWatchPeriod{20};

/// After `sent`, a failure of the connection that carried the job: waits for the monitor's verdict
/// on the node. A dead node runs no job; one that lives says when the job has ended.
Status AwaitEndOfJob(const ClientContext& context, const NodeLink& link,
                     const std::function<Status()>& cancel, const Status& sent) {
  const Deadline deadline = context.OperationDeadline();
  while (link.state() == NodeLink::State::kDown) {
    if (deadline.Expired()) {
      return Status::TimedOut(link.address() + ": does not say whether its job has ended");
    }
    context.clock->SleepFor(std::chrono::milliseconds(2));
  }
  if (link.state() == NodeLink::State::kLost) return sent;
  const Status ended = cancel();
  return ended.IsTimedOut() ? ended : sent;
}

}  // namespace

Status PoolClient::Compact(NodeId node, const CompactionJob& job,
                           const std::atomic<bool>* cancelled, CompactionResult* result) {
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(rep_->UpLink(node, &link));
  const ClientContext& context = rep_->fabric.context;

  control::Request request;
  control::Compact* message = request.mutable_compact();
  EncodeCompactionJob(job, message);
  if (job.pool_uri.empty()) {
    Uri plain = rep_->uri;
    plain.parameters.clear();  // They are about this client's own device.
    message->set_pool_uri(plain.ToString());
  }
  for (const auto& peer : rep_->fabric.links) message->add_instance_ids(peer->instance_id());
  message->set_executor(node);
  message->set_slab_bytes(context.options.slab_bytes);
  message->set_operation_timeout_ms(
      static_cast<uint64_t>(context.options.operation_timeout.count()));
  uint64_t job_id = 0;
  if (::getrandom(&job_id, sizeof(job_id), 0) != static_cast<ssize_t>(sizeof(job_id))) {
    return Status::IOError("the system gives no random numbers");
  }
  message->set_job_id(job_id);

  const auto cancel = [&] {
    control::Request order;
    control::Reply answer;
    order.mutable_cancel_compaction()->set_job_id(job_id);
    return rep_->Call(node, &order, &answer);
  };

  std::unique_ptr<RequestChannel> channel;
  if (Status s = link->TakeChannel(context.OperationDeadline(), &channel); !s.ok()) {
    return rep_->Lost(link, std::move(s));
  }
  bool cancel_sent = false;
  Deadline next_ping = context.OperationDeadline();
  const auto watch = [&]() -> Status {
    if (link->state() == NodeLink::State::kLost) return link->CheckUp();
    if (!cancel_sent && cancelled != nullptr && cancelled->load(std::memory_order_acquire)) {
      cancel_sent = true;
      NACRE_RETURN_IF_ERROR(cancel());
    }
    if (next_ping.Expired()) {
      NACRE_RETURN_IF_ERROR(Ping(node));
      next_ping = context.OperationDeadline();
    }
    return Status::OK();
  };

  control::Reply reply;
  const Status sent = channel->CallAndSleep(&request, kWatchPeriod, watch, &reply);
  if (!sent.ok()) {
    // The end of the channel aborts the job, but it must not run on when this returns.
    channel.reset();
    if (!sent.IsUnavailable()) return sent;
    rep_->fabric.monitor->Suspect(link, sent);
    return AwaitEndOfJob(context, *link, cancel, sent);
  }
  link->GiveChannel(std::move(channel));
  NACRE_RETURN_IF_ERROR(GetStatus(reply).WithContext(link->address()));
  return DecodeCompactionResult(reply.compaction(), result).WithContext(link->address());
}

}  // namespace nacre::memnode
