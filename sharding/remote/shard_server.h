#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/connect/peer_device.h"
#include "pool/serve/request_handler.h"
#include "pool/serve/request_server.h"
#include "rdma/transport.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/remote/served_clients.h"
#include "sharding/remote/served_shards.h"
#include "sharding/remote/shard_service.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// Serves this process's shards to the other members of a keyspace.
///
/// A request that waits for nothing is executed by the I/O thread: a Get or Put of another process
/// costs no change of threads. Any other one is executed by a thread of its own.
///
/// Thread safety: Start and Stop from one thread.
class ShardServer final : private pool::RequestHandler {
 public:
  /// All that it points to outlives it.
  struct Context {
    ServedShards* served;
    TaskThreads* threads;
    Clock* clock;
    std::string keyspace;
    pool::PeerSecurity security{};
    std::shared_ptr<Logger> log{};
  };

  explicit ShardServer(Context context);
  /// As Stop.
  ~ShardServer() override;

  /// `listen`: "tcp:10.0.0.1:0", "shm:@".
  Status Start(const std::string& listen);
  /// Ends all connections, once what is under way has ended.
  void Stop() EXCLUDES(mutex_);

  /// Where others reach it. Since Start.
  const std::string& address() const { return server_->address(); }
  /// Drops the snapshots and locks of a shard that is served no more.
  void DropBelongingsOf(uint32_t shard) { clients_.DropBelongingsOf(shard); }

 private:
  struct Done {
    uint64_t connection = 0;
    uint64_t client = 0;
    std::string reply;
  };

  // RequestHandler.
  std::string Refusal(const pool::Hello& hello) override;
  void Execute(pool::ServerConnection* connection) override EXCLUDES(mutex_);
  void LifelineEnded(uint64_t client_id, bool hung_up) override;
  void OnIo() override EXCLUDES(mutex_);

  /// Counts a request that another thread is to execute; false if none begins any more.
  bool Begin() EXCLUDES(mutex_);
  void EndClient(uint64_t client);
  void AnswerWith(pool::ServerConnection* connection, std::string reply);

  const Context context_;
  ServedClients clients_;
  ShardService service_;
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<pool::RequestServer> server_;
  bool started_ = false;

  Mutex mutex_;
  CondVar ended_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  int under_way_ GUARDED_BY(mutex_) = 0;  ///< Requests that other threads execute.
  std::vector<Done> done_ GUARDED_BY(mutex_);
};

}  // namespace nacre
