#include "memnode/server.h"

#include <fmt/format.h>

#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/node_stats.h"
#include "util/draw_id.h"
#include "util/log.h"

namespace nacre::pool {
namespace {

/// Beyond those that run.
constexpr size_t kMaxWaitingJobs = 64;

/// It is never 0, which means any.
uint32_t StartIdOf(uint64_t drawn) { return static_cast<uint32_t>(drawn) | 1; }

}  // namespace

Server::Server(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock)
    : options_(options),
      device_(device),
      clock_(clock),
      plugins_(options.plugins != nullptr ? options.plugins
                                          : std::make_shared<const PluginRegistry>()),
      started_nanos_(clock->NowNanos()),
      denials_(options.log, clock),
      quotas_(options.quotas) {}

Server::~Server() { Stop(/*silently=*/false); }

Status Server::OpenRegion() {
  if (options_.region_file.empty() && options_.region_memory.empty()) {
    NACRE_RETURN_IF_ERROR(DrawId(&instance_id_));
    start_id_ = StartIdOf(instance_id_);
    return ServerRegion::Create(device_, options_.region_bytes, options_.slab_bytes, instance_id_,
                                options_.log.get(), &region_);
  }
  const bool in_place = options_.region_file.empty();
  RegionFileOptions kept{.path = in_place ? options_.region_memory : options_.region_file,
                         .slab_bytes = options_.slab_bytes,
                         .reset = options_.region_reset,
                         .in_place = in_place,
                         .clock = clock_,
                         .log = options_.log.get()};
  uint64_t start = 0;
  NACRE_RETURN_IF_ERROR(DrawId(&start));
  start_id_ = StartIdOf(start);
  NACRE_RETURN_IF_ERROR(
      ServerRegion::SizeOf(options_.region_bytes, options_.slab_bytes, &kept.region_bytes));
  kept.head_bytes =
      kept.region_bytes - options_.region_bytes / options_.slab_bytes * options_.slab_bytes;
  NACRE_RETURN_IF_ERROR(RegionFile::Open(kept, &file_));
  instance_id_ = file_->instance_id();
  keeping_ = file_->keeping();
  return ServerRegion::Open(device_, options_.region_bytes, options_.slab_bytes, *file_,
                            options_.log.get(), &region_)
      .WithContext("region in " + kept.path);
}

Status Server::TakeKept() {
  if (file_ == nullptr || file_->keeping() != Keeping::kWarm) return Status::OK();
  bool clean = false;
  NACRE_RETURN_IF_ERROR(databases_->TakeKept(clock_->NowNanos(), &clean).WithContext("kept state"));
  Log(options_.log, LogLevel::kInfo, "{}: took over {} databases in {} slabs; {}",
      options_.region_file + options_.region_memory, databases_->count(), region_->leased(),
      clean ? "the process before had stopped by itself" : "the process before was killed");
  return Status::OK();
}

Status Server::Start() {
  NACRE_RETURN_IF_ERROR(OpenRegion());
  if (options_.populate) NACRE_RETURN_IF_ERROR(region_->memory()->Populate());
  databases_ =
      std::make_unique<ServerDatabases>(region_.get(), file_.get(), options_.protocol.features,
                                        [this](uint64_t database_id) { AbortJobs(database_id); });
  NACRE_RETURN_IF_ERROR(TakeKept());
  requests_ = std::make_unique<RequestServer>(RequestServerOptions{.listen = options_.listen,
                                                                   .instance_id = instance_id_,
                                                                   .protocol = options_.protocol,
                                                                   .log = options_.log},
                                              device_, clock_, this);
  NACRE_RETURN_IF_ERROR(requests_->Listen());
  address_ = requests_->address();

  const LocalMemory local{.node = kNoNode,
                          .base = region_->data(),
                          .size = region_->size(),
                          .region = region_->memory()};
  peers_ = std::make_unique<JobPeersCache>(device_, options_.device, clock_, local);
  const auto finished = [this](std::shared_ptr<NodeJob> job) {
    MutexLock lock(&mutex_);
    finished_.push_back(std::move(job));
    requests_->Wake();
  };
  const auto start = [&](const char* name, int workers, size_t waiting) {
    return std::make_unique<NodeJobService>(name, workers, static_cast<size_t>(workers) + waiting,
                                            peers_.get(), &job_counters_, finished);
  };
  compactions_ = start("nacre-compact", options_.workers, kMaxWaitingJobs);
  flushes_ = start("nacre-flush", options_.workers, 0);
  maintenance_ = start("nacre-repair", 1, kMaxWaitingJobs);
  scrubs_ = start("nacre-scrub", 1, kMaxWaitingJobs);
  stopped_ = false;
  requests_->Start();
  Log(options_.log, LogLevel::kInfo, "{}: serves {} slabs of {} bytes, instance {:x}", address_,
      region_->slab_count(), region_->slab_bytes(), instance_id_);
  return Status::OK();
}

void Server::Stop(bool silently) {
  if (stopped_) return;
  stopped_ = true;
  requests_->BeginStop(silently);
  // Afterwards no thread of this node writes to any memory but through the I/O thread.
  compactions_->Stop();
  flushes_->Stop();
  maintenance_->Stop();
  scrubs_->Stop();
  peers_->Clear();
  requests_->Stop(silently);
  if (!silently) {
    if (Status s = databases_->KeepAtEnd(); !s.ok()) {
      Log(options_.log, LogLevel::kWarn, "{}: {}", address_, s.ToString());
    }
  }
  region_->FreeMemory();
  file_.reset();
  Log(options_.log, LogLevel::kInfo, "{}: stopped", address_);
}

// ---- I/O thread -----------------------------------------------------------------------------

std::string Server::Refusal(const Hello& hello) {
  return RefusalReason(hello, options_.slab_bytes, instance_id_, start_id_,
                       options_.protocol.range);
}

void Server::Closing(const ServerConnection& connection) {
  if (connection.job_id == 0) return;
  const auto job = jobs_.find({connection.client_id, connection.job_id});
  if (job != jobs_.end()) job->second.service->Cancel(job->second.job);
}

void Server::LifelineEnded(uint64_t client_id, bool hung_up) {
  for (auto job = jobs_.lower_bound({client_id, 0});
       job != jobs_.end() && job->first.first == client_id; ++job) {
    job->second.service->Cancel(job->second.job);
  }
  for (const uint64_t database_id : databases_->OwnerGone(client_id, hung_up)) {
    Log(options_.log, LogLevel::kWarn, "{}: the owner of database {:x} is gone, dropped it",
        address_, database_id);
  }
}

void Server::LookAtOwner(const std::string& database, uint64_t asker) {
  const uint64_t owner = databases_->OwnerOf(database);
  if (owner != asker) requests_->LookAt(owner);
}

void Server::SetQuotas(std::vector<SecretFile::Quota> quotas) {
  MutexLock lock(&mutex_);
  quotas_ = std::move(quotas);
}

NodeStats Server::stats() const {
  const rdma::TrafficCounters traffic = device_->traffic();
  NodeStats stats;
  stats.address = address_;
  stats.instance_id = instance_id_;
  stats.domain = options_.domain;
  stats.keeping = keeping_;
  stats.release = ReleaseText();
  stats.protocol = options_.protocol;
  stats.workers = static_cast<uint64_t>(options_.workers);
  if (region_ != nullptr) {
    stats.region_bytes = region_->size();
    stats.slab_bytes = region_->slab_bytes();
    stats.slabs_total = region_->slab_count();
    stats.slabs_leased = region_->leased();
  }
  stats.bytes_read = traffic.bytes_read;
  stats.bytes_written = traffic.bytes_written;
  stats.peers_refused = traffic.peers_refused;
  stats.frames_malformed = traffic.frames_malformed;
  if (requests_ != nullptr) {
    const RequestServer::Counts counts = requests_->counts();
    stats.requests = counts.taken;
    stats.requests_open = counts.open;
    stats.request_nanos = counts.nanos;
    stats.requests_malformed = counts.malformed;
    stats.connections = counts.connections;
  }
  constexpr auto kRelaxed = std::memory_order_relaxed;
  stats.compactions = job_counters_.compactions.load(kRelaxed);
  stats.compactions_failed = job_counters_.compactions_failed.load(kRelaxed);
  stats.compaction_bytes_read = job_counters_.compaction_bytes_read.load(kRelaxed);
  stats.compaction_bytes_written = job_counters_.compaction_bytes_written.load(kRelaxed);
  stats.compaction_cpu_nanos = job_counters_.compaction_cpu_nanos.load(kRelaxed);
  stats.flushes = job_counters_.flushes.load(kRelaxed);
  stats.flush_bytes_written = job_counters_.flush_bytes_written.load(kRelaxed);
  stats.flush_cpu_nanos = job_counters_.flush_cpu_nanos.load(kRelaxed);
  stats.rebuilt_bytes = job_counters_.rebuilt_bytes.load(kRelaxed);
  stats.rebuild_cpu_nanos = job_counters_.rebuild_cpu_nanos.load(kRelaxed);
  stats.scrubbed_bytes = job_counters_.scrubbed_bytes.load(kRelaxed);
  if (databases_ != nullptr) {
    stats.databases = databases_->count();
    stats.features_on = databases_->features_on();
  }
  stats.uptime_nanos = clock_->NowNanos() - started_nanos_;
  return stats;
}

}  // namespace nacre::pool
