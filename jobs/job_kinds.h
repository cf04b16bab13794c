#pragma once

#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "jobs/job_codec.h"
#include "jobs/node_job.h"
#include "pool/wire/control.pb.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// What tells one kind of job from another; all else is written once for all of them (job_client.cc
/// for the owner, node_job.cc for the node). Each kind has
///
///     Message, Outcome   its part of a request, and of the reply to it
///     Decode             its result from a reply
///     DatabaseOf         the id of its database
///     Merge              the part that says how tables are made; null: it makes none
///     Outputs            where it writes
///     LocalInputs        what it reads on the node `self` that runs it, and must be the database's
///     Run, Count         what the node does, and how that shows in its statistics
template <typename Job>
struct JobKind;

inline void Add(uint64_t number, std::atomic<uint64_t>* counter) {
  counter->fetch_add(number, std::memory_order_relaxed);
}

inline std::vector<ExtentAddr> OutputsOf(const CompactionJob& job) {
  std::vector<ExtentAddr> extents;
  for (const ReservedTable& output : job.outputs) {
    extents.insert(extents.end(), output.placement.fragments.begin(),
                   output.placement.fragments.end());
  }
  return extents;
}

template <>
struct JobKind<CompactionJob> {
  static control::Compact* Message(control::Request* request) { return request->mutable_compact(); }
  static const control::Compact& Message(const control::Request& request) {
    return request.compact();
  }
  static control::CompactionOutcome* Outcome(control::Reply* reply) {
    return reply->mutable_compaction();
  }
  static Status Decode(const control::Reply& reply, const CompactionJob&,
                       CompactionResult* result) {
    return DecodeResult(reply.compaction(), result);
  }
  static uint64_t DatabaseOf(const CompactionJob& job) { return job.database_id; }
  static const CompactionJob* Merge(const CompactionJob& job) { return &job; }
  static std::vector<ExtentAddr> Outputs(const CompactionJob& job) { return OutputsOf(job); }
  static std::vector<ExtentAddr> LocalInputs(const CompactionJob&, NodeId) { return {}; }
  static Status Run(CompactionJob* job, const JobPlugins& plugins, const WriteKeys* keys,
                    const JobPeers& peers, const std::atomic<bool>* cancelled,
                    CompactionResult* result) {
    job->write_keys = keys;
    return RunCompaction(*job, plugins, peers.store.get(), cancelled, result);
  }
  static void Count(const Status& status, const CompactionResult& result, JobCounters* counters) {
    if (!status.ok()) return Add(1, &counters->compactions_failed);
    Add(1, &counters->compactions);
    Add(result.stats.bytes_read, &counters->compaction_bytes_read);
    Add(result.stats.bytes_written, &counters->compaction_bytes_written);
    Add(result.cpu_nanos, &counters->compaction_cpu_nanos);
  }
};

template <>
struct JobKind<FlushJob> {
  static control::Flush* Message(control::Request* request) { return request->mutable_flush(); }
  static const control::Flush& Message(const control::Request& request) { return request.flush(); }
  static control::CompactionOutcome* Outcome(control::Reply* reply) {
    return reply->mutable_compaction();
  }
  static Status Decode(const control::Reply& reply, const FlushJob&, CompactionResult* result) {
    return DecodeResult(reply.compaction(), result);
  }
  static uint64_t DatabaseOf(const FlushJob& job) { return job.merge.database_id; }
  static const CompactionJob* Merge(const FlushJob& job) { return &job.merge; }
  static std::vector<ExtentAddr> Outputs(const FlushJob& job) { return OutputsOf(job.merge); }
  static std::vector<ExtentAddr> LocalInputs(const FlushJob& job, NodeId self) {
    std::vector<ExtentAddr> extents;
    for (const LogPart& part : job.log) {
      std::copy_if(part.copies.begin(), part.copies.end(), std::back_inserter(extents),
                   [self](const ExtentAddr& copy) { return copy.start.node == self; });
    }
    return extents;
  }
  static Status Run(FlushJob* job, const JobPlugins& plugins, const WriteKeys* keys,
                    const JobPeers& peers, const std::atomic<bool>* cancelled,
                    CompactionResult* result) {
    job->merge.write_keys = keys;
    return RunFlush(*job, plugins, peers.store.get(), cancelled, peers.blocks, result);
  }
  static void Count(const Status& status, const CompactionResult& result, JobCounters* counters) {
    if (!status.ok()) return;
    Add(1, &counters->flushes);
    Add(result.stats.bytes_written, &counters->flush_bytes_written);
    Add(result.cpu_nanos, &counters->flush_cpu_nanos);
  }
};

