#include "jobs/job_client.h"

#include <chrono>
#include <map>
#include <utility>

#include "jobs/job_kinds.h"
#include "pool/connect/node_requests.h"
#include "pool/connect/request_channel.h"
#include "pool/databases.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/protocol.h"
#include "util/draw_id.h"
#include "util/named_point.h"

namespace nacre::pool {
namespace {

/// How soon a cancellation, or a death that was not reported, is noticed.
constexpr std::chrono::milliseconds kWatchPeriod{5};
/// Looks in a row that find the executor slow before the job is given to another one.
constexpr int kSlowLooks = 40;
/// How often it is asked whether it is there.
constexpr std::chrono::milliseconds kPingPeriod{500};

/// One job on a node, from its beginning on all nodes that it concerns to its end there.
class JobRun {
 public:
  JobRun(PoolClient* client, NodeId executor, uint64_t database_id, std::vector<ExtentAddr> outputs,
         const std::atomic<bool>* cancelled)
      : client_(client),
        requests_(client->requests()),
        fabric_(client->fabric()),
        executor_(executor),
        database_id_(database_id),
        outputs_(std::move(outputs)),
        cancelled_(cancelled) {}

  /// `header` is that of the request, and is filled in here.
  Status Run(control::JobHeader* header, control::Request* request, control::Reply* reply,
             JobEnd* end);

 private:
  /// Says which node runs it, and how that reaches the others.
  void FillHeader(control::JobHeader* header);
  /// Opens the job on the nodes, and takes over the keys that they grant.
  Status Begin(JobEnd* end, control::JobHeader* header);
  /// Sends the request and awaits the answer.
  Status Send(uint64_t job_id, control::Request* request, control::Reply* reply);

