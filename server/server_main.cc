// nacre-server: serves a Nacre database by Redis's protocol.

#include <fmt/format.h>
#include <gflags/gflags.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "metrics/endpoint.h"
#include "nacre/options.h"
#include "nacre/pool.h"
#include "nacre/status.h"
#include "nacre/utilities/etcd.h"
#include "server/server.h"
#include "util/api/program_version.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/posix_file.h"

DEFINE_string(pool, "",
              "the pool's URI, such as tcp:10.0.0.1:7400,10.0.0.2:7400; "
              "embedded:?nodes=1&size=1GiB is a pool in this process, for trials: what is in it "
              "ends with the process");
DEFINE_string(database, "redis", "name of the database in the pool; it is made if it is not there");
DEFINE_string(redundancy, "none", "how its tables are kept, such as rep(2) or rs(4,2)");
DEFINE_bool(take_over, false, "open the database even if another process has it open");
DEFINE_bool(standby, false,
            "if another server has the database, wait and take it over when that one is gone; "
            "clients find the one that serves as with Redis Sentinel, at any of the servers, by "
            "the name of the database");
DEFINE_int32(down_after_ms, 3000,
             "with --standby: a server that has the database and answers nothing for so long is "
             "taken for gone, though its connections are there; what it does later is refused");
DEFINE_string(coordinator, "",
              "etcd:HOST:PORT,...: the server is one of a cluster, as Redis Cluster is one: the "
              "servers that name the same --database share its slots. Empty: it has the database "
              "to itself");
DEFINE_int32(shards, 16, "with --coordinator: how many shards a new cluster begins with");
DEFINE_string(member_address, "",
              "with --coordinator: where the other servers reach this one to move shards, such as "
              "tcp:10.0.0.1:7500; empty: any port of the host of --listen");
DEFINE_string(announce, "",
              "HOST:PORT where clients are sent that are to go to this server, as with --standby "
              "and --coordinator; empty: that of --listen");
DEFINE_string(listen, "127.0.0.1:6379",
              "HOST:PORT to serve at, IPv6 in brackets; port 0 is any that is free. Without "
              "--tls_cert_file what is sent there is not encrypted");
DEFINE_string(
    proxy_listen, "",
    "with --coordinator: HOST:PORT to serve clients at that know no clusters: commands on "
    "keys that other servers have are forwarded to these");
DEFINE_int32(threads, 2, "threads that serve clients");
DEFINE_int32(workers, 4, "threads for commands that walk through many rows");
DEFINE_int32(databases, 16, "how many databases clients can select");
DEFINE_int64(maxclients, 10000, "clients that are served at once");
DEFINE_string(requirepass_file, "",
              "file whose first line is the password that clients have to send (AUTH); empty: "
              "clients need none");
DEFINE_string(acl_file, "",
              "file with the users that clients log in as and what these may do, in the form of "
              "Redis's aclfile; ACL SAVE writes it. Empty: there is the default user only");
DEFINE_string(tls_cert_file, "",
              "file with the certificate, in PEM form, by which clients know the server: what they "
              "send at --listen is encrypted then");
DEFINE_string(tls_key_file, "", "file with its private key");
DEFINE_string(tls_ca_cert_file, "",
              "with --tls_cert_file: clients need a certificate that an authority of this file has "
              "signed; empty: they need none");
DEFINE_int32(drain_s, 10, "after SIGTERM, how long clients have to take their answers");
DEFINE_uint64(slab_size, 64 << 20, "bytes of a slab of the nodes");
DEFINE_uint64(write_buffer_size, 64 << 20, "bytes of a MemTable");
DEFINE_string(encryption_key_file, "",
              "file with keys, a line 'ID HEX' each, by which the database is encrypted in the "
              "pool; empty: it is not");
DEFINE_string(metrics, "",
              "HOST:PORT to answer GET /metrics at, for Prometheus; empty: what NACRE_METRICS in "
              "the environment says");

