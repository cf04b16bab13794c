// nacre-ctl: looks at a pool from outside, and tells its nodes what is wanted of its databases.

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/checkpoint_command.h"
#include "ctl/console/console_command.h"
#include "ctl/ctl_directions.h"
#include "ctl/ctl_report.h"
#include "ctl/doctor.h"
#include "ctl/fsck.h"
#include "ctl/keyspace/keyspace_command.h"
#include "ctl/keyspace/keyspace_doctor.h"
#include "ctl/maintenance_command.h"
#include "ctl/manifest_command.h"
#include "ctl/repair_command.h"
#include "ctl/secrets_command.h"
#include "ctl/top/top_command.h"
#include "ctl/upgrade_command.h"
#include "ctl/usage.h"
#include "nacre/checkpoint.h"
#include "nacre/utilities/etcd.h"
#include "pool/connect/pool_device.h"
#include "pool/connect/pool_secret.h"
#include "pool/pool_client.h"
#include "pool/pool_file.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/api/program_version.h"
#include "util/log.h"
#include "util/uri.h"

DEFINE_string(pool, "",
              "the pool's nodes, such as shm:/run/n0.sock,/run/n1.sock; ?secret_file=PATH, or "
              "NACRE_SECRET_FILE or NACRE_SECRET in the environment, give the pool's secret");
DEFINE_string(coordinator, "",
              "what the keyspaces' members agree by, such as etcd:10.0.0.1:2379,10.0.0.2:2379; "
              "their secret is that of --pool, or the environment's");
DEFINE_bool(json, false, "print JSON");
DEFINE_int32(timeout_ms, 3000, "how long to wait for a node, a member or the coordinator");
DEFINE_double(interval_s, 1, "top, console: seconds between two samples, 0.1 to 3600");
DEFINE_bool(once, false, "top: print one sample and end, as where the output is no terminal");
DEFINE_string(listen, "127.0.0.1:8080",
              "console: where to listen for browsers, HOST:PORT; port 0 is any that is free");
DEFINE_string(token_file, "",
              "console: a file whose first line is what browsers have to show; needed where other "
              "machines reach --listen");
DEFINE_string(hosts, "",
              "console: names by which browsers may ask for it, with commas between them, beside "
              "IP addresses and localhost");
DEFINE_bool(allow_orders, false, "console: have it drain nodes, and pause repair, when asked to");
DEFINE_bool(full, false, "fsck: compare all chunks and log records with their checksums, too");
DEFINE_bool(from_footers, false,
            "repair DATABASE: makes its manifest anew from its tables and its log");
DEFINE_bool(dry_run, false, "repair DATABASE: only tells what it would do");
DEFINE_bool(force, false,
            "repair DATABASE: also where the manifest can be read or may come back with nodes, and "
            "where tables are lost; maintenance: also where something is amiss with the pool; "
            "finalize-upgrade: also where a node does not answer");
DEFINE_string(for, "10min", "maintenance: how long the node may be away, such as 90s, 10min or 2h");
DEFINE_bool(end, false, "maintenance: ends it before its time");
DEFINE_string(comparator, "nacre.BytewiseComparator",
              "repair DATABASE: name of the order of keys, if no table is left to tell it");
DEFINE_uint32(num_levels, 7, "repair DATABASE: likewise, the number of levels");
DEFINE_string(
    redundancy, "",
    "restore: of the new database, such as rs(4,2); checkpoint: of what is flushed first, "
    "instead of what the database has");
DEFINE_uint64(checkpoint, 0, "restore: number of the checkpoint; 0: the latest");
DEFINE_uint64(to_sequence, UINT64_MAX, "restore of an archive: all batches up to this sequence");
DEFINE_string(to_time, "",
              "restore of an archive: all that had been archived by then, such as "
              "'2026-11-28 10:30:00' (UTC)");
DEFINE_bool(verify, false,
            "checkpoints, archives: read all of them, and compare with their checksums");
DEFINE_uint64(remove, 0, "checkpoints: remove the one with this number first");
DEFINE_int32(threads, 0,
             "checkpoint, checkpoints: tables that are copied at once (4); restore: the same, and "
             "threads that write what the log of an archive has (as many as there are processors, "
             "at most 8)");
DEFINE_string(rate, "0",
              "checkpoint, checkpoints, restore: bytes a second at most, such as 200MiB");
DEFINE_string(
    encryption_key_file, "",
    "checkpoint, checkpoints, restore, archives: file with keys, a line 'ID HEX' each: the "
    "first one encrypts, all decrypt");
