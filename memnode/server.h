#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "memnode/node_job_service.h"
#include "memnode/server_databases.h"
#include "memnode/server_region.h"
#include "nacre/status.h"
#include "pool/serve/request_handler.h"
#include "pool/serve/request_server.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/node_stats.h"
#include "rdma/refusals.h"
#include "rdma/transport.h"
#include "util/mutex.h"

namespace nacre::pool {

/// Serves one memory node: a RequestServer has its connections, on whose I/O thread every request
/// is executed but jobs (server_jobs.cc).
///
/// Thread safety: Start and Stop from one thread; stats and SetQuotas from any.
class Server final : public RequestHandler {
 public:
  Server(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock);
  ~Server() override;

  Status Start();
  /// Idempotent. `silently`: without answers to what is under way, as if the process had died.
  void Stop(bool silently);

  const std::string& address() const { return address_; }
  NodeStats stats() const;
  void SetQuotas(std::vector<SecretFile::Quota> quotas) EXCLUDES(mutex_);

 private:
  struct RunningJob {
    std::shared_ptr<NodeJob> job;
    NodeJobService* service = nullptr;
    uint64_t connection = 0;  ///< The connection that waits for the result.
  };
  using JobKey = std::pair<uint64_t, uint64_t>;  // Client and job.

  Status OpenRegion();
  /// What the file says of databases.
  Status TakeKept();

  // Acceptor thread.
  std::string Refusal(const Hello& hello) override;

  // I/O thread (server.cc).
  FeatureSet features_on() const override { return databases_->features_on(); }
  void Closing(const ServerConnection& connection) override;
  void LifelineEnded(uint64_t client_id, bool hung_up) override;
  /// Must precede telling another client of an owner, which may have ended unnoticed by this node;
  /// then its database has no owner.
  void LookAtOwner(const std::string& database, uint64_t asker);

  // I/O thread (server_requests.cc).
  void Execute(ServerConnection* connection) override;
  bool CountsTime(const control::Request& request) const override;
  /// Whether the client's secret allows the request, which is logged if not.
  Status CheckRights(const ServerConnection& connection);
  Status ExecuteNow(ServerConnection* connection, control::Reply* reply);
  void FillDescription(control::Description* description) const;
  void ListClients(control::DatabaseList* list) const;
  Status LeaseSlabs(const ServerConnection& connection, const control::LeaseSlabs& request,
                    control::Slabs* reply);
  /// `NoSpace` naming the quota that `count` more slabs for the database would exceed.
  Status CheckQuotas(uint64_t database_id, uint64_t count) EXCLUDES(mutex_);
  /// Offsets and write keys.
  void FillSlabs(const std::vector<uint64_t>& offsets, control::Slabs* slabs) const;
  Status ApplyImageUpdate(const ServerConnection& connection,
                          const control::ApplyImageUpdate& request);

  // I/O thread (server_jobs.cc).
  Status StartJob(ServerConnection* connection);
  NodeJobService* ServiceFor(const control::Request& request) const;
  Status CheckExtents(const NodeJob& job) const;
  Status CheckLeased(uint64_t database_id, const ExtentAddr& extent) const;
  Status BeginJob(const ServerConnection& connection, const control::BeginJob& request,
                  control::JobKeys* reply);
  Status EndJobs(const ServerConnection& connection, const control::EndJobs& request);
  /// All of the database; see ServerDatabases.
  void AbortJobs(uint64_t database_id);
  /// Answers those that have finished, and ends clients that do not know what was turned on.
  void OnIo() override EXCLUDES(mutex_);

  const MemoryNodeOptions options_;
  rdma::Device* const device_;
  Clock* const clock_;
  const std::shared_ptr<const PluginRegistry> plugins_;
  const uint64_t started_nanos_;
  rdma::Refusals denials_;  ///< Requests that were refused for want of a right.
  uint64_t instance_id_ = 0;
  uint32_t start_id_ = 0;  ///< See control::Description.
  Keeping keeping_ = Keeping::kNone;
  std::string address_;

  std::unique_ptr<RegionFile> file_;  ///< Null: the memory ends with the process.
  std::unique_ptr<ServerRegion> region_;
  std::unique_ptr<ServerDatabases> databases_;
  std::map<JobKey, RunningJob> jobs_;
  JobCounters job_counters_;
  std::unique_ptr<JobPeersCache> peers_;
  std::unique_ptr<NodeJobService> compactions_;
  /// Takes what it has a thread for: the owner has one, too, and writers wait for flushes.
  std::unique_ptr<NodeJobService> flushes_;
  /// Runs all other jobs, which are less urgent than a compaction.
  std::unique_ptr<NodeJobService> maintenance_;
  std::unique_ptr<NodeJobService> scrubs_;  ///< It is slow on purpose: no job is to wait behind it.

  bool stopped_ = true;

  Mutex mutex_;
  std::deque<std::shared_ptr<NodeJob>> finished_ GUARDED_BY(mutex_);
  std::vector<SecretFile::Quota> quotas_ GUARDED_BY(mutex_);

  std::unique_ptr<RequestServer> requests_;  ///< Since Start. Its threads use all that is above.
};

}  // namespace nacre::pool
