#include "memnode/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/node_stats.h"
#include "util/draw_id.h"
#include "util/log.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxConnections = 4096;
constexpr size_t kMaxIncoming = 256;
/// Beyond those that run.
constexpr size_t kMaxWaitingJobs = 64;
/// Each connection has at most a receive, and a fetch or a reply, outstanding. Some adapters
/// (soft-RoCE) have no room for twice as many.
constexpr int kQueueCapacity = 5 * static_cast<int>(kMaxConnections) / 2;
constexpr milliseconds kSweepPeriod{1000};
/// The I/O thread looks for work so long before it sleeps: a client's next request often follows
/// the last one at once.
constexpr uint64_t kBusyNanos = 2'000;

/// It is never 0, which means any.
uint32_t StartIdOf(uint64_t drawn) { return static_cast<uint32_t>(drawn) | 1; }

}  // namespace

Server::Server(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock)
    : options_(options),
      device_(device),
      clock_(clock),
      plugins_(options.plugins != nullptr ? options.plugins
                                          : std::make_shared<const PluginRegistry>()),
      started_nanos_(clock->NowNanos()) {}

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
  NACRE_RETURN_IF_ERROR(device_->AllocateRegion(4096, rdma::Access::kLocalOnly, &scratch_));
  NACRE_RETURN_IF_ERROR(device_->CreateCompletionQueue(kQueueCapacity, &queue_));
  databases_ = std::make_unique<ServerDatabases>(
      region_.get(), file_.get(), [this](uint64_t database_id) { AbortJobs(database_id); });
  NACRE_RETURN_IF_ERROR(TakeKept());
  NACRE_RETURN_IF_ERROR(device_->Listen(options_.listen, &listener_));
  address_ = listener_->address();

  const LocalMemory local{.node = kNoNode,
                          .base = region_->data(),
                          .size = region_->size(),
                          .region = region_->memory()};
  peers_ = std::make_unique<JobPeersCache>(device_, options_.device, clock_, local);
  const auto finished = [this](std::shared_ptr<NodeJob> job) {
    MutexLock lock(&mutex_);
    finished_.push_back(std::move(job));
    queue_->Wake();
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
  io_ = Thread("nacre-node", [this] { Loop(); });
  acceptor_ = Thread("nacre-accept", [this] { AcceptLoop(); });
  Log(options_.log, LogLevel::kInfo, "{}: serves {} slabs of {} bytes, instance {:x}", address_,
      region_->slab_count(), region_->slab_bytes(), instance_id_);
  return Status::OK();
}

void Server::Stop(bool silently) {
  if (stopped_) return;
  stopped_ = true;
  silent_.store(silently, std::memory_order_release);
  stopping_.store(true, std::memory_order_release);
  listener_->Close();
  acceptor_.Join();
  // Afterwards no thread of this node writes to any memory but through the I/O thread.
  compactions_->Stop();
  flushes_->Stop();
  maintenance_->Stop();
  scrubs_->Stop();
  peers_->Clear();
  quit_.store(true, std::memory_order_release);
  queue_->Wake();
  io_.Join();
  connections_.clear();
  {
    MutexLock lock(&mutex_);
    incoming_.clear();
  }
  listener_.reset();
  if (!silently) {
    if (Status s = databases_->KeepAtEnd(); !s.ok()) {
      Log(options_.log, LogLevel::kWarn, "{}: {}", address_, s.ToString());
    }
  }
  region_->FreeMemory();
  file_.reset();
  Log(options_.log, LogLevel::kInfo, "{}: stopped", address_);
}

// ---- Acceptor thread ------------------------------------------------------------------------