  PoolClient* const client_;
  NodeRequests* const requests_;
  Fabric* const fabric_;
  const NodeId executor_;
  const uint64_t database_id_;
  const std::vector<ExtentAddr> outputs_;
  const std::atomic<bool>* const cancelled_;
};

void JobRun::FillHeader(control::JobHeader* header) {
  header->set_owner_epoch(client_->databases()->EpochOf(database_id_));
  header->set_database_id(database_id_);
  header->set_executor(executor_);
  header->set_scheme(client_->scheme());
  for (int i = 0; i < fabric_->node_count(); ++i) {
    const NodeLink* link = fabric_->link(static_cast<NodeId>(i));
    // What is on nodes of earlier days cannot be reached by any peer. The last one is named all the
    // same: it says how many numbers there are, for the tables that have a part there.
    const bool lost = link->cut_off() && i != executor_;
    if (lost && i + 1 < fabric_->node_count()) continue;
    control::JobPeer* peer = header->add_peers();
    peer->set_node(static_cast<uint32_t>(i));
    peer->set_address(link->address());
    peer->set_instance_id(lost ? kLostInstance : link->instance_id());
  }
  header->set_slab_bytes(fabric_->context.options.slab_bytes);
  header->set_operation_timeout_ms(
      static_cast<uint64_t>(fabric_->context.options.operation_timeout.count()));
}

Status JobRun::Begin(JobEnd* end, control::JobHeader* header) {
  std::map<NodeId, std::vector<ExtentAddr>> extents;
  for (const ExtentAddr& output : outputs_) {
    extents[static_cast<NodeId>(output.start.node)].push_back(output);
  }
  // Where it runs it needs no key.
  extents[executor_].clear();
  end->open.clear();
  for (const auto& [node, of_node] : extents) end->open.push_back(node);
  const auto answers = requests_->CallAll(
      end->open,
      [&](NodeId node, control::Request* request) {
        control::BeginJob* begin = request->mutable_begin_job();
        begin->set_database_id(database_id_);
        begin->set_job_id(end->job_id);
        for (const ExtentAddr& extent : extents.at(node)) {
          EncodeExtent(extent, begin->add_extents());
        }
      },
      NodeRequests::Late::kLeft);
  for (const NodeRequests::Answer& answer : answers) {
    NACRE_RETURN_IF_ERROR(client_->databases()->Heed(database_id_, answer.status));
    const std::vector<ExtentAddr>& of_node = extents.at(answer.node);
    const control::JobKeys& keys = answer.reply.job_keys();
    if (static_cast<size_t>(keys.keys_size()) != of_node.size()) {
      return Status::Unavailable(fabric_->link(answer.node)->address() + ": grants no such keys");
    }
    for (size_t i = 0; i < of_node.size(); ++i) {
      control::WriteKey* key = header->add_write_keys();
      EncodeExtent(of_node[i], key->mutable_extent());
      key->set_key(keys.keys(static_cast<int>(i)));
    }
  }
  return Status::OK();
}

Status JobRun::Send(uint64_t job_id, control::Request* request, control::Reply* reply) {
  NodeLink* link = fabric_->link(executor_);
  const ClientContext& context = fabric_->context;
  std::unique_ptr<RequestChannel> channel;
  if (Status s = link->TakeChannel(context.OperationDeadline(), &channel); !s.ok()) {
    return requests_->Lost(link, std::move(s));
  }
  bool cancel_sent = false;
  const bool taken_slow = link->pace().slow();
  int slow_looks = 0;
  Deadline next_ping = Deadline::After(context.clock, kPingPeriod);
  const auto watch = [&]() -> Status {
    if (link->cut_off()) {
      Status why = link->CheckUp();
      return why.ok() ? Status::Unavailable(link->address() + ": connection lost") : why;
    }
    const bool wanted = cancelled_ == nullptr || !cancelled_->load(std::memory_order_acquire);
    if (!wanted && !std::exchange(cancel_sent, true)) {
      control::Request order;
      control::Reply answer;
      order.mutable_end_jobs()->set_database_id(database_id_);
      order.mutable_end_jobs()->add_job_ids(job_id);
      const Status ordered = requests_->Call(executor_, &order, &answer);
      if (!ordered.ok() && !ordered.IsTryAgain()) return ordered;
    }
    if (next_ping.Expired()) {
      control::Request ping;
      control::Reply answer;
      ping.mutable_ping();
      const Status there = requests_->Call(executor_, &ping, &answer, NodeRequests::Late::kLeft);
      // One that is late is slow from here on, and it is for the looks to say for how long.
      if (!there.ok() && !link->pace().slow()) return there;
      next_ping = Deadline::After(context.clock, kPingPeriod);
    }
    slow_looks = link->pace().slow() ? slow_looks + 1 : 0;
    if (slow_looks < kSlowLooks || taken_slow) return Status::OK();
    fabric_->pace.NoteJobLeft();
    return Status::TimedOut(link->address() + ": slow, and its job is for others");
  };

  // The end of a channel that fails aborts the job.
  if (Status s = channel->CallAndSleep(request, kWatchPeriod, watch, reply); !s.ok()) {
    return requests_->Lost(link, std::move(s));
  }
  link->GiveChannel(std::move(channel));
  return client_->databases()->Heed(database_id_, GetStatus(*reply).WithContext(link->address()));
}

Status JobRun::Run(control::JobHeader* header, control::Request* request, control::Reply* reply,
                   JobEnd* end) {
  *end = JobEnd();
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(requests_->UpLink(executor_, &link));
  NACRE_RETURN_IF_ERROR(DrawId(&end->job_id));
  header->set_job_id(end->job_id);
  FillHeader(header);
  // From here on, until the nodes say otherwise, the job may write.
  Status status = Begin(end, header).WithContext(link->address());
  NACRE_POINT("job.begun");
  if (status.ok()) status = Send(end->job_id, request, reply);
  std::vector<JobEnd> ends{*end};
  EndJobs(client_, database_id_, &ends);
  *end = std::move(ends.front());
  return status;
}

}  // namespace

template <typename Job>
Status RunOnNode(PoolClient* client, NodeId node, const Job& job,
                 const std::atomic<bool>* cancelled, typename Job::Result* result, JobEnd* end) {
  using Kind = JobKind<Job>;
  control::Request request;
  control::Reply reply;
  EncodeJob(job, Kind::Message(&request));
  JobRun run(client, node, Kind::DatabaseOf(job), Kind::Outputs(job), cancelled);
  JobEnd unnoticed;
  NACRE_RETURN_IF_ERROR(run.Run(Kind::Message(&request)->mutable_header(), &request, &reply,
                                end == nullptr ? &unnoticed : end));
  return Kind::Decode(reply, job, result).WithContext(client->node_address(node));
}

template Status RunOnNode(PoolClient*, NodeId, const CompactionJob&, const std::atomic<bool>*,
                          CompactionResult*, JobEnd*);
template Status RunOnNode(PoolClient*, NodeId, const FlushJob&, const std::atomic<bool>*,
                          CompactionResult*, JobEnd*);
template Status RunOnNode(PoolClient*, NodeId, const RebuildJob&, const std::atomic<bool>*,
                          RebuildResult*, JobEnd*);
template Status RunOnNode(PoolClient*, NodeId, const ScrubJob&, const std::atomic<bool>*,
                          ScrubResult*, JobEnd*);

}  // namespace nacre::pool
