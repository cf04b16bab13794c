#include "jobs/node_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "jobs/job_kinds.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"

namespace nacre::pool {
namespace {

/// Those that the job names, all of which have to be known here.
Status FindPlugins(const PluginRegistry& registry, const CompactionJob& job, JobPlugins* plugins) {
  NACRE_RETURN_IF_ERROR(registry.Find(job.comparator_name, &plugins->comparator));
  if (!job.merge_operator.empty()) {
    NACRE_RETURN_IF_ERROR(registry.FindMergeOperator(job.merge_operator, &plugins->merge_operator));
  }
  if (job.compaction_filter.empty()) return Status::OK();
  return registry.MakeCompactionFilter(job.compaction_filter, job.filter_context,
                                       &plugins->compaction_filter);
}

template <typename Job>
class NodeJobOf : public NodeJob {
  using Kind = JobKind<Job>;

 public:
  Status Init(const control::Request& request, const PluginRegistry& registry) {
    NACRE_RETURN_IF_ERROR(DecodeJob(Kind::Message(request), &job_));
    const CompactionJob* const merge = Kind::Merge(job_);
    return merge == nullptr ? Status::OK() : FindPlugins(registry, *merge, &plugins_);
  }

  std::vector<ExtentAddr> Extents() const override {
    std::vector<ExtentAddr> extents = Kind::Outputs(job_);
    const std::vector<ExtentAddr> inputs = Kind::LocalInputs(job_, peers().self);
    extents.insert(extents.end(), inputs.begin(), inputs.end());
    return extents;
  }
  Status Run(JobPeers* peers) override {
    return Kind::Run(&job_, plugins_, &write_keys(), *peers, cancelled(), &result_);
  }
  void Count(JobCounters* counters) const override { Kind::Count(status, result_, counters); }
  void FillReply(control::Reply* reply) const override {
    EncodeResult(result_, Kind::Outcome(reply));
  }

 private:
  JobPlugins plugins_;
  Job job_;
  typename Job::Result result_;
};

}  // namespace

Status NodeJob::SetHeader(uint64_t client, const control::JobHeader& header, uint64_t instance_id) {
  client_id_ = client;
  job_id_ = header.job_id();
  database_id_ = header.database_id();
  owner_epoch_ = header.owner_epoch();
  peers_.scheme = header.scheme();
  peers_.self = static_cast<NodeId>(std::min<uint32_t>(header.executor(), kNoNode));
  peers_.slab_bytes = header.slab_bytes();
  peers_.operation_timeout =
      std::chrono::milliseconds(std::clamp<uint64_t>(header.operation_timeout_ms(), 1, 3'600'000));
  bool here = false;
  for (const control::JobPeer& peer : header.peers()) {
    if (peer.node() >= kMaxSlots) {
      return Status::InvalidArgument(fmt::format("job: there is no node {}", peer.node()));
    }
    here |= peer.node() == header.executor() && peer.instance_id() == instance_id;
    peers_.peers.push_back({.node = static_cast<NodeId>(peer.node()),
                            .address = peer.address(),
                            .instance_id = peer.instance_id()});
  }
  if (!here) {
    return Status::InvalidArgument(
        fmt::format("job: node {} of the pool is not this one", header.executor()));
  }
  for (const control::WriteKey& key : header.write_keys()) {
    ExtentAddr extent;
    NACRE_RETURN_IF_ERROR(DecodeExtent(key.extent(), &extent));
    write_keys_.Add(extent, key.key());
  }
  return Status::OK();
}

const control::JobHeader* JobHeaderOf(const control::Request& request) {
  const control::JobHeader* header = nullptr;
  VisitKind(request,
            [&]<typename Job>(const Job&) { header = &JobKind<Job>::Message(request).header(); });
  return header;
}

Status MakeNodeJob(const control::Request& request, const PluginRegistry& plugins, uint64_t client,
                   uint64_t instance_id, std::shared_ptr<NodeJob>* job) {
  Status status = Status::NotSupported("a request that is no job");
  VisitKind(request, [&]<typename Job>(const Job&) {
    auto made = std::make_shared<NodeJobOf<Job>>();
    status = made->Init(request, plugins);
    if (status.ok()) {
      status = made->SetHeader(client, JobKind<Job>::Message(request).header(), instance_id);
    }
    if (status.ok()) *job = std::move(made);
  });
  return status;
}

}  // namespace nacre::pool
