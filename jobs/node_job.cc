#include "jobs/node_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "jobs/compaction_codec.h"
#include "jobs/flush_codec.h"
#include "jobs/rebuild_codec.h"
#include "jobs/scrub_codec.h"
#include "pool/pool_client.h"
#include "pool/wire/control.pb.h"

namespace nacre::pool {
namespace {

void AppendOutputs(const CompactionJob& job, std::vector<ExtentAddr>* extents) {
  for (const ReservedTable& output : job.outputs) {
    extents->insert(extents->end(), output.placement.fragments.begin(),
                    output.placement.fragments.end());
  }
}

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

class CompactionNodeJob : public NodeJob {
 public:
  static Status Make(const control::Compact& message, const PluginRegistry& plugins,
                     std::shared_ptr<NodeJob>* job) {
    auto made = std::make_shared<CompactionNodeJob>();
    NACRE_RETURN_IF_ERROR(DecodeCompactionJob(message, &made->job_));
    NACRE_RETURN_IF_ERROR(FindPlugins(plugins, made->job_, &made->plugins_));
    *job = std::move(made);
    return Status::OK();
  }

  std::vector<ExtentAddr> Extents() const override {
    std::vector<ExtentAddr> extents;
    AppendOutputs(job_, &extents);
    return extents;
  }

  Status Run(JobPeers* peers) override {
    job_.write_keys = &write_keys();
    return RunCompaction(job_, plugins_, peers->store.get(), cancelled(), &result_);
  }

  void Count(JobCounters* counters) const override {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (!status.ok()) {
      counters->compactions_failed.fetch_add(1, kRelaxed);
      return;
    }
    counters->compactions.fetch_add(1, kRelaxed);
    counters->compaction_bytes_read.fetch_add(result_.stats.bytes_read, kRelaxed);
    counters->compaction_bytes_written.fetch_add(result_.stats.bytes_written, kRelaxed);
    counters->compaction_cpu_nanos.fetch_add(result_.cpu_nanos, kRelaxed);
  }

  void FillReply(control::Reply* reply) const override {
    EncodeCompactionResult(result_, reply->mutable_compaction());
  }

 private:
  JobPlugins plugins_;
  CompactionJob job_;
  CompactionResult result_;
};

class FlushNodeJob : public NodeJob {
 public:
  static Status Make(const control::Flush& message, const PluginRegistry& plugins,
                     std::shared_ptr<NodeJob>* job) {
    auto made = std::make_shared<FlushNodeJob>();
    NACRE_RETURN_IF_ERROR(DecodeFlushJob(message, &made->job_));
    NACRE_RETURN_IF_ERROR(FindPlugins(plugins, made->job_.merge, &made->plugins_));
    *job = std::move(made);
    return Status::OK();
  }

  std::vector<ExtentAddr> Extents() const override {
    std::vector<ExtentAddr> extents;
    AppendOutputs(job_.merge, &extents);
    for (const LogPart& part : job_.log) {
      std::copy_if(part.copies.begin(), part.copies.end(), std::back_inserter(extents),
                   [this](const ExtentAddr& copy) { return copy.start.node == peers().self; });
    }
    return extents;
  }

  Status Run(JobPeers* peers) override {
    job_.merge.write_keys = &write_keys();
    return RunFlush(job_, plugins_, peers->store.get(), cancelled(), &result_);
  }

  void Count(JobCounters* counters) const override {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (!status.ok()) return;
    counters->flushes.fetch_add(1, kRelaxed);
    counters->flush_bytes_written.fetch_add(result_.stats.bytes_written, kRelaxed);
    counters->flush_cpu_nanos.fetch_add(result_.cpu_nanos, kRelaxed);
  }

  void FillReply(control::Reply* reply) const override {
    EncodeCompactionResult(result_, reply->mutable_compaction());
  }

