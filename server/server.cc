#include "server/server.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <future>
#include <span>
#include <utility>

#include "server/commands/command_lists.h"
#include "server/session/connection.h"
#include "server/session/forwarding.h"
#include "server/session/permission.h"
#include "server/session/probe.h"
#include "server/session/sweeper.h"
#include "server/session/watch_table.h"
#include "util/clock.h"
#include "util/draw_id.h"

namespace nacre::server {
namespace {

constexpr std::chrono::seconds kTick{1};
/// How often a stopping server looks whether its clients have gone.
constexpr std::chrono::milliseconds kLook{5};
/// What waits for other servers of a cluster at once.
constexpr int kAskers = 32;
/// Longer than any operation of the database may take.
constexpr std::chrono::minutes kCommandTime{10};

Status CheckRange(const char* what, int value, int min, int max) {
  if (value >= min && value <= max) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("{} is {}, which is not from {} to {}", what, value, min, max));
}

/// Closes clients that have been silent for too long, and gives up old snapshots; once a second.
void Tick(ServerState* server, LoopState* loop) {
  server->snapshots.RemoveOld(loop->loop.clock()->NowNanos());
  const int64_t seconds = server->settings.idle_seconds_max.load(std::memory_order_relaxed);
  if (seconds > 0) {
    const uint64_t now = loop->loop.clock()->NowNanos();
    for (const auto& [id, client] : loop->clients) {
      const bool waits = client->blocked != nullptr || client->subscriptions() > 0;
      if (!waits && client->last_seen_ns + static_cast<uint64_t>(seconds) * 1'000'000'000 < now) {
        client->CloseSoon();
      }
    }
  }
  loop->loop.After(kTick, [server, loop] { Tick(server, loop); });
}

/// Has the clients of the loop close once they are answered.
void BeginToEnd(ServerState* server, LoopState* loop) {
  for (const auto& [id, client] : loop->clients) {
    if (client->blocked != nullptr) {
      server->watches.End(client->blocked, BlockedClient::End::kClosed);
    }
    client->CloseSoon();
  }
}

}  // namespace

Status Server::Check(const ServerOptions& options) {
  NACRE_RETURN_IF_ERROR(CheckRange("the number of threads", options.threads, 1, 256));
  NACRE_RETURN_IF_ERROR(CheckRange("the number of workers", options.workers, 1, 256));
  NACRE_RETURN_IF_ERROR(CheckRange("the number of databases", options.databases, 1, 1024));
  NACRE_RETURN_IF_ERROR(
      CheckRange("the number of shards", options.shards, 1, static_cast<int>(kSlots)));
  if (!options.proxy_listen.empty() && options.coordinator.empty()) {
    return Status::InvalidArgument("--proxy_listen: there is nothing to forward without a cluster");
  }
  if (options.clients_max < 1) return Status::InvalidArgument("no client would be served");
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return Status::InvalidArgument("TLS needs a certificate and its private key, both");
  }
  if (options.tls.certificate.empty() && !options.tls.authorities.empty()) {
    return Status::InvalidArgument("certificates of clients need TLS, which has no certificate");
  }
  return Status::OK();
}

Status Server::Start(const ServerOptions& options, std::unique_ptr<Server>* server) {
  NACRE_RETURN_IF_ERROR(Check(options));
  std::unique_ptr<Server> started(new Server(options));
  NACRE_RETURN_IF_ERROR(started->MakeUsers());
  std::unique_ptr<Store> store;
  if (options.coordinator.empty()) {
    NACRE_RETURN_IF_ERROR(
        Store::Open(options.database, options.database_name, options.databases, &store));
  }
  NACRE_RETURN_IF_ERROR(started->Open(std::move(store)));
  if (!options.coordinator.empty()) NACRE_RETURN_IF_ERROR(started->JoinCluster());
  *server = std::move(started);
  return Status::OK();
}