DEFINE_string(
    database_key_file, "",
    "checkpoint, restore, repair --from_footers: file with the keys of a database that is "
    "encrypted (Options::encryption_key_file)");
DEFINE_bool(accept_plain, false,
            "restore with --encryption_key_file: also what is not encrypted, from before it was");
DEFINE_bool(wait, true,
            "drain: wait until the node, or the member, holds nothing; maintenance: until the node "
            "can be stopped; both go on without, too");

namespace nacre::ctl {
namespace {

constexpr std::chrono::milliseconds kNodeDrainPeriod{500};
/// For a node whose times are measured: one that takes longer is down.
constexpr std::chrono::milliseconds kTimedPatience{1000};
/// At least, for a node that is asked again and again.
constexpr std::chrono::milliseconds kTopPatience{500};

/// A client of the pool, and what it needs.
struct Connection {
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::PoolClient> client;  ///< Ends first.
};

Status ParsePool(Uri* pool, rdma::DeviceOptions* device_options) {
  if (FLAGS_pool.empty()) return Status::InvalidArgument("--pool is missing");
  if (FLAGS_timeout_ms <= 0) return Status::InvalidArgument("--timeout_ms must be positive");
  NACRE_RETURN_IF_ERROR(ParseUri(FLAGS_pool, pool).WithContext("--pool"));
  NACRE_RETURN_IF_ERROR(pool::ResolvePoolFile(pool).WithContext("--pool"));
  if (pool->scheme == "embedded") {
    return Status::InvalidArgument("--pool: an embedded pool is visible in its own process only");
  }
  pool::MakePathsAbsolute(pool);
  device_options->logger = NewStderrLogger(LogLevel::kWarn);
  NACRE_RETURN_IF_ERROR(pool::TakeSecret(pool, device_options->logger, &device_options->secret)
                            .WithContext("--pool"));
  device_options->parameters = pool->parameters;
  return Status::OK();
}

Status Connect(const Uri& pool, const rdma::DeviceOptions& device_options, Connection* connection,
               std::chrono::milliseconds timeout = std::chrono::milliseconds(FLAGS_timeout_ms)) {
  NACRE_RETURN_IF_ERROR(
      pool::OpenPoolDevice(pool, device_options, Clock::System(), &connection->device));
  pool::PoolClientOptions options;
  options.operation_timeout = timeout;
  options.slab_bytes = 0;
  options.connect_all = false;
  return pool::PoolClient::Connect(pool, options, connection->device.get(), Clock::System(),
                                   &connection->client);
}

Status ConnectPool(Connection* connection,
                   std::chrono::milliseconds timeout = std::chrono::milliseconds::max()) {
  Uri pool;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  timeout = std::min(timeout, std::chrono::milliseconds(FLAGS_timeout_ms));
  NACRE_RETURN_IF_ERROR(Connect(pool, device_options, connection, timeout).WithContext("--pool"));
  connection->client->JoinAddedNodes();
  return Status::OK();
}

/// What protects the members of keyspaces: the secret, and the TLS, of their pool. It need not be
/// named for the environment's secret.
Status SecurityOfMembers(pool::PeerSecurity* security) {
  rdma::DeviceOptions device_options;
  Uri pool;
  if (FLAGS_pool.empty()) {
    device_options.logger = NewStderrLogger(LogLevel::kWarn);
    NACRE_RETURN_IF_ERROR(pool::TakeSecret(&pool, device_options.logger, &device_options.secret));
  } else {
    NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  }
  return pool::PeerSecurity::Of(device_options, security);
}

Status RunDoctor(bool* healthy) {
  using Verdict = rdma::Finding::Verdict;
  std::vector<rdma::Finding> findings;
  if (FLAGS_coordinator.empty() || !FLAGS_pool.empty()) {
    Uri pool;
    rdma::DeviceOptions device_options;
    NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
    findings =
        Examine(pool, device_options, std::chrono::milliseconds(FLAGS_timeout_ms), Clock::System());
  }
  if (!FLAGS_coordinator.empty()) {
    pool::PeerSecurity security;
    NACRE_RETURN_IF_ERROR(SecurityOfMembers(&security));
    for (rdma::Finding& finding :
         ExamineCoordinator(FLAGS_coordinator, security,
                            std::chrono::milliseconds(FLAGS_timeout_ms), Clock::System())) {
      findings.push_back(std::move(finding));
    }
  }
  *healthy = std::none_of(findings.begin(), findings.end(), [](const rdma::Finding& finding) {
    return finding.verdict == Verdict::kFailure;
  });
  if (FLAGS_json) {
    fmt::print("{}", FindingsJson(findings));
    return Status::OK();
  }
  for (const rdma::Finding& finding : findings) {
    fmt::print("{:<8} {:<22} {}\n", ToString(finding.verdict), finding.subject, finding.found);
    if (!finding.remedy.empty()) fmt::print("{:<8} -> {}\n", "", finding.remedy);
  }
  return Status::OK();
}

Status Drain(const std::string& name, bool draining) {
  Connection pool;
  NACRE_RETURN_IF_ERROR(ConnectPool(&pool));
  NodeId node = kNoNode;
  pool::NodeStats stats;
  NACRE_RETURN_IF_ERROR(FindNode(pool.client.get(), name, &node, &stats));
  NACRE_RETURN_IF_ERROR(SetDraining(pool.client.get(), stats, draining));
  if (!draining || !FLAGS_wait) return Status::OK();
  return AwaitDrained(pool.client.get(), node, kNodeDrainPeriod);
}

Status RunMaintenance(const std::string& name) {
  MaintenanceRequest request{
      .node = name, .force = FLAGS_force, .wait = FLAGS_wait, .json = FLAGS_json};
  NACRE_RETURN_IF_ERROR(ParseDuration(FLAGS_for, &request.time).WithContext("--for"));
  Connection pool;
  NACRE_RETURN_IF_ERROR(ConnectPool(&pool));
  if (FLAGS_end) return EndMaintenance(pool.client.get(), name);
  return BeginMaintenance(pool.client.get(), request);
}

Status RunFinalizeUpgrade() {
  Connection pool;
  NACRE_RETURN_IF_ERROR(ConnectPool(&pool));
  return FinalizeUpgrade(pool.client.get(), {.force = FLAGS_force, .json = FLAGS_json});
}

Status ChangeRepair(const std::vector<std::string>& words) {
  const std::string& what = words[1];
  uint64_t limit = 0;
  if (what == "limit") {
    NACRE_RETURN_IF_ERROR(ParseSize(words[2], &limit).WithContext("repair limit"));
  }
  Connection pool;
  NACRE_RETURN_IF_ERROR(ConnectPool(&pool));
  return ChangeDirections(pool.client.get(), [&](pool::Directions* directions) {
    if (what == "limit") {
      directions->repair_bytes_per_second = limit;
    } else {
      directions->repair_paused = what == "pause";
    }
  });
}

/// The new node has to answer, with the slabs that the others have.
Status Add(const std::string& address) {
  Uri added;
  NACRE_RETURN_IF_ERROR(ParseUri(address, &added));
  if (added.addresses.size() != 1 || !added.parameters.empty()) {
    return Status::InvalidArgument(fmt::format("'{}' is no address of one node", address));
  }
  pool::MakePathsAbsolute(&added);
  Uri uri;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&uri, &device_options));
  Connection node;
  NACRE_RETURN_IF_ERROR(Connect(added, device_options, &node).WithContext(address));
  pool::NodeStats stats;
  NACRE_RETURN_IF_ERROR(pool::GetStats(node.client.get(), 0, &stats));
  Connection pool;
  NACRE_RETURN_IF_ERROR(Connect(uri, device_options, &pool).WithContext("--pool"));
  const PoolReport report = AskPool(pool.client.get());
  for (const NodeReport& known : report.nodes) {
    if (!known.status.ok()) continue;
    if (known.stats.instance_id == stats.instance_id) {
      return Status::InvalidArgument(address + " is in the pool already, as " + known.address);
    }
    if (known.stats.slab_bytes != stats.slab_bytes) {
      return Status::InvalidArgument(fmt::format("{}: slabs of {}, {} has slabs of {}", address,
                                                 FormatBytes(stats.slab_bytes), known.address,
                                                 FormatBytes(known.stats.slab_bytes)));
    }
  }
  const std::string name = node.client->node_address(0);
  return ChangeDirections(pool.client.get(), [&](pool::Directions* directions) {
    std::erase(directions->added_addresses, name);
    directions->added_addresses.push_back(name);
  });
}

