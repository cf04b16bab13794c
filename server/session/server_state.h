#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nacre/async.h"
#include "server/acl/acl_command.h"
#include "server/acl/acl_table.h"
#include "server/cluster/broadcast.h"
#include "server/cluster/cluster.h"
#include "server/cluster/loop_shards.h"
#include "server/loop/event_loop.h"
#include "server/net/server_tls.h"
#include "server/resp/request_parser.h"
#include "server/scripts/lua_engine.h"
#include "server/scripts/script_library.h"
#include "server/session/acl_log.h"
#include "server/session/command.h"
#include "server/session/cursor_table.h"
#include "server/session/master.h"
#include "server/session/pubsub.h"
#include "server/session/settings.h"
#include "server/session/slow_log.h"
#include "server/session/snapshot_table.h"
#include "server/session/watch_table.h"
#include "server/store/store.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre::server {

/// One event loop with what belongs to it.
///
/// Thread safety: code of the loop only, but for the counters.
struct LoopState {
  LoopState(Clock* clock, uint64_t seed, WorkerPool* workers)
      : loop(clock), shards(&loop, workers), random(seed) {
    access = {.store = nullptr, .loop = &loop, .async = nullptr, .workers = workers};
  }

  EventLoop loop;
  std::unique_ptr<AsyncDB> async;
  StoreAccess access;  ///< Without a store while the server waits, and in a cluster.
  LoopShards shards;   ///< In a cluster.
  Random random;       ///< For commands that choose elements at random.
  std::map<uint64_t, Client*> clients;             ///< By their ids.
  std::vector<std::unique_ptr<Call>> spare_calls;  ///< For the next requests.
  std::unique_ptr<LuaEngine> lua;                  ///< Made for the first script.
  std::atomic<uint64_t> commands{0};
};

/// The version of Redis whose commands and errors these are, as clients ask for it.
inline constexpr const char* kRedisVersion = "7.0.15";

/// What all loops of a server share. The loops are made before any of them runs.
///
/// Thread safety: all of it may be used from many threads at once.
class ServerState {
 public:
  /// Null while the server waits for the database. It is set before any loop is told of it
  /// (LoopState::access), and then stays.
  Store* store = nullptr;
  /// Null: the server has one database. Set before there are clients.
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Broadcast> broadcast;  ///< Null, as the cluster.
  WorkerPool* askers = nullptr;          ///< Threads that wait for other servers of the cluster.
  Master master;
  WatchTable watches;
  RequestLimits limits;
  Settings settings;
  SlowLog slow_log;
  CursorTable cursors;
  PubSub pubsub;
  SnapshotTable snapshots;
  ScriptLibrary scripts;
  AclCatalog acl_commands;  ///< Complete before there are clients.
  AclTable acl{&acl_commands};
  std::string acl_file;  ///< Where ACL SAVE and LOAD have the users; empty: nowhere.
  AclLog acl_log;
  std::vector<std::unique_ptr<LoopState>> loops;
  std::unordered_map<std::string_view, const Command*> commands;
  std::string address;  ///< HOST:PORT that is listened at.
  std::string run_id;   ///< 40 hexadecimal digits, drawn at the start.
  uint64_t started_at_ns = 0;
  std::atomic<uint64_t> next_client{1};
  std::atomic<uint64_t> connections{0};        ///< Open ones.
  std::atomic<uint64_t> connections_total{0};  ///< All that there were.
  std::atomic<uint64_t> rejected{0};           ///< Connections beyond maxclients.
  std::atomic<uint64_t> forwarded{0};          ///< Commands that other servers have run.
  std::atomic<size_t> next_loop{0};            ///< For commands of other servers' clients.
  std::atomic<uint64_t> expired_keys{0};       ///< Keys that were removed since they had expired.

  /// Not while the server waits for the database.
  bool serving(const LoopState& loop) const {
    return loop.access.store != nullptr || cluster != nullptr;
  }
  /// Null: there is no such command.
  const Command* FindCommand(std::string_view name) const;

  /// What new connections speak. Null: what clients send is not encrypted; that stays so while the
  /// server runs.
  std::shared_ptr<const ServerTls> tls() const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return tls_;
  }
  void set_tls(std::shared_ptr<const ServerTls> tls) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    tls_ = std::move(tls);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ServerTls> tls_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