Status Server::StartWaiting(const ServerOptions& options, std::unique_ptr<Server>* server) {
  NACRE_RETURN_IF_ERROR(Check(options));
  std::unique_ptr<Server> started(new Server(options));
  NACRE_RETURN_IF_ERROR(started->MakeUsers());
  NACRE_RETURN_IF_ERROR(started->Open(nullptr));
  *server = std::move(started);
  return Status::OK();
}

Server::Server(const ServerOptions& options)
    : options_(options),
      announced_(options.database, options.database_name),
      workers_(options.workers),
      askers_(kAskers) {}

Server::~Server() { Stop(std::chrono::milliseconds(0)).IgnoreError(); }

Status Server::Open(std::unique_ptr<Store> store) {
  store_ = std::move(store);
  state_.store = store_.get();
  state_.master.name = options_.database_name;
  if (speaks_tls()) NACRE_RETURN_IF_ERROR(ReadCertificates());
  state_.settings.clients_max.store(options_.clients_max, std::memory_order_relaxed);
  state_.settings.SetFixed("databases", std::to_string(options_.databases));
  state_.settings.SetFixed("io-threads", std::to_string(options_.threads));
  state_.settings.SetFixed("proto-max-bulk-len", std::to_string(state_.limits.bulk_bytes_max));
  for (int i = 0; i < 3; ++i) {
    uint64_t id = 0;
    NACRE_RETURN_IF_ERROR(DrawId(&id));
    state_.run_id += fmt::format("{:016x}", id);
  }
  state_.run_id.resize(40);
  Clock* const clock = Clock::System();
  state_.started_at_ns = clock->NowNanos();
  for (int i = 0; i < options_.threads; ++i) {
    uint64_t seed = 0;
    NACRE_RETURN_IF_ERROR(DrawId(&seed));
    auto loop = std::make_unique<LoopState>(clock, seed, &workers_);
    NACRE_RETURN_IF_ERROR(loop->loop.Open());
    if (store_ != nullptr) NACRE_RETURN_IF_ERROR(Equip(loop.get()));
    state_.loops.push_back(std::move(loop));
  }
  NACRE_RETURN_IF_ERROR(
      Listener::Open(options_.listen, Client::Origin::kDirect, &state_, &listener_));
  if (!options_.coordinator.empty()) NACRE_RETURN_IF_ERROR(MakeCluster());
  state_.address = listener_->address();
  state_.settings.SetFixed("bind", state_.address.substr(0, state_.address.rfind(':')));
  const std::string port = state_.address.substr(state_.address.rfind(':') + 1);
  state_.settings.SetFixed("port", speaks_tls() ? "0" : port);
  state_.settings.SetFixed("tls-port", speaks_tls() ? port : "0");
  if (store_ != nullptr) NACRE_RETURN_IF_ERROR(Announce(/*waited=*/false));
  for (size_t i = 0; i < state_.loops.size(); ++i) {
    LoopState* const loop = state_.loops[i].get();
    loop->loop.Post([this, loop] { Tick(&state_, loop); });
    threads_.emplace_back(fmt::format("nacre-loop{}", i), [loop] { loop->loop.Run(); });
  }
  if (store_ != nullptr) BeginToSweep();
  return Status::OK();
}

Status Server::MakeCluster() {
  std::vector<Cluster::Loop> loops;
  for (const auto& each : state_.loops) loops.push_back({&each->loop, &each->shards});
  state_.cluster = std::make_unique<Cluster>(
      std::move(loops),
      [this](size_t loop, SlotRange slots) {
        state_.watches.EndOfSlots(slots);
        state_.pubsub.EndOfSlots(state_.loops[loop].get(), slots);
      },
      [this](const Slice& request, std::string* answer) {
        return AnswerServer(&state_, request, answer);
      });
  state_.askers = &askers_;
  state_.broadcast = std::make_unique<Broadcast>(state_.cluster.get(), &askers_);
  if (options_.proxy_listen.empty()) return Status::OK();
  return Listener::Open(options_.proxy_listen, Client::Origin::kProxied, &state_, &proxy_);
}