Status Show(bool nodes, bool* complete) {
  Connection connection;
  NACRE_RETURN_IF_ERROR(nodes ? ConnectPool(&connection, kTimedPatience)
                              : ConnectPool(&connection));
  const PoolReport pool = AskPool(connection.client.get(), /*timed=*/nodes);
  nodes ? PrintNodes(pool, FLAGS_json) : PrintStatus(pool, FLAGS_json);
  *complete = pool.complete();
  return Status::OK();
}

Status ParseInterval(std::chrono::milliseconds* interval) {
  if (!(FLAGS_interval_s >= 0.1 && FLAGS_interval_s <= 3600)) {
    return Status::InvalidArgument("--interval_s must be 0.1 to 3600");
  }
  *interval = std::chrono::milliseconds(static_cast<int64_t>(FLAGS_interval_s * 1000));
  return Status::OK();
}

/// A client that asks each `interval`: a node that takes longer is down, but it has half a second.
Status ConnectAgainAndAgain(std::chrono::milliseconds interval, Connection* connection,
                            pool::PoolClient** client) {
  Uri pool;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  device_options.logger.reset();  // Its lines would stand amid the screen, or come each second.
  const auto timeout =
      std::min(std::max(interval, kTopPatience), std::chrono::milliseconds(FLAGS_timeout_ms));
  NACRE_RETURN_IF_ERROR(Connect(pool, device_options, connection, timeout).WithContext("--pool"));
  *client = connection->client.get();
  return Status::OK();
}

