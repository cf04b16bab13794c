#pragma once

#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "sharding/local_shard.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/remote/served_clients.h"
#include "sharding/remote/served_shards.h"
#include "util/clock.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// What the requests of other members mean: it executes them on the shards of this process.
///
/// Thread safety: all methods may be called from many threads at once.
class ShardService {
 public:
  using Client = ServedClients::Client;

  /// All outlive it.
  ShardService(ServedShards* served, ServedClients* clients, TaskThreads* threads, Clock* clock)
      : served_(served), clients_(clients), threads_(threads), clock_(clock) {}

  /// If it is given, `would_wait` says that the request may take long, and has not been executed.
  void Execute(Client client, const sharding::MemberRequest& request, sharding::MemberReply* reply,
               bool* would_wait);

 private:
  Status Run(Client client, const sharding::MemberRequest& request, sharding::MemberReply* reply,
             bool* would_wait);
  /// What is asked of a shard that is served here.
  Status RunOnShard(Client client, const std::shared_ptr<LocalShard>& shard,
                    const sharding::MemberRequest& request, sharding::MemberReply* reply,
                    bool* would_wait);
  Status RunGate(Client client, const sharding::GateRequest& request, sharding::MemberReply* reply);
  /// Begins the batch, or does all of it.
  Status RunPart(Client client, LocalShard* shard, const sharding::BatchRequest& request);
  Status RunBatch(Client client, LocalShard* shard, const sharding::BatchRequest& request,
                  sharding::BatchReply* reply);

  // ---- shard_lock_requests.cc ----
  Status RunLock(Client client, const std::shared_ptr<LocalShard>& shard,
                 const sharding::LockRequest& request, bool* would_wait);
  Status Lock(Client client, const std::shared_ptr<LocalShard>& shard,
              const sharding::LockRequest& request, bool* would_wait);
  void Unlock(Client client, LocalShard* shard, const sharding::LockRequest& request);
  /// The locks that a part of a batch has to have.
  void AddLocks(Client client, const LocalShard& shard, const sharding::BatchRequest& request,
                BatchPart* part) const;

  // ---- shard_operations.cc ----
  static Status Write(LocalShard* shard, const sharding::WriteRequest& request, bool* would_wait);
  Status Read(Client client, LocalShard* shard, const sharding::ReadRequest& request,
              sharding::ReadReply* reply, bool* would_wait);
  Status Scan(Client client, LocalShard* shard, const sharding::ScanRequest& request,
              sharding::ScanReply* reply);
  Status TakeSnapshot(Client client, const std::shared_ptr<LocalShard>& shard,
                      sharding::SnapshotReply* reply);
  /// `Aborted` if the client has no such snapshot of the shard.
  Status SnapshotOf(Client client, const LocalShard& shard, uint64_t id,
                    std::shared_ptr<ServedSnapshot>* snapshot) const;

  // ---- shard_database_requests.cc ----
  static Status RunDatabase(LocalShard* shard, const sharding::DatabaseRequest& request,
                            sharding::DatabaseReply* reply);

  Deadline After(uint64_t patience_micros) const {
    return Deadline::After(clock_, std::chrono::microseconds(patience_micros));
  }

  ServedShards* const served_;
  ServedClients* const clients_;
  TaskThreads* const threads_;
  Clock* const clock_;
};

}  // namespace nacre
