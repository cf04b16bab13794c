#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "memnode/node_job_service.h"
#include "memnode/server_connection.h"
#include "memnode/server_databases.h"
#include "memnode/server_region.h"
#include "nacre/status.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/node_stats.h"
#include "rdma/transport.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// Serves the connections of one memory node: a thread that accepts them, and an I/O thread that
/// owns them all and executes every request but jobs (server_jobs.cc).
///
/// Thread safety: Start and Stop from one thread; stats from any.
class Server {
 public:
  Server(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock);
  ~Server();

  Status Start();
  /// Idempotent. `silently`: without answers to what is under way, as if the process had died.
  void Stop(bool silently);

  const std::string& address() const { return address_; }
  NodeStats stats() const;

 private:
  /// Requests of a connection, in the low bits of their ids.
  enum class Work : uint8_t { kReceive = 1, kFetch = 2, kReply = 3 };
  static constexpr int kWorkBits = 8;

  struct RunningJob {
    std::shared_ptr<NodeJob> job;
    uint64_t connection = 0;  ///< The connection that waits for the result.
  };
  using JobKey = std::pair<uint64_t, uint64_t>;  // Client and job.

  static uint64_t IdOf(const ServerConnection& connection, Work work) {
    return connection.id << kWorkBits | static_cast<uint64_t>(work);
  }

  Status OpenRegion();
  /// What the file says of databases.
  Status TakeKept();

  // Acceptor thread.
  void AcceptLoop();

  // I/O thread (server.cc).
  void Loop();
  void TakeIncoming() EXCLUDES(mutex_);
  void Admit(std::unique_ptr<rdma::IncomingConnection> incoming, const Hello& hello);
  Status Prepare(ServerConnection* connection);
  void TakeCompletion(const rdma::Completion& completion);
  void SweepBroken();
  /// Ends a connection and whatever depends on it.
  void Close(uint64_t connection_id);
  void ClientGone(uint64_t client_id, bool hung_up);
  /// Must precede telling another client of an owner, which may have ended unnoticed by this node;
  /// then its database has no owner.
  void LookAtOwner(const std::string& database, uint64_t asker);
  /// Those of the client for data that have these numbers.
  void EndConnections(uint64_t client_id, const control::EndConnections& request);

  // I/O thread (server_requests.cc).
  Status PostReceive(ServerConnection* connection);
  void Received(ServerConnection* connection, uint32_t bytes);
  void Accepted(ServerConnection* connection);
  void Fetched(ServerConnection* connection);
  void Execute(ServerConnection* connection);
  Status ExecuteNow(ServerConnection* connection, control::Reply* reply);
  /// Answers; the connection is closed if that fails.
  void Answer(ServerConnection* connection, const Status& status, control::Reply reply);
  void Answered(ServerConnection* connection);
  Status PostReply(ServerConnection* connection, const std::string& frame);
  void Malformed(ServerConnection* connection, const Status& why);

  void FillDescription(control::Description* description) const;
  Status LeaseSlabs(const ServerConnection& connection, const control::LeaseSlabs& request,
                    control::Slabs* reply);
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
  void TakeFinished() EXCLUDES(mutex_);

  /// Written by the threads of the server, read by any. Relaxed.
  struct RequestCounters {
    std::atomic<uint64_t> taken{0};
    std::atomic<uint64_t> open{0};   ///< Not answered yet.
    std::atomic<uint64_t> nanos{0};  ///< From taking them to answering them, jobs apart.
    std::atomic<uint64_t> malformed{0};
  };

  const MemoryNodeOptions options_;
  rdma::Device* const device_;
  Clock* const clock_;
  const std::shared_ptr<const PluginRegistry> plugins_;
  const uint64_t started_nanos_;
  uint64_t instance_id_ = 0;
  uint32_t start_id_ = 0;  ///< See control::Description.
  Keeping keeping_ = Keeping::kNone;
  std::string address_;

  std::unique_ptr<RegionFile> file_;  ///< Null: the memory ends with the process.
  std::unique_ptr<ServerRegion> region_;
  std::unique_ptr<rdma::MemoryRegion> scratch_;  ///< Backs receives in which nothing should arrive.
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<ServerDatabases> databases_;
  std::unordered_map<uint64_t, std::unique_ptr<ServerConnection>> connections_;
  std::map<uint64_t, uint64_t> lifelines_;  ///< Client to connection.
  uint64_t last_connection_ = 0;
  std::map<JobKey, RunningJob> jobs_;
  JobCounters job_counters_;
  std::unique_ptr<JobPeersCache> peers_;
  std::unique_ptr<NodeJobService> compactions_;
  /// Takes what it has a thread for: the owner has one, too, and writers wait for flushes.
  std::unique_ptr<NodeJobService> flushes_;
  /// Runs all other jobs, which are less urgent than a compaction.
  std::unique_ptr<NodeJobService> maintenance_;
  std::unique_ptr<NodeJobService> scrubs_;  ///< It is slow on purpose: no job is to wait behind it.

  std::unique_ptr<rdma::Listener> listener_;
  Thread acceptor_;
  Thread io_;
  bool stopped_ = true;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> silent_{false};
  std::atomic<bool> quit_{false};

  Mutex mutex_;
  std::deque<std::pair<std::unique_ptr<rdma::IncomingConnection>, Hello>> incoming_
      GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<NodeJob>> finished_ GUARDED_BY(mutex_);

  RequestCounters request_counters_;
  std::atomic<uint64_t> connection_count_{0};
};

}  // namespace nacre::pool