void Server::AcceptLoop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    std::unique_ptr<rdma::IncomingConnection> incoming;
    const Status s = listener_->Accept(milliseconds(1000), &incoming);
    if (s.IsShutdownInProgress()) return;
    if (!s.ok()) {
      if (!s.IsTimedOut()) {
        Log(options_.log, LogLevel::kWarn, "{}: cannot accept: {}", address_, s.ToString());
        clock_->SleepFor(milliseconds(10));
      }
      continue;
    }
    Hello hello;
    if (!Hello::Decode(incoming->private_data(), &hello)) {
      request_counters_.malformed.fetch_add(1, std::memory_order_relaxed);
      incoming->Reject("no Nacre client");
      continue;
    }
    if ((hello.kind != ConnectionKind::kData) != incoming->depths().control) {
      // What a device does for control connections only, it is to do for all of them: encrypt, and
      // notice that a peer has vanished.
      request_counters_.malformed.fetch_add(1, std::memory_order_relaxed);
      incoming->Reject("no control connection, or one for data");
      continue;
    }
    const std::string refusal = RefusalReason(hello, options_.slab_bytes, instance_id_, start_id_);
    if (!refusal.empty()) {
      Log(options_.log, LogLevel::kWarn, "{}: refused a client: {}", address_, refusal);
      incoming->Reject(refusal);
      continue;
    }
    MutexLock lock(&mutex_);
    if (incoming_.size() >= kMaxIncoming) {
      incoming->Reject("too many connections at once");
      continue;
    }
    incoming_.emplace_back(std::move(incoming), hello);
    queue_->Wake();
  }
}

// ---- I/O thread -----------------------------------------------------------------------------

void Server::Loop() {
  uint64_t next_sweep = 0;
  uint64_t idle_since = 0;
  while (true) {
    // Read before the queues are: what was put there before it was set is still served.
    const bool quit = quit_.load(std::memory_order_acquire);
    TakeIncoming();
    TakeFinished();
    rdma::Completion completions[32];
    const int n = queue_->Poll(completions, 32);
    for (int i = 0; i < n; ++i) TakeCompletion(completions[i]);
    if (n > 0) {
      idle_since = 0;
      continue;
    }
    if (quit) return;

    const uint64_t now = clock_->NowNanos();
    if (now >= next_sweep) {
      SweepBroken();
      next_sweep = now + static_cast<uint64_t>(std::chrono::nanoseconds(kSweepPeriod).count());
    }
    if (idle_since == 0) idle_since = now;
    if (now - idle_since < kBusyNanos) continue;
    const Status woken = queue_->Wait(std::chrono::nanoseconds(next_sweep - now));
    if (!woken.ok() && !woken.IsTimedOut()) {
      Log(options_.log, LogLevel::kError, "{}: cannot wait: {}", address_, woken.ToString());
      clock_->SleepFor(milliseconds(1));
    }
    idle_since = 0;
  }
}

void Server::TakeIncoming() {
  while (true) {
    std::pair<std::unique_ptr<rdma::IncomingConnection>, Hello> next;
    {
      MutexLock lock(&mutex_);
      if (incoming_.empty()) return;
      next = std::move(incoming_.front());
      incoming_.pop_front();
    }
    Admit(std::move(next.first), next.second);
  }
}

void Server::Admit(std::unique_ptr<rdma::IncomingConnection> incoming, const Hello& hello) {
  const bool has_lifeline = lifelines_.contains(hello.client_id);
  if (hello.client_id == 0 || (hello.kind == ConnectionKind::kLifeline) == has_lifeline) {
    // Without one this node would not learn of the client's end; with two, of which end.
    incoming->Reject(has_lifeline ? "has a lifeline already" : "has no lifeline");
    return;
  }
  if (connections_.size() >= kMaxConnections) {
    incoming->Reject("too many connections");
    return;
  }
  auto connection = std::make_unique<ServerConnection>();
  connection->id = ++last_connection_;
  connection->kind = hello.kind;
  connection->client_id = hello.client_id;
  connection->number = hello.connection;
  Welcome welcome;
  welcome.instance_id = instance_id_;
  Status s = Prepare(connection.get());
  if (s.ok()) {
    s = incoming->Accept(queue_.get(), queue_.get(), welcome.Encode(), &connection->queue_pair);
  } else {
    incoming->Reject("out of memory");
  }
  if (s.ok()) s = PostReceive(connection.get());
  if (!s.ok()) {
    Log(options_.log, LogLevel::kWarn, "{}: a connection failed: {}", address_, s.ToString());
    return;
  }
  if (hello.kind == ConnectionKind::kLifeline) lifelines_[hello.client_id] = connection->id;
  connections_.emplace(connection->id, std::move(connection));
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
}

Status Server::Prepare(ServerConnection* connection) {
  if (connection->kind != ConnectionKind::kRequest) return Status::OK();
  return device_->AllocateRegion(
      ServerConnection::kReceiveBytes + ServerConnection::kShortReplyBytes,
      rdma::Access::kLocalOnly, &connection->memory);
}

