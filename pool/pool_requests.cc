#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "jobs/compaction_codec.h"
#include "pool/connect/spin_wait.h"
#include "pool/pool_client.h"
#include "pool/pool_client_rep.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/manifest_image.h"
#include "util/threads/thread.h"

namespace nacre::pool {

Status PoolClient::Rep::UpLink(NodeId node, NodeLink** link) {
  *link = fabric.link(node);
  if (*link == nullptr) return Status::InvalidArgument(fmt::format("no node {} in the pool", node));
  return fabric.monitor->AwaitConnected(*link);
}

Status PoolClient::Rep::Lost(NodeLink* link, Status why) {
  if (why.IsUnavailable()) fabric.monitor->Suspect(link, why);
  return why;
}

Status PoolClient::Rep::Call(NodeId node, control::Request* request, control::Reply* reply) {
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(UpLink(node, &link));
  const Deadline deadline = fabric.context.OperationDeadline();
  std::unique_ptr<RequestChannel> channel;
  if (Status s = link->TakeChannel(deadline, &channel); !s.ok()) return Lost(link, std::move(s));
  if (Status s = channel->Call(request, deadline, reply); !s.ok()) {
    // It has had as long as any operation may take; the monitor asks it whether it is there.
    if (s.IsTimedOut()) fabric.monitor->Suspect(link, s);
    return Lost(link, std::move(s));
  }
  link->GiveChannel(std::move(channel));
  return GetStatus(*reply).WithContext(link->address());
}

std::vector<PoolClient::Rep::NodeAnswer> PoolClient::Rep::CallAll(
    const std::vector<NodeId>& nodes, const std::function<void(NodeId, control::Request*)>& make,
    Deadline deadline) {
  struct Call {
    NodeLink* link = nullptr;
    std::unique_ptr<RequestChannel> channel;  ///< Null: it has ended.
  };
  std::vector<NodeAnswer> answers(nodes.size());
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
    calls[i].link = fabric.link(nodes[i]);
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
      s = call.link->TakeChannel(deadline, &call.channel);
      if (s.ok()) return begin(i);
      s = Lost(call.link, std::move(s));
    }
    answers[i].status = std::move(s);
  });

  SpinWait pause(fabric.context.clock);
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
        }
      }
      if (s.ok() && !done) {
        waiting = true;
      } else if (s.ok()) {
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

std::vector<PoolClient::Rep::NodeAnswer> PoolClient::Rep::CallUntilDone(
    std::vector<NodeId> nodes, const std::function<void(NodeId, control::Request*)>& make) {
  const Deadline deadline = fabric.context.OperationDeadline();
  std::vector<NodeAnswer> ended;
  while (!nodes.empty()) {
    std::vector<NodeId> again;
    const bool last = deadline.Expired();
    for (NodeAnswer& answer : CallAll(nodes, make)) {
      if (answer.status.IsTryAgain() && !last) {
        again.push_back(answer.node);
      } else {
        ended.push_back(std::move(answer));
      }
    }
    nodes = std::move(again);
    if (!nodes.empty()) fabric.context.clock->SleepFor(std::chrono::milliseconds(1));
  }
  return ended;
}

Status PoolClient::Ping(NodeId node) {
  control::Request request;
  control::Reply reply;
  request.mutable_ping();
  return rep_->Call(node, &request, &reply);
}

Status PoolClient::GetStats(NodeId node, NodeStats* stats) {
  control::Request request;
  control::Reply reply;
  request.mutable_get_stats();
  NACRE_RETURN_IF_ERROR(rep_->Call(node, &request, &reply));
  const control::Stats& message = reply.stats();
  stats->address = message.address();
  stats->instance_id = message.instance_id();
  stats->region_bytes = message.region_bytes();
  stats->slab_bytes = message.slab_bytes();
  stats->slabs_total = message.slabs_total();
  stats->slabs_leased = message.slabs_leased();
  stats->bytes_read = message.bytes_read();
  stats->bytes_written = message.bytes_written();
  stats->requests = message.requests();
  stats->compactions = message.compactions();
  stats->compactions_failed = message.compactions_failed();
  stats->compaction_bytes_read = message.compaction_bytes_read();
  stats->compaction_bytes_written = message.compaction_bytes_written();
  stats->compaction_cpu_nanos = message.compaction_cpu_nanos();
  stats->flushes = message.flushes();
  stats->flush_bytes_written = message.flush_bytes_written();
  stats->flush_cpu_nanos = message.flush_cpu_nanos();
  stats->rebuilt_bytes = message.rebuilt_bytes();
  stats->rebuild_cpu_nanos = message.rebuild_cpu_nanos();
  stats->scrubbed_bytes = message.scrubbed_bytes();
  stats->connections = message.connections();
  stats->uptime_nanos = message.uptime_nanos();
  stats->requests_malformed = message.requests_malformed();
  stats->databases = message.databases();
  stats->peers_refused = message.peers_refused();
  stats->frames_malformed = message.frames_malformed();
  stats->domain = message.domain();
  // A later version may have more words for it, which all mean that it keeps.
  stats->keeping = static_cast<Keeping>(
      std::min<uint32_t>(message.keeping(), static_cast<uint32_t>(Keeping::kWarm)));
  return Status::OK();
}

Status PoolClient::LeaseSlabs(NodeId node, uint64_t database_id, int count, bool contiguous,
                              std::vector<uint64_t>* offsets) {
  if (count <= 0) return Status::InvalidArgument(fmt::format("lease of {} slabs", count));
  control::Request request;
  control::Reply reply;
  request.mutable_lease_slabs()->set_database_id(database_id);
  request.mutable_lease_slabs()->set_count(static_cast<uint32_t>(count));
  request.mutable_lease_slabs()->set_contiguous(contiguous);
  NACRE_RETURN_IF_ERROR(rep_->Heed(database_id, rep_->Call(node, &request, &reply)));
  NACRE_RETURN_IF_ERROR(rep_->fabric.link(node)->SetWriteKeys(reply.slabs()));
  offsets->assign(reply.slabs().offsets().begin(), reply.slabs().offsets().end());
  return Status::OK();
}

Status PoolClient::LeaseContiguous(NodeId node, uint64_t database_id, int count, uint64_t extend_at,
                                   int extend_count, std::vector<uint64_t>* offsets) {
  if (count <= 0) return Status::InvalidArgument(fmt::format("lease of {} slabs", count));
  control::Request request;
  control::Reply reply;
  control::LeaseSlabs* lease = request.mutable_lease_slabs();
  lease->set_database_id(database_id);
  lease->set_count(static_cast<uint32_t>(count));
  lease->set_contiguous(true);
  lease->set_extend_at(extend_at);
  lease->set_extend_count(static_cast<uint32_t>(std::max(0, extend_count)));
  NACRE_RETURN_IF_ERROR(rep_->Heed(database_id, rep_->Call(node, &request, &reply)));
  NACRE_RETURN_IF_ERROR(rep_->fabric.link(node)->SetWriteKeys(reply.slabs()));
  offsets->assign(reply.slabs().offsets().begin(), reply.slabs().offsets().end());
  return Status::OK();
}

Status PoolClient::ReturnSlabs(NodeId node, uint64_t database_id,
                               const std::vector<uint64_t>& offsets) {
  control::Request request;
  control::Reply reply;
  request.mutable_return_slabs()->set_database_id(database_id);
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(rep_->UpLink(node, &link));
  // Beforehand: when the answer is here, another thread may have leased one of them anew.
  const control::Slabs keys = link->TakeWriteKeys(offsets);
  for (const uint64_t offset : offsets) request.mutable_return_slabs()->add_offsets(offset);
  for (const uint32_t key : keys.write_keys()) request.mutable_return_slabs()->add_write_keys(key);
  Status s = rep_->Heed(database_id, rep_->Call(node, &request, &reply));
  // They are still this client's, or it asks again, with the same keys.
  if (!s.ok()) link->GiveBackWriteKeys(keys);
  return s;
}

Status PoolClient::ApplyCheckpoint(const ExtentAddr& copy, const CheckpointDelta& delta) {
  control::Request request;
  control::Reply reply;
  control::ApplyCheckpoint* const message = request.mutable_apply_checkpoint();
  EncodeExtent(copy, message->mutable_copy());
  message->set_database_id(delta.identity.database_id);
  message->set_epoch(delta.identity.epoch);
  message->set_generation(delta.identity.generation);
  message->set_base_version(delta.base_version);
  message->set_version(delta.version);
  message->set_slots_used(delta.slots_used);
  message->set_raw_bytes(delta.raw_bytes);
  message->set_crc(delta.crc);
  message->set_compressed(delta.compressed);
  return rep_->Call(static_cast<NodeId>(copy.start.node), &request, &reply);
}

}  // namespace nacre::pool