Status Server::JoinCluster() {
  ShardedOptions options(options_.database);
  options.coordinator = options_.coordinator;
  options.client_address = options_.announce.empty() ? state_.address : options_.announce;
  options.member_address = options_.member_address;
  if (options.member_address.empty()) {
    options.member_address = "tcp:" + state_.address.substr(0, state_.address.rfind(':')) + ":0";
  }
  NACRE_RETURN_IF_ERROR(
      state_.cluster->Open(std::move(options), options_.database_name, options_.shards));
  BeginToSweep();
  return Status::OK();
}

Status Server::MakeUsers() {
  for (const CommandList& list : CommandLists()) {
    for (const Command& command : list.commands()) {
      state_.commands[command.name] = &command;
      state_.acl_commands.Add(AclCommandOf(command, list.categories));
    }
  }
  state_.acl_file = options_.acl_file;
  state_.settings.SetFixed("aclfile", options_.acl_file);
  if (!options_.acl_file.empty()) NACRE_RETURN_IF_ERROR(state_.acl.Load(options_.acl_file));
  state_.settings.set_password(options_.password);
  if (!options_.password.empty()) state_.acl.SetDefaultPassword(options_.password);
  return Status::OK();
}

Status Server::ReadCertificates() {
  std::shared_ptr<const ServerTls> tls;
  NACRE_RETURN_IF_ERROR(ServerTls::Open(options_.tls, &tls));
  state_.set_tls(std::move(tls));
  return Status::OK();
}

Status Server::Equip(LoopState* loop) {
  NACRE_RETURN_IF_ERROR(store_->db()->NewAsyncDB(&loop->loop, &loop->async));
  loop->access.async = loop->async.get();
  loop->access.store = store_.get();
  return Status::OK();
}

void Server::BeginToSweep() {
  LoopState* const first = state_.loops.front().get();
  first->loop.Post([this, first] { SweepRepeatedly(&state_, first, options_.sweep_interval); });
}

Status Server::Announce(bool waited) {
  const std::string& own = options_.announce.empty() ? state_.address : options_.announce;
  const std::string before = state_.master.Set(own);
  NACRE_RETURN_IF_ERROR(store_->Announce(own, waited));
  const auto [host, port] = Master::Divide(own);
  const auto [old_host, old_port] = Master::Divide(before.empty() ? own : before);
  state_.pubsub.Publish("+switch-master", fmt::format("{} {} {} {} {}", state_.master.name,
                                                      old_host, old_port, host, port));
  return Status::OK();
}

Status Server::TakeOver(std::chrono::milliseconds down_after) {
  Options options = options_.database;
  const uint64_t silent_ns = Clock::System()->NowNanos() - answered_at_ns_;
  // One that stands still keeps its connections. What it does later is fenced off.
  options.take_over =
      answered_at_ns_ != 0 &&
      silent_ns > static_cast<uint64_t>(std::chrono::nanoseconds(down_after).count());
  std::unique_ptr<Store> store;
  const Status opened = Store::Open(options, options_.database_name, options_.databases, &store);
  if (!opened.ok()) {
    LookAtMaster();
    return opened;
  }
  store_ = std::move(store);
  state_.store = store_.get();
  Status status;
  for (const auto& loop : state_.loops) {
    std::promise<Status> equipped;
    loop->loop.Post([&] { equipped.set_value(Equip(loop.get())); });
    const Status done = equipped.get_future().get();
    if (status.ok()) status = done;
  }
  NACRE_RETURN_IF_ERROR(std::move(status));
  BeginToSweep();
  return Announce(/*waited=*/true);
}