void Server::TakeCompletion(const rdma::Completion& completion) {
  const auto it = connections_.find(completion.id >> kWorkBits);
  if (it == connections_.end()) return;  // It was closed with work outstanding.
  ServerConnection* connection = it->second.get();
  if (completion.code != rdma::CompletionCode::kSuccess) {
    if (completion.code == rdma::CompletionCode::kRemoteAccessError) {
      request_counters_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
    Close(connection->id);
    return;
  }
  switch (static_cast<Work>(completion.id & ((1 << kWorkBits) - 1))) {
    case Work::kReceive:
      Received(connection, completion.bytes);
      return;
    case Work::kFetch:
      Fetched(connection);
      return;
    case Work::kReply:
      Answered(connection);
      return;
  }
}

void Server::SweepBroken() {
  std::vector<uint64_t> broken;
  for (const auto& [id, connection] : connections_) {
    if (connection->queue_pair->broken()) broken.push_back(id);
  }
  for (const uint64_t id : broken) Close(id);
}

void Server::Close(uint64_t connection_id) {
  const auto it = connections_.find(connection_id);
  if (it == connections_.end()) return;
  const std::unique_ptr<ServerConnection> connection = std::move(it->second);
  connections_.erase(it);
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
  if (connection->open()) request_counters_.open.fetch_sub(1, std::memory_order_relaxed);
  if (connection->job_id != 0) {
    const auto job = jobs_.find({connection->client_id, connection->job_id});
    if (job != jobs_.end()) job->second.job->Cancel();
  }
  if (connection->kind != ConnectionKind::kLifeline) return;
  lifelines_.erase(connection->client_id);
  ClientGone(connection->client_id, connection->queue_pair->peer_hung_up());
}

void Server::ClientGone(uint64_t client_id, bool hung_up) {
  // Its other connections first: it must not touch what is given to others below.
  std::vector<uint64_t> others;
  for (const auto& [id, connection] : connections_) {
    if (connection->client_id == client_id) others.push_back(id);
  }
  for (const uint64_t id : others) Close(id);
  for (auto job = jobs_.lower_bound({client_id, 0});
       job != jobs_.end() && job->first.first == client_id; ++job) {
    job->second.job->Cancel();
  }
  for (const uint64_t database_id : databases_->OwnerGone(client_id, hung_up)) {
    Log(options_.log, LogLevel::kWarn, "{}: the owner of database {:x} is gone, dropped it",
        address_, database_id);
  }
}

void Server::LookAtOwner(const std::string& database, uint64_t asker) {
  const uint64_t owner = databases_->OwnerOf(database);
  const auto lifeline = lifelines_.find(owner);
  if (owner == asker || lifeline == lifelines_.end()) return;
  rdma::QueuePair* const queue_pair = connections_.at(lifeline->second)->queue_pair.get();
  queue_pair->LookAtPeer();
  if (queue_pair->broken()) Close(lifeline->second);
}

void Server::EndConnections(uint64_t client_id, const control::EndConnections& request) {
  const std::set<uint32_t> numbers(request.connections().begin(), request.connections().end());
  std::vector<uint64_t> ended;
  for (const auto& [id, connection] : connections_) {
    if (connection->client_id == client_id && connection->kind == ConnectionKind::kData &&
        numbers.contains(connection->number)) {
      ended.push_back(id);
    }
  }
  for (const uint64_t id : ended) Close(id);
}

NodeStats Server::stats() const {
  const rdma::TrafficCounters traffic = device_->traffic();
  NodeStats stats;
  stats.address = address_;
  stats.instance_id = instance_id_;
  stats.domain = options_.domain;
  stats.keeping = keeping_;
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
  stats.requests = request_counters_.taken.load(std::memory_order_relaxed);
  stats.requests_open = request_counters_.open.load(std::memory_order_relaxed);
  stats.request_nanos = request_counters_.nanos.load(std::memory_order_relaxed);
  stats.requests_malformed = request_counters_.malformed.load(std::memory_order_relaxed);
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
  stats.connections = connection_count_.load(std::memory_order_relaxed);
  if (databases_ != nullptr) stats.databases = databases_->count();
  stats.uptime_nanos = clock_->NowNanos() - started_nanos_;
  return stats;
}

}  // namespace nacre::pool