namespace nacre {
namespace {

constexpr char kUsage[] =
    "serves a database of a Nacre pool by Redis's protocol, until SIGTERM or SIGINT\n\n"
    "  nacre-server --pool=URI [--database=redis] [--listen=127.0.0.1:6379]\n\n"
    "docs/server.md says which commands there are.\n";
constexpr uint64_t kPasswordBytesMax = 4096;

Status ReadPassword(const std::string& path, std::string* password) {
  NACRE_RETURN_IF_ERROR(
      ReadSmallFile(path, kPasswordBytesMax, password).WithContext("--requirepass_file"));
  password->resize(std::min(password->size(), password->find('\n')));
  if (!password->empty()) return Status::OK();
  return Status::InvalidArgument("--requirepass_file: the first line of " + path + " is empty");
}

Status MakeOptions(server::ServerOptions* options) {
  if (FLAGS_pool.empty()) return Status::InvalidArgument("--pool is missing");
  options->database.pool_uri = FLAGS_pool;
  options->database.redundancy = FLAGS_redundancy;
  options->database.take_over = FLAGS_take_over;
  options->database.create_if_missing = true;
  options->database.slab_size = FLAGS_slab_size;
  options->database.write_buffer_size = FLAGS_write_buffer_size;
  options->database.info_log = NewStderrLogger(LogLevel::kWarn);
  options->database.metrics_address = FLAGS_metrics;
  options->database.encryption_key_file = FLAGS_encryption_key_file;
  options->database_name = FLAGS_database;
  options->announce = FLAGS_announce;
  const bool clustered = !FLAGS_coordinator.empty();
  if ((FLAGS_standby || clustered) && FLAGS_announce.empty() &&
      (FLAGS_listen.starts_with("0.0.0.0:") || FLAGS_listen.starts_with("[::]:"))) {
    return Status::InvalidArgument("clients cannot be sent to " + FLAGS_listen +
                                   ", so --announce has to name an address");
  }
  if (clustered && (FLAGS_standby || FLAGS_take_over)) {
    return Status::InvalidArgument(
        "--coordinator: the servers of a cluster take over by themselves, without --standby and "
        "--take_over");
  }
  options->coordinator = FLAGS_coordinator;
  options->shards = FLAGS_shards;
  options->member_address = FLAGS_member_address;
  if (FLAGS_standby && FLAGS_take_over) {
    return Status::InvalidArgument("--standby waits, and --take_over does not");
  }
  options->listen = FLAGS_listen;
  options->proxy_listen = FLAGS_proxy_listen;
  options->threads = FLAGS_threads;
  options->workers = FLAGS_workers;
  options->databases = FLAGS_databases;
  options->clients_max = FLAGS_maxclients;
  options->acl_file = FLAGS_acl_file;
  options->tls = {.certificate = FLAGS_tls_cert_file,
                  .key = FLAGS_tls_key_file,
                  .authorities = FLAGS_tls_ca_cert_file};
  if (FLAGS_requirepass_file.empty()) return Status::OK();
  return ReadPassword(FLAGS_requirepass_file, &options->password);
}

/// Waits so long for a signal that ends the server; true if one came. SIGHUP has certificates be
/// read anew.
bool AwaitEnd(server::Server* server, const sigset_t& signals, std::chrono::nanoseconds time) {
  const Deadline deadline = Deadline::After(Clock::System(), time);
  do {
    const std::chrono::nanoseconds left = deadline.Remaining();
    const timespec wait = {.tv_sec = left / std::chrono::seconds(1),
                           .tv_nsec = (left % std::chrono::seconds(1)).count()};
    const int signal = ::sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0 && signal != SIGHUP) return true;
    if (signal != SIGHUP || !server->speaks_tls()) continue;
    const Status read = server->ReadCertificates();
    fmt::print(stderr, "nacre-server: {}\n",
               read.ok() ? "the certificates were read anew"
                         : "the certificates stay as they were: " + read.ToString());
  } while (!deadline.Expired());
  return false;
}

/// Waits for the database, and then for a signal. Fails if the database is lost to another process.
Status StandBy(server::Server* server, const sigset_t& signals) {
  constexpr std::chrono::milliseconds kAttempts(50);
  constexpr std::chrono::milliseconds kLooks(200);
  Status told;
  while (!AwaitEnd(server, signals, server->serving() ? kLooks : kAttempts)) {
    if (server->serving()) {
      NACRE_RETURN_IF_ERROR(server->CheckOwned().WithContext("another process has the database"));
      continue;
    }
    const Status taken = server->TakeOver(std::chrono::milliseconds(FLAGS_down_after_ms));
    if (server->serving()) {
      NACRE_RETURN_IF_ERROR(taken);
      fmt::print("serving {} at {}\n", FLAGS_database, server->address());
      std::fflush(stdout);
    } else if (taken.code() != told.code()) {
      told = taken;
      fmt::print(stderr, "nacre-server: waits: {}\n", taken.ToString());
    }
  }
  return Status::OK();
}

Status Run() {
  server::ServerOptions options;
  NACRE_RETURN_IF_ERROR(MakeOptions(&options));
  // Blocked before any thread begins, so that they come to where they are waited for.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_ptr<metrics::Endpoint> endpoint;
  Status left_out;
  NACRE_RETURN_IF_ERROR(
      metrics::OpenEndpoint(FLAGS_metrics, &endpoint, &left_out).WithContext("--metrics"));
  if (!left_out.ok()) fmt::print(stderr, "no metrics are shown: {}\n", left_out.ToString());
  if (FLAGS_standby) {
    // The connections are there when the database is to be taken over.
    std::shared_ptr<Pool> pool;
    NACRE_RETURN_IF_ERROR(Pool::Open(FLAGS_pool, &pool));
    options.database.pool = std::move(pool);
    options.database.pool_uri.clear();
  }
  std::unique_ptr<server::Server> server;
  NACRE_RETURN_IF_ERROR(FLAGS_standby ? server::Server::StartWaiting(options, &server)
                                      : server::Server::Start(options, &server));
  if (endpoint != nullptr) endpoint->Show(server.get());
  const std::string proxy = server->proxy_address();
  fmt::print("{} {} at {}{}\n", FLAGS_standby ? "waiting for" : "serving", FLAGS_database,
             server->address(), proxy.empty() ? "" : ", forwarding at " + proxy);
  std::fflush(stdout);
  Status status;
  if (FLAGS_standby) {
    status = StandBy(server.get(), signals);
  } else {
    while (!AwaitEnd(server.get(), signals, std::chrono::hours(1))) {
    }
  }
  if (endpoint != nullptr) endpoint->Show(nullptr);
  // There is nothing to be drained where the database is another one's.
  const Status stopped = server->Stop(std::chrono::seconds(status.ok() ? FLAGS_drain_s : 0));
  return status.ok() ? stopped : status;
}

}  // namespace
}  // namespace nacre

int main(int argc, char** argv) {
  gflags::SetUsageMessage(nacre::kUsage);
  if (nacre::ParseFlagsOrPrintVersion("nacre-server", &argc, &argv)) return 0;
#ifdef NACRE_SERVER_ETCD
  nacre::UseEtcd();
#endif
  nacre::Status status;
  try {
    status = argc > 1 ? nacre::Status::InvalidArgument(std::string("'") + argv[1] + "' is no flag")
                      : nacre::Run();
  } catch (const std::exception& e) {
    status = nacre::Status::IOError(e.what());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "nacre-server: %s\n", status.ToString().c_str());
  return 1;
}