 private:
  JobPlugins plugins_;
  FlushJob job_;
  CompactionResult result_;
};

class RebuildNodeJob : public NodeJob {
 public:
  static Status Make(const control::Rebuild& message, std::shared_ptr<NodeJob>* job) {
    auto made = std::make_shared<RebuildNodeJob>();
    NACRE_RETURN_IF_ERROR(DecodeRebuildJob(message, &made->job_));
    *job = std::move(made);
    return Status::OK();
  }

  std::vector<ExtentAddr> Extents() const override {
    std::vector<ExtentAddr> extents;
    for (const TableRebuild& table : job_.tables) {
      for (const FragmentRebuild& fragment : table.fragments) extents.push_back(fragment.to);
    }
    return extents;
  }

  Status Run(JobPeers* peers) override {
    job_.write_keys = &write_keys();
    return RunRebuild(job_, peers->store.get(), cancelled(), &result_);
  }

  void Count(JobCounters* counters) const override {
    counters->rebuilt_bytes.fetch_add(result_.bytes_written, std::memory_order_relaxed);
    counters->rebuild_cpu_nanos.fetch_add(result_.cpu_nanos, std::memory_order_relaxed);
  }

  void FillReply(control::Reply* reply) const override {
    EncodeRebuildResult(result_, reply->mutable_rebuild());
  }

 private:
  RebuildJob job_;
  RebuildResult result_;
};

class ScrubNodeJob : public NodeJob {
 public:
  static Status Make(const control::Scrub& message, std::shared_ptr<NodeJob>* job) {
    auto made = std::make_shared<ScrubNodeJob>();
    NACRE_RETURN_IF_ERROR(DecodeScrubJob(message, &made->job_));
    *job = std::move(made);
    return Status::OK();
  }

  std::vector<ExtentAddr> Extents() const override {
    std::vector<ExtentAddr> extents;
    for (const ScrubFragment& fragment : job_.fragments) extents.push_back(fragment.extent);
    return extents;
  }

  Status Run(JobPeers* peers) override {
    return RunScrub(job_, *peers->store, cancelled(), &result_);
  }

  void Count(JobCounters* counters) const override {
    counters->scrubbed_bytes.fetch_add(result_.bytes, std::memory_order_relaxed);
  }

  void FillReply(control::Reply* reply) const override {
    EncodeScrubResult(result_, reply->mutable_scrub());
  }

 private:
  ScrubJob job_;
  ScrubResult result_;
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
  switch (request.body_case()) {
    case control::Request::kCompact:
      return &request.compact().header();
    case control::Request::kFlush:
      return &request.flush().header();
    case control::Request::kRebuild:
      return &request.rebuild().header();
    case control::Request::kScrub:
      return &request.scrub().header();
    default:
      return nullptr;
  }
}

Status MakeNodeJob(const control::Request& request, const PluginRegistry& plugins, uint64_t client,
                   uint64_t instance_id, std::shared_ptr<NodeJob>* job) {
  const control::JobHeader* header = JobHeaderOf(request);
  if (header == nullptr) return Status::NotSupported("a request that is no job");
  std::shared_ptr<NodeJob> made;
  if (request.body_case() == control::Request::kCompact) {
    NACRE_RETURN_IF_ERROR(CompactionNodeJob::Make(request.compact(), plugins, &made));
  } else if (request.body_case() == control::Request::kFlush) {
    NACRE_RETURN_IF_ERROR(FlushNodeJob::Make(request.flush(), plugins, &made));
  } else if (request.body_case() == control::Request::kRebuild) {
    NACRE_RETURN_IF_ERROR(RebuildNodeJob::Make(request.rebuild(), &made));
  } else {
    NACRE_RETURN_IF_ERROR(ScrubNodeJob::Make(request.scrub(), &made));
  }
  NACRE_RETURN_IF_ERROR(made->SetHeader(client, *header, instance_id));
  *job = std::move(made);
  return Status::OK();
}

}  // namespace nacre::pool