Status ShowTop(bool* complete) {
  std::chrono::milliseconds interval{};
  NACRE_RETURN_IF_ERROR(ParseInterval(&interval));
  Connection connection;
  const auto connect = [&](pool::PoolClient** client) {
    return ConnectAgainAndAgain(interval, &connection, client);
  };
  return Top({.interval = interval, .once = FLAGS_once, .json = FLAGS_json}, connect, complete);
}

Status RunConsole() {
  ConsoleCommand command;
  NACRE_RETURN_IF_ERROR(ParseInterval(&command.interval));
  Uri pool;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  command.pool_uri = FLAGS_pool;
  command.token_file = FLAGS_token_file;
  command.console.listen = FLAGS_listen;
  command.console.allow_orders = FLAGS_allow_orders;
  for (size_t begin = 0; begin < FLAGS_hosts.size();) {
    const size_t end = std::min(FLAGS_hosts.find(',', begin), FLAGS_hosts.size());
    if (end > begin) command.console.hosts.push_back(FLAGS_hosts.substr(begin, end - begin));
    begin = end + 1;
  }
  Connection connection;
  const auto connect = [&](pool::PoolClient** client) {
    return ConnectAgainAndAgain(command.interval, &connection, client);
  };
  return ServeConsole(command, connect, [&] {
    return Examine(pool, device_options, std::chrono::milliseconds(FLAGS_timeout_ms),
                   Clock::System());
  });
}

Status ShowManifest(const std::string& database) {
  Connection connection;
  NACRE_RETURN_IF_ERROR(ConnectPool(&connection));
  return PrintManifest(connection.client.get(), database, FLAGS_json);
}

/// The exit status.
int RunFsck(const std::string& database) {
  Connection connection;
  Status status = ConnectPool(&connection);
  FsckReport report;
  if (status.ok()) {
    FsckOptions options{.database = database, .full = FLAGS_full};
    if (FLAGS_full && !FLAGS_json) options.progress = TellFsckProgress();
    report = Fsck(connection.client.get(), options);
  } else {
    report.failures.push_back(std::move(status));
  }
  PrintFsck(report, FLAGS_json);
  return report.exit_status();
}

/// The exit status.
int RunRepair(const std::string& database) {
  Connection connection;
  Status status = ConnectPool(&connection);
  if (status.ok()) {
    SalvageOptions options;
    options.dry_run = FLAGS_dry_run;
    options.force = FLAGS_force;
    options.defaults.comparator = FLAGS_comparator;
    options.defaults.num_levels = FLAGS_num_levels;
    int exit_status = 0;
    status = ReadTableKeys(FLAGS_database_key_file, &options.defaults.keys);
    if (status.ok())
      status = Repair(connection.client.get(), database, options, FLAGS_json, &exit_status);
    if (status.ok()) return exit_status;
  }
  fmt::print(stderr, "nacre-ctl: {}\n", Explain(status));
  return 2;
}

