#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/logger.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/utilities/sharded_db.h"
#include "server/cluster/loop_shards.h"
#include "server/loop/event_loop.h"
#include "server/store/slots.h"
#include "server/store/store.h"
#include "util/mutex.h"

namespace nacre::server {

/// A server of a cluster.
struct ClusterNode {
  int64_t member = 0;
  std::string address;  ///< HOST:PORT for clients.
  bool self = false;

  /// Whether clients are to go there.
  bool elsewhere() const { return !address.empty() && !self; }
  /// Forty hexadecimal digits.
  std::string Id() const;
};

/// Slots, and the server that has them.
struct SlotOwner {
  SlotRange slots;
  ClusterNode node;  ///< Without an address: none has them at the moment.
};

/// This server as a part of a cluster: a keyspace (nacre/utilities/sharded_db.h) whose keys lie
/// behind their slots, and whose members are the servers. Each shard is some slots, and the server
/// that owns it runs all commands on its keys, by its own locks, directly on the shard's database.
/// So a command costs what it costs a server that has a database of its own, and is in one shard.
///
/// Invariant: a command on a slot runs only while a loop holds a LoopShards::Use of the shard, and
/// the shard leaves only once no loop does. So all changes of a key are made under the locks of one
/// server at a time; one that was taken for dead is fenced off by the pool.
///
/// Thread safety: all methods may be called from many threads at once, but Open and Close from one.
class Cluster final : public ShardObserver {
 public:
  struct Loop {
    EventLoop* loop = nullptr;
    LoopShards* shards = nullptr;
  };

  /// Called on each loop, of that number, when slots are about to leave: nothing is to wait for
  /// their keys any more.
  using Leaving = std::function<void(size_t loop, SlotRange slots)>;

  /// Answers what another server asks; called by many threads at once, and may wait.
  using Answer = std::function<Status(const Slice& request, std::string* answer)>;

  Cluster(std::vector<Loop> loops, Leaving leaving, Answer answer)
      : loops_(std::move(loops)), leaving_(std::move(leaving)), answer_(std::move(answer)) {}
  ~Cluster() override;

  /// Joins the cluster `name`, or makes it, of so many shards. The loops run. `InvalidArgument` if
  /// there is a keyspace of that name that has no slots; else as ShardedDB::Open.
  Status Open(ShardedOptions options, const std::string& name, int shards);
  /// Gives all shards to others, if there are any, for `patience` at most.
  void GiveAway(std::chrono::milliseconds patience);
  /// Leaves, once. The loops still run, and nothing uses a shard for long.
  Status Close();

  // ---- Nothing is known before it is open ----

  /// The servers, in the order in which they have joined.
  std::vector<ClusterNode> Nodes() const;
  /// All slots, in their order.
  std::vector<SlotOwner> Owners() const;
  /// The server that has the slot.
  ClusterNode OwnerOf(uint32_t slot) const;
  /// How often an owner was set, of all shards together: it grows with each change.
  uint64_t Epoch() const;

  /// Has another server answer: as ShardedDB::AskMember. Blocks, so it is for workers.
  Status Ask(int64_t server, const Slice& request, std::chrono::milliseconds timeout,
             std::string* answer) const;
  /// May be null.
  const std::shared_ptr<Logger>& log() const { return log_; }

  void OnShardServed(const ShardInfo& shard, DB* db) override EXCLUDES(mutex_);
  void OnShardLeaving(uint32_t shard) override EXCLUDES(mutex_);
  uint64_t OperationsOn(uint32_t shard) override EXCLUDES(mutex_);
  Status OnRequest(const Slice& request, std::string* answer) override {
    return answer_(request, answer);
  }

 private:
  using Done = std::function<void()>;

  /// Calls `work` on each loop, and returns when all have called their `done`.
  void OnEachLoop(const std::function<void(size_t loop, const Done& done)>& work) const;
  /// The first failure of the loops.
  Status AddTo(const std::function<Status(LoopShards* loop)>& add) const;

  const std::vector<Loop> loops_;
  const Leaving leaving_;
  const Answer answer_;
  std::shared_ptr<Logger> log_;
  std::unique_ptr<ShardedDB> db_;
  bool closed_ = false;
  std::unique_ptr<Store> reader_;            ///< All shards, to read. Null before it is open.
  std::atomic<ShardedDB*> opened_{nullptr};  ///< db_, once that is open. Release and acquire.
  mutable Mutex mutex_;
  std::map<uint32_t, std::unique_ptr<Store>> stores_ GUARDED_BY(mutex_);  ///< By shard.
};

}  // namespace nacre::server
