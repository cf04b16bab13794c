#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "jobs/compaction_codec.h"
#include "jobs/flush_codec.h"
#include "jobs/rebuild_codec.h"
#include "jobs/scrub_codec.h"
#include "pool/pool_client.h"
#include "pool/pool_client_rep.h"
#include "pool/wire/control.pb.h"
#include "util/draw_id.h"
#include "util/named_point.h"

namespace nacre::pool {
namespace {

/// How soon a cancellation, or a death that nobody reported, is noticed.
constexpr std::chrono::milliseconds kWatchPeriod{20};
/// How long nodes may take to say that a job has ended there. Others wait for those who ask.
constexpr std::chrono::milliseconds kEndPatience{1000};

void AppendOutputs(const CompactionJob& job, std::vector<ExtentAddr>* outputs) {
  for (const ReservedTable& table : job.outputs) {
    outputs->insert(outputs->end(), table.placement.fragments.begin(),
                    table.placement.fragments.end());
  }
}

}  // namespace

void PoolClient::Rep::FillHeader(const JobCall& call, control::JobHeader* header) {
  if (const auto database = Owned(call.database_id); database != nullptr) {
    header->set_owner_epoch(database->epoch);
  }
  header->set_database_id(call.database_id);
  header->set_executor(call.executor);
  header->set_scheme(uri.scheme);
  for (int i = 0; i < fabric.node_count(); ++i) {
    const NodeLink* link = fabric.link(static_cast<NodeId>(i));
    // What is on nodes of earlier days cannot be reached by anybody. The last one is named all the
    // same: it says how many numbers there are, for the tables that have a part there.
    const bool lost = link->cut_off() && i != call.executor;
    if (lost && i + 1 < fabric.node_count()) continue;
    control::JobPeer* peer = header->add_peers();
    peer->set_node(static_cast<uint32_t>(i));
    peer->set_address(link->address());
    peer->set_instance_id(lost ? kLostInstance : link->instance_id());
  }
  header->set_slab_bytes(fabric.context.options.slab_bytes);
  header->set_operation_timeout_ms(
      static_cast<uint64_t>(fabric.context.options.operation_timeout.count()));
}

Status PoolClient::Rep::BeginJob(const JobCall& call, JobEnd* end, control::JobHeader* header) {
  std::map<NodeId, std::vector<ExtentAddr>> extents;
  for (const ExtentAddr& output : call.outputs) {
    extents[static_cast<NodeId>(output.start.node)].push_back(output);
  }
  // Where it runs it needs no key.
  extents[call.executor].clear();
  end->open.clear();
  for (const auto& [node, of_node] : extents) end->open.push_back(node);
  const auto answers = CallAll(end->open, [&](NodeId node, control::Request* request) {
    control::BeginJob* begin = request->mutable_begin_job();
    begin->set_database_id(call.database_id);
    begin->set_job_id(end->job_id);
    for (const ExtentAddr& extent : extents.at(node)) EncodeExtent(extent, begin->add_extents());
  });
  for (const NodeAnswer& answer : answers) {
    NACRE_RETURN_IF_ERROR(Heed(call.database_id, answer.status));
    const std::vector<ExtentAddr>& of_node = extents.at(answer.node);
    const control::JobKeys& keys = answer.reply.job_keys();
    if (static_cast<size_t>(keys.keys_size()) != of_node.size()) {
      return Status::Unavailable(fabric.link(answer.node)->address() + ": grants no such keys");
    }
    for (size_t i = 0; i < of_node.size(); ++i) {
      control::WriteKey* key = header->add_write_keys();
      EncodeExtent(of_node[i], key->mutable_extent());
      key->set_key(keys.keys(static_cast<int>(i)));
    }
  }
  return Status::OK();
}

Status PoolClient::Rep::RunJob(const JobCall& call, control::JobHeader* header,
                               control::Request* request, control::Reply* reply, JobEnd* end) {
  JobEnd unnoticed;
  if (end == nullptr) end = &unnoticed;
  *end = JobEnd();
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(UpLink(call.executor, &link));
  NACRE_RETURN_IF_ERROR(DrawId(&end->job_id));
  header->set_job_id(end->job_id);
  FillHeader(call, header);
  // From here on, until the nodes say otherwise, the job may write.
  Status status = BeginJob(call, end, header).WithContext(link->address());
  NACRE_POINT("job.begun");
  if (status.ok()) status = SendJob(call, end->job_id, request, reply);
  std::vector<JobEnd> ends{*end};
  EndJobs(call.database_id, &ends);
  *end = std::move(ends.front());
  return status;
}

Status PoolClient::Rep::SendJob(const JobCall& call, uint64_t job_id, control::Request* request,
                                control::Reply* reply) {
  NodeLink* link = fabric.link(call.executor);
  const ClientContext& context = fabric.context;
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
    const bool wanted =
        call.cancelled == nullptr || !call.cancelled->load(std::memory_order_acquire);
    if (!wanted && !std::exchange(cancel_sent, true)) {
      control::Request order;
      control::Reply answer;
      order.mutable_end_jobs()->set_database_id(call.database_id);
      order.mutable_end_jobs()->add_job_ids(job_id);
      const Status ordered = Call(call.executor, &order, &answer);
      if (!ordered.ok() && !ordered.IsTryAgain()) return ordered;
    }
    if (next_ping.Expired()) {
      control::Request ping;
      control::Reply answer;
      ping.mutable_ping();
      NACRE_RETURN_IF_ERROR(Call(call.executor, &ping, &answer));
      next_ping = context.OperationDeadline();
    }
    return Status::OK();
  };

