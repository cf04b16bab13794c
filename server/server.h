#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/page.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "server/loop/worker_pool.h"
#include "server/net/server_tls.h"
#include "server/session/listener.h"
#include "server/store/store.h"
#include "util/threads/thread.h"

namespace nacre::server {

struct ServerOptions {
  /// How the database is opened; its families have these options, too.
  Options database;
  std::string database_name = "redis";
  /// "etcd:HOST:PORT,...": the server is a part of a cluster, by this coordinator. Empty: it has
  /// the database to itself.
  std::string coordinator;
  /// In a cluster: where the other servers reach this one to move shards, as
  /// ShardedOptions::member_address has it. Empty: any port of the host of `listen`.
  std::string member_address;
  int shards = 16;  ///< How many a new cluster begins with.
  /// HOST:PORT that clients of this server's fellows are sent to; empty: where it listens.
  std::string announce;
  /// HOST:PORT, where HOST is an address of IPv4, or of IPv6 in brackets; port 0 is a free one.
  std::string listen = "127.0.0.1:6379";
  /// In a cluster: the same for clients that know no clusters; commands on keys that other servers
  /// have are forwarded to those. Empty: there is none.
  std::string proxy_listen;
  int threads = 2;  ///< Event loops.
  int workers = 4;  ///< Threads for what walks through many rows.
  int databases = 16;
  std::string password;  ///< The default user's; empty: as the file of users has it, or none.
  std::string acl_file;  ///< With the users, as Redis's aclfile; empty: there is only the default.
  TlsFiles tls;          ///< With a certificate clients speak TLS, and none does without.
  int64_t clients_max = 10'000;
  /// How often expired keys, and elements of keys that are gone, are looked for.
  std::chrono::milliseconds sweep_interval{100};
};

/// Serves Redis's protocol from one database, which it opens and owns.
///
/// Thread safety: Stop, and the destructor, need all other calls to have returned.
class Server final : public metrics::Source {
 public:
  /// Serves from when this returns. `InvalidArgument` for options that are out of range,
  /// `IOError` if the address cannot be listened at; else as DB::Open.
  static Status Start(const ServerOptions& options, std::unique_ptr<Server>* server);
  /// The same without the database, which another server may have: answers what needs none, and
  /// `LOADING` else, until it is given the database by TakeOver.
  static Status StartWaiting(const ServerOptions& options, std::unique_ptr<Server>* server);

  // ---- After StartWaiting, by one thread ----

  /// Opens the database and serves it. Fails as Start does, and goes on waiting: `Busy` as long as
  /// another server has it, unless that has answered nothing for `down_after`. Its address is
  /// learnt meanwhile. Once an attempt has opened the database, a failure is final.
  Status TakeOver(std::chrono::milliseconds down_after);
  bool serving() const { return store_ != nullptr; }
  /// `Fenced` if another process has taken the database over.
  Status CheckOwned() const { return store_->CheckOwned(); }
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// HOST:PORT, with the port that was chosen.
  const std::string& address() const { return state_.address; }
  /// The same of ServerOptions::proxy_listen; empty if there is none.
  std::string proxy_address() const { return proxy_ == nullptr ? "" : proxy_->address(); }
  bool speaks_tls() const { return !options_.tls.certificate.empty(); }
  /// Reads the files of TLS anew, for connections from here on; if that fails, as Start does, all
  /// stays as it was. Requires speaks_tls(). By any thread.
  Status ReadCertificates();
  /// Accepts no more clients, answers what was begun, closes, and closes the database, which it
  /// answers for. Clients that have not taken their answers after `patience` are dropped.
  Status Stop(std::chrono::milliseconds patience);

  void Collect(metrics::Page* page) const override;

 private:
  explicit Server(const ServerOptions& options);
  static Status Check(const ServerOptions& options);
  Status Open(std::unique_ptr<Store> store);
  Status MakeCluster();
  Status JoinCluster();
  /// And the commands, which the rules of users name.
  Status MakeUsers();
  /// Has the loop use the store.
  Status Equip(LoopState* loop);
  /// Says where this server is, which has the database now. `waited`: so do others.
  Status Announce(bool waited);
  /// Learns where the server is that has the database, and whether it answers.
  void LookAtMaster();
  void BeginToSweep();
  void AwaitNoClients(std::chrono::milliseconds patience) const;

  const ServerOptions options_;
  std::unique_ptr<Store> store_;
  AnnouncedAddress announced_;  ///< What the server says that has the database.
  WorkerPool workers_;
  WorkerPool askers_;
  ServerState state_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Listener> proxy_;
  std::vector<Thread> threads_;
  bool stopped_ = false;
  // While it waits.
  uint64_t looked_at_ns_ = 0;
  uint64_t answered_at_ns_ = 0;  ///< When the server last did that has the database; 0: never.
};

}  // namespace nacre::server