Status RunCheckpoints(const std::vector<std::string>& words, bool* fine) {
  CheckpointRequest request;
  request.pool_uri = FLAGS_pool;
  request.redundancy = FLAGS_redundancy;
  request.database_key_file = FLAGS_database_key_file;
  request.checkpoint = FLAGS_checkpoint;
  request.to_sequence = FLAGS_to_sequence;
  request.to_time = FLAGS_to_time;
  request.threads = FLAGS_threads;
  request.json = FLAGS_json;
  request.encryption = {.key_file = FLAGS_encryption_key_file, .accept_plain = FLAGS_accept_plain};
  NACRE_RETURN_IF_ERROR(ParseSize(FLAGS_rate, &request.bytes_per_second).WithContext("--rate"));
  if (words[0] == "checkpoints") {
    request.dir = words[1];
    if (FLAGS_remove != 0) {
      NACRE_RETURN_IF_ERROR(DeleteCheckpoint(request.dir, FLAGS_remove, request.encryption));
    }
    return ShowCheckpoints(request, FLAGS_verify, fine);
  }
  if (words[0] == "archives") {
    request.dir = words[1];
    return ShowArchive(request, FLAGS_verify);
  }
  const bool restore = words[0] == "restore";
  request.database = words[restore ? 2 : 1];
  request.dir = words[restore ? 1 : 2];
  Connection pool;
  NACRE_RETURN_IF_ERROR(ConnectPool(&pool));
  return restore ? Restore(pool.client.get(), request) : MakeCheckpoint(pool.client.get(), request);
}

/// Whether `words` are a command with the arguments that it takes.
bool Fits(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  if (IsKeyspaceCommand(words)) return FitsKeyspaceCommand(words);
  if (words[0] == "secrets") return FitsSecretsCommand(words);
  const std::string& command = words[0];
  if (command == "status" || command == "nodes" || command == "top" || command == "console" ||
      command == "doctor" || command == "finalize-upgrade") {
    return words.size() == 1;
  }
  if (command == "drain" || command == "undrain" || command == "add" || command == "manifest" ||
      command == "maintenance") {
    return words.size() == 2;
  }
  if (command == "fsck") return words.size() <= 2;
  if (command == "checkpoints" || command == "archives") return words.size() == 2;
  if (command == "checkpoint" || command == "restore") return words.size() == 3;
  if (command != "repair" || words.size() < 2) return false;
  if (FLAGS_from_footers) return words.size() == 2;
  if (words[1] == "limit") return words.size() == 3;
  return words.size() == 2 && (words[1] == "pause" || words[1] == "resume");
}

int Run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (!Fits(words)) {
    if (!words.empty()) {
      fmt::print(stderr, "nacre-ctl: unknown command '{}'\n", fmt::join(words, " "));
    }
    fmt::print(stderr, "{}", kUsage);
    return 1;
  }
  if (command == "fsck") return RunFsck(words.size() == 2 ? words[1] : "");
  if (command == "repair" && FLAGS_from_footers) return RunRepair(words[1]);
  Status s;
  bool fine = true;
  if (IsKeyspaceCommand(words)) {
    pool::PeerSecurity security;
    s = SecurityOfMembers(&security);
    if (s.ok()) {
      s = RunKeyspaceCommand({.coordinator = FLAGS_coordinator,
                              .security = security,
                              .timeout = std::chrono::milliseconds(FLAGS_timeout_ms),
                              .json = FLAGS_json,
                              .wait = FLAGS_wait},
                             words, Clock::System(), &fine);
    }
  } else if (command == "secrets") {
    s = RunSecretsCommand(words, FLAGS_json);
  } else if (command == "doctor") {
    s = RunDoctor(&fine);
  } else if (command == "drain" || command == "undrain") {
    s = Drain(words[1], command == "drain");
  } else if (command == "maintenance") {
    s = RunMaintenance(words[1]);
  } else if (command == "finalize-upgrade") {
    s = RunFinalizeUpgrade();
  } else if (command == "repair") {
    s = ChangeRepair(words);
  } else if (command == "manifest") {
    s = ShowManifest(words[1]);
  } else if (command == "checkpoint" || command == "checkpoints" || command == "restore" ||
             command == "archives") {
    s = RunCheckpoints(words, &fine);
  } else if (command == "add") {
    s = Add(words[1]);
  } else if (command == "top") {
    s = ShowTop(&fine);
  } else if (command == "console") {
    s = RunConsole();
  } else {
    s = Show(command == "nodes", &fine);
  }
  if (s.ok()) return fine ? 0 : 1;
  fmt::print(stderr, "nacre-ctl: {}\n", Explain(s));
  return 1;
}

}  // namespace
}  // namespace nacre::ctl

int main(int argc, char** argv) {
  gflags::SetUsageMessage(std::string(nacre::ctl::kUsage));
  if (nacre::ParseFlagsOrPrintVersion("nacre-ctl", &argc, &argv)) return 0;
#ifdef NACRE_CTL_ETCD
  nacre::UseEtcd();
#endif
  return nacre::ctl::Run({argv + 1, argv + argc});
}