void Server::LookAtMaster() {
  constexpr std::chrono::milliseconds kInterval(500);
  constexpr std::chrono::milliseconds kPatience(500);
  Clock* const clock = Clock::System();
  std::string address;
  if (!announced_.Read(&address).ok()) {
    // Another server may have the database by now, which is not to be taken for this one.
    if (answered_at_ns_ != 0) answered_at_ns_ = clock->NowNanos();
    return;
  }
  if (state_.master.Set(address) != address) looked_at_ns_ = answered_at_ns_ = 0;
  const auto interval = static_cast<uint64_t>(std::chrono::nanoseconds(kInterval).count());
  if (clock->NowNanos() < looked_at_ns_ + interval) return;
  if (Answers(address, speaks_tls(), kPatience)) answered_at_ns_ = clock->NowNanos();
  looked_at_ns_ = clock->NowNanos();
}

Status Server::Stop(std::chrono::milliseconds patience) {
  if (std::exchange(stopped_, true)) return Status::OK();
  Status left;
  if (!threads_.empty()) {
    if (state_.cluster != nullptr) state_.cluster->GiveAway(patience);
    // The first loop accepts, and deals what it has accepted to the others before they are told.
    state_.loops.front()->loop.Post([this] {
      listener_->Stop();
      if (proxy_ != nullptr) proxy_->Stop();
      for (const auto& each : state_.loops) {
        each->loop.Post([this, loop = each.get()] { BeginToEnd(&state_, loop); });
      }
    });
    AwaitNoClients(patience);
    state_.scripts.CutOff();
    for (const auto& each : state_.loops) {
      LoopState* const loop = each.get();
      loop->loop.Post([loop] {
        while (!loop->clients.empty()) loop->clients.begin()->second->Close();
      });
    }
    // A client lives until its commands have ended, which the database sees to. Until then all
    // loops run, as some commands ask the others.
    AwaitNoClients(kCommandTime);
    if (state_.cluster != nullptr) {
      state_.broadcast->Close();
      left = state_.cluster->Close();
    }
    for (const auto& each : state_.loops) each->loop.Stop();
    for (Thread& thread : threads_) thread.Join();
    threads_.clear();
  }
  // Nothing is under way any more.
  for (const auto& loop : state_.loops) loop->async.reset();
  state_.snapshots.Clear();
  return store_ == nullptr ? left : store_->Close();
}

void Server::AwaitNoClients(std::chrono::milliseconds patience) const {
  const Deadline deadline = Deadline::After(Clock::System(), patience);
  while (state_.connections.load(std::memory_order_relaxed) > 0 && !deadline.Expired()) {
    Clock::System()->SleepFor(kLook);
  }
}

void Server::Collect(metrics::Page* page) const {
  using metrics::Kind;
  static constexpr metrics::Description kClients = {"nacre_server_clients",
                                                    "Clients that are connected.", Kind::kGauge};
  static constexpr metrics::Description kConnections = {
      "nacre_server_connections_total", "Clients that have connected.", Kind::kCounter};
  static constexpr metrics::Description kRejected = {
      "nacre_server_rejected_connections_total", "Connections beyond maxclients.", Kind::kCounter};
  static constexpr metrics::Description kExpired = {
      "nacre_server_expired_keys_total", "Keys that were removed since they had expired.",
      Kind::kCounter};
  static constexpr metrics::Description kCommands = {
      "nacre_server_commands_total", "Commands that clients have sent.", Kind::kCounter};
  static constexpr metrics::Description kForwarded = {
      "nacre_server_forwarded_commands_total",
      "Commands of this server's clients that other servers have run.", Kind::kCounter};
  uint64_t commands = 0;
  for (const auto& loop : state_.loops) commands += loop->commands.load(std::memory_order_relaxed);
  page->Add(kClients, {}, state_.connections.load(std::memory_order_relaxed));
  page->Add(kConnections, {}, state_.connections_total.load(std::memory_order_relaxed));
  page->Add(kRejected, {}, state_.rejected.load(std::memory_order_relaxed));
  page->Add(kExpired, {}, state_.expired_keys.load(std::memory_order_relaxed));
  page->Add(kCommands, {}, commands);
  page->Add(kForwarded, {}, state_.forwarded.load(std::memory_order_relaxed));
}

}  // namespace nacre::server