template <>
struct JobKind<RebuildJob> {
  static control::Rebuild* Message(control::Request* request) { return request->mutable_rebuild(); }
  static const control::Rebuild& Message(const control::Request& request) {
    return request.rebuild();
  }
  static control::RebuildOutcome* Outcome(control::Reply* reply) {
    return reply->mutable_rebuild();
  }
  static Status Decode(const control::Reply& reply, const RebuildJob& job, RebuildResult* result) {
    return DecodeResult(reply.rebuild(), job, result);
  }
  static uint64_t DatabaseOf(const RebuildJob& job) { return job.database_id; }
  static const CompactionJob* Merge(const RebuildJob&) { return nullptr; }
  static std::vector<ExtentAddr> Outputs(const RebuildJob& job) {
    std::vector<ExtentAddr> extents;
    for (const TableRebuild& table : job.tables) {
      for (const FragmentRebuild& fragment : table.fragments) extents.push_back(fragment.to);
    }
    return extents;
  }
  static std::vector<ExtentAddr> LocalInputs(const RebuildJob&, NodeId) { return {}; }
  static Status Run(RebuildJob* job, const JobPlugins&, const WriteKeys* keys,
                    const JobPeers& peers, const std::atomic<bool>* cancelled,
                    RebuildResult* result) {
    job->write_keys = keys;
    return RunRebuild(*job, peers.store.get(), cancelled, result);
  }
  static void Count(const Status&, const RebuildResult& result, JobCounters* counters) {
    Add(result.bytes_written, &counters->rebuilt_bytes);
    Add(result.cpu_nanos, &counters->rebuild_cpu_nanos);
  }
};

template <>
struct JobKind<ScrubJob> {
  static control::Scrub* Message(control::Request* request) { return request->mutable_scrub(); }
  static const control::Scrub& Message(const control::Request& request) { return request.scrub(); }
  static control::ScrubOutcome* Outcome(control::Reply* reply) { return reply->mutable_scrub(); }
  static Status Decode(const control::Reply& reply, const ScrubJob& job, ScrubResult* result) {
    return DecodeResult(reply.scrub(), job, result);
  }
  static uint64_t DatabaseOf(const ScrubJob& job) { return job.database_id; }
  static const CompactionJob* Merge(const ScrubJob&) { return nullptr; }
  static std::vector<ExtentAddr> Outputs(const ScrubJob&) { return {}; }
  static std::vector<ExtentAddr> LocalInputs(const ScrubJob& job, NodeId) {
    std::vector<ExtentAddr> extents;
    for (const ScrubFragment& fragment : job.fragments) extents.push_back(fragment.extent);
    return extents;
  }
  static Status Run(ScrubJob* job, const JobPlugins&, const WriteKeys*, const JobPeers& peers,
                    const std::atomic<bool>* cancelled, ScrubResult* result) {
    return RunScrub(*job, *peers.store, cancelled, result);
  }
  static void Count(const Status&, const ScrubResult& result, JobCounters* counters) {
    Add(result.bytes, &counters->scrubbed_bytes);
  }
};

/// Calls `visit` with an empty job of the kind that `request` asks for. False: it asks for none.
template <typename Visit>
bool VisitKind(const control::Request& request, const Visit& visit) {
  switch (request.body_case()) {
    case control::Request::kCompact:
      visit(CompactionJob());
      return true;
    case control::Request::kFlush:
      visit(FlushJob());
      return true;
    case control::Request::kRebuild:
      visit(RebuildJob());
      return true;
    case control::Request::kScrub:
      visit(ScrubJob());
      return true;
    default:
      return false;
  }
}

}  // namespace nacre::pool
