#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "memnode/compaction_codec.h"
#include "memnode/flush_codec.h"
#include "memnode/pool_client.h"
#include "memnode/pool_client_rep.h"
#include "memnode/pool_device.h"
#include "memnode/rebuild_codec.h"
#include "memnode/scrub_codec.h"
#include "util/draw_id.h"

namespace nacre::memnode {
namespace {

/// How soon a cancellation, or a death that nobody reported, is noticed.
constexpr std::chrono::milliseconds kWatchPeriod{20};

/// After `sent`, a failure of the connection that carried the job: waits for the monitor's verdict
/// on the node. A dead node runs no job; one that lives says when the job has ended.
Status AwaitEndOfJob(const ClientContext& context, const NodeLink& link,
                     const std::function<Status()>& cancel, const Status& sent) {
  const Deadline deadline = context.OperationDeadline();
  while (link.state() == NodeLink::State::kDown && !link.cut_off()) {
    if (deadline.Expired()) {
      return Status::TimedOut(link.address() + ": does not say whether its job has ended");
    }
    context.clock->SleepFor(std::chrono::milliseconds(2));
  }
  if (link.cut_off()) return sent;
  const Status ended = cancel();
  return ended.IsTimedOut() ? ended : sent;
}

}  // namespace

std::string PoolClient::Rep::PeersUri(int count) const {
  Uri peers;  // Without the parameters, which are about this client's own device.
  peers.scheme = uri.scheme;
  const size_t prefix = uri.scheme == kMixedScheme ? 0 : uri.scheme.size() + 1;
  for (int i = 0; i < count; ++i) {
    peers.addresses.push_back(fabric.link(static_cast<NodeId>(i))->address().substr(prefix));
  }
  return peers.ToString();
}

Status PoolClient::Rep::RunJob(NodeId node, uint64_t database_id, control::JobHeader* header,
                               control::Request* request, const std::atomic<bool>* cancelled,
                               control::Reply* reply) {
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(UpLink(node, &link));
  const ClientContext& context = fabric.context;
  uint64_t job_id = 0;
  NACRE_RETURN_IF_ERROR(DrawId(&job_id));
  header->set_job_id(job_id);
  if (const auto database = Owned(database_id); database != nullptr) {
    header->set_owner_epoch(database->epoch);
  }
  header->set_database_id(database_id);
  const int count = fabric.node_count();
  header->set_pool_uri(PeersUri(count));
  for (int i = 0; i < count; ++i) {
    const NodeLink* peer = fabric.link(static_cast<NodeId>(i));
    const bool lost = peer->cut_off();
    header->add_instance_ids(lost ? kLostInstance : peer->instance_id());
  }
  header->set_executor(node);
  header->set_slab_bytes(context.options.slab_bytes);
  header->set_operation_timeout_ms(
      static_cast<uint64_t>(context.options.operation_timeout.count()));

  const auto cancel = [&] {
    control::Request order;
    control::Reply answer;
    order.mutable_cancel_job()->set_job_id(job_id);
    return Call(node, &order, &answer);
  };

  std::unique_ptr<RequestChannel> channel;
  if (Status s = link->TakeChannel(context.OperationDeadline(), &channel); !s.ok()) {
    return Lost(link, std::move(s));
  }
  bool cancel_sent = false;
  Deadline next_ping = context.OperationDeadline();
  const auto watch = [&]() -> Status {
    if (link->cut_off()) {
      Status why = link->CheckUp();
      return why.ok() ? Status::Unavailable(link->address() + ": connection lost") : why;
    }
    if (!cancel_sent && cancelled != nullptr && cancelled->load(std::memory_order_acquire)) {
      cancel_sent = true;
      NACRE_RETURN_IF_ERROR(cancel());
    }
    if (next_ping.Expired()) {
      control::Request ping;
      control::Reply answer;
      ping.mutable_ping();
      NACRE_RETURN_IF_ERROR(Call(node, &ping, &answer));
      next_ping = context.OperationDeadline();
    }
    return Status::OK();
  };

  const Status sent = channel->CallAndSleep(request, kWatchPeriod, watch, reply);
  if (!sent.ok()) {
    // The end of the channel aborts the job, but it must not run on when this returns.
    channel.reset();
    if (!sent.IsUnavailable()) return sent;
    fabric.monitor->Suspect(link, sent);
    return AwaitEndOfJob(context, *link, cancel, sent);
  }
  link->GiveChannel(std::move(channel));
  return Heed(database_id, GetStatus(*reply).WithContext(link->address()));
}

Status PoolClient::Compact(NodeId node, const CompactionJob& job,
                           const std::atomic<bool>* cancelled, CompactionResult* result) {
  control::Request request;
  control::Reply reply;
  control::Compact* message = request.mutable_compact();
  EncodeCompactionJob(job, message);
  NACRE_RETURN_IF_ERROR(
      rep_->RunJob(node, job.database_id, message->mutable_header(), &request, cancelled, &reply));
  return DecodeCompactionResult(reply.compaction(), result).WithContext(node_address(node));
}

Status PoolClient::Flush(NodeId node, const FlushJob& job, const std::atomic<bool>* cancelled,
                         CompactionResult* result) {
  control::Request request;
  control::Reply reply;
  control::Flush* message = request.mutable_flush();
  EncodeFlushJob(job, message);
  NACRE_RETURN_IF_ERROR(rep_->RunJob(node, job.merge.database_id, message->mutable_header(),
                                     &request, cancelled, &reply));
  return DecodeCompactionResult(reply.compaction(), result).WithContext(node_address(node));
}

Status PoolClient::Rebuild(NodeId node, const RebuildJob& job, const std::atomic<bool>* cancelled,
                           RebuildResult* result) {
  control::Request request;
  control::Reply reply;
  control::Rebuild* message = request.mutable_rebuild();
  EncodeRebuildJob(job, message);
  NACRE_RETURN_IF_ERROR(
      rep_->RunJob(node, job.database_id, message->mutable_header(), &request, cancelled, &reply));
  NACRE_RETURN_IF_ERROR(
      DecodeRebuildResult(reply.rebuild(), result).WithContext(node_address(node)));
  if (result->tables.size() != job.tables.size()) {
    return Status::Corruption(node_address(node) + ": answers for other tables than it was given");
  }
  return Status::OK();
}

Status PoolClient::Scrub(NodeId node, const ScrubJob& job, const std::atomic<bool>* cancelled,
                         ScrubResult* result) {
  control::Request request;
  control::Reply reply;
  control::Scrub* message = request.mutable_scrub();
  EncodeScrubJob(job, message);
  NACRE_RETURN_IF_ERROR(
      rep_->RunJob(node, job.database_id, message->mutable_header(), &request, cancelled, &reply));
  return DecodeScrubResult(reply.scrub(), job.fragments.size(), result)
      .WithContext(node_address(node));
}

}  // namespace nacre::memnode