  // The end of a channel that fails aborts the job.
  if (Status s = channel->CallAndSleep(request, kWatchPeriod, watch, reply); !s.ok()) {
    return Lost(link, std::move(s));
  }
  link->GiveChannel(std::move(channel));
  return Heed(call.database_id, GetStatus(*reply).WithContext(link->address()));
}

void PoolClient::Rep::EndJobs(uint64_t database_id, std::vector<JobEnd>* jobs) {
  std::map<NodeId, std::vector<uint64_t>> by_node;
  for (const JobEnd& job : *jobs) {
    for (const NodeId node : job.open) by_node[node].push_back(job.job_id);
  }
  const auto close = [&](NodeId node) {
    for (JobEnd& job : *jobs) std::erase(job.open, node);
  };
  std::vector<NodeId> nodes;
  for (const auto& [node, job_ids] : by_node) {
    const NodeLink* link = fabric.link(node);
    if (link == nullptr || link->state() == NodeLink::State::kLost) {
      close(node);  // Nobody writes there again.
    } else {
      nodes.push_back(node);
    }
  }
  const Deadline deadline = Deadline::After(
      fabric.context.clock,
      std::min<std::chrono::nanoseconds>(kEndPatience, fabric.context.options.operation_timeout));
  while (!nodes.empty()) {
    const bool last = deadline.Expired();
    const auto answers = CallAll(
        nodes,
        [&](NodeId node, control::Request* request) {
          request->mutable_end_jobs()->set_database_id(database_id);
          for (const uint64_t id : by_node.at(node)) request->mutable_end_jobs()->add_job_ids(id);
        },
        deadline);
    nodes.clear();
    for (const NodeAnswer& answer : answers) {
      const Status status = Heed(database_id, answer.status);
      if (status.ok()) close(answer.node);
      if (status.IsTryAgain() && !last) nodes.push_back(answer.node);
    }
    if (!nodes.empty()) fabric.context.clock->SleepFor(std::chrono::milliseconds(1));
  }
}

bool PoolClient::MayStillWriteOn(NodeId node) const {
  return rep_->fabric.abandoned_writes.Any(node);
}

void PoolClient::EndAbandonedWrites() {
  Fabric& fabric = rep_->fabric;
  std::map<NodeId, std::vector<uint32_t>> connections = fabric.abandoned_writes.All();
  std::vector<NodeId> nodes;
  for (const auto& [node, of_node] : connections) {
    if (fabric.link(node)->state() == NodeLink::State::kLost) {
      fabric.abandoned_writes.Ended(node, of_node);  // Its space is nobody's again.
    } else {
      nodes.push_back(node);
    }
  }
  if (nodes.empty()) return;
  const Deadline deadline = Deadline::After(
      fabric.context.clock,
      std::min<std::chrono::nanoseconds>(kEndPatience, fabric.context.options.operation_timeout));
  const auto answers = rep_->CallAll(
      nodes,
      [&](NodeId node, control::Request* request) {
        for (const uint32_t connection : connections.at(node)) {
          request->mutable_end_connections()->add_connections(connection);
        }
      },
      deadline);
  for (const Rep::NodeAnswer& answer : answers) {
    if (answer.status.ok()) fabric.abandoned_writes.Ended(answer.node, connections.at(answer.node));
  }
}

void PoolClient::EndJobs(uint64_t database_id, std::vector<JobEnd>* jobs) {
  rep_->EndJobs(database_id, jobs);
}

Status PoolClient::Compact(NodeId node, const CompactionJob& job,
                           const std::atomic<bool>* cancelled, CompactionResult* result,
                           JobEnd* end) {
  control::Request request;
  control::Reply reply;
  control::Compact* message = request.mutable_compact();
  EncodeCompactionJob(job, message);
  Rep::JobCall call{.executor = node, .database_id = job.database_id, .cancelled = cancelled};
  AppendOutputs(job, &call.outputs);
  NACRE_RETURN_IF_ERROR(rep_->RunJob(call, message->mutable_header(), &request, &reply, end));
  return DecodeCompactionResult(reply.compaction(), result).WithContext(node_address(node));
}

Status PoolClient::Flush(NodeId node, const FlushJob& job, const std::atomic<bool>* cancelled,
                         CompactionResult* result, JobEnd* end) {
  control::Request request;
  control::Reply reply;
  control::Flush* message = request.mutable_flush();
  EncodeFlushJob(job, message);
  Rep::JobCall call{.executor = node, .database_id = job.merge.database_id, .cancelled = cancelled};
  AppendOutputs(job.merge, &call.outputs);
  NACRE_RETURN_IF_ERROR(rep_->RunJob(call, message->mutable_header(), &request, &reply, end));
  return DecodeCompactionResult(reply.compaction(), result).WithContext(node_address(node));
}

Status PoolClient::Rebuild(NodeId node, const RebuildJob& job, const std::atomic<bool>* cancelled,
                           RebuildResult* result, JobEnd* end) {
  control::Request request;
  control::Reply reply;
  control::Rebuild* message = request.mutable_rebuild();
  EncodeRebuildJob(job, message);
  Rep::JobCall call{.executor = node, .database_id = job.database_id, .cancelled = cancelled};
  for (const TableRebuild& table : job.tables) {
    for (const FragmentRebuild& fragment : table.fragments) call.outputs.push_back(fragment.to);
  }
  NACRE_RETURN_IF_ERROR(rep_->RunJob(call, message->mutable_header(), &request, &reply, end));
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
  const Rep::JobCall call{.executor = node, .database_id = job.database_id, .cancelled = cancelled};
  NACRE_RETURN_IF_ERROR(
      rep_->RunJob(call, message->mutable_header(), &request, &reply, /*end=*/nullptr));
  return DecodeScrubResult(reply.scrub(), job.fragments.size(), result)
      .WithContext(node_address(node));
}

}  // namespace nacre::pool
