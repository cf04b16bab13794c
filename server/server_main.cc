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

#include "metrics/endpoint.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "server/server.h"
#include "util/api/program_version.h"
#include "util/log.h"
#include "util/posix_file.h"

DEFINE_string(pool, "",
              "the pool's URI, such as tcp:10.0.0.1:7400,10.0.0.2:7400; "
              "embedded:?nodes=1&size=1GiB is a pool in this process, for trials: what is in it "
              "ends with the process");
DEFINE_string(database, "redis", "name of the database in the pool; it is made if it is not there");
DEFINE_string(redundancy, "none", "how its tables are kept, such as rep(2) or rs(4,2)");
DEFINE_bool(take_over, false, "open the database even if another process has it open");
DEFINE_string(listen, "127.0.0.1:6379",
              "HOST:PORT to serve at, IPv6 in brackets; port 0 is any that is free. What is sent "
              "there is not encrypted");
DEFINE_int32(threads, 2, "threads that serve clients");
DEFINE_int32(workers, 4, "threads for commands that walk through many rows");
DEFINE_int32(databases, 16, "how many databases clients can select");
DEFINE_int64(maxclients, 10000, "clients that are served at once");
DEFINE_string(requirepass_file, "",
              "file whose first line is the password that clients have to send (AUTH); empty: "
              "clients need none");
DEFINE_int32(drain_s, 10, "after SIGTERM, how long clients have to take their answers");
DEFINE_uint64(slab_size, 64 << 20, "bytes of a slab of the nodes");
DEFINE_uint64(write_buffer_size, 64 << 20, "bytes of a MemTable");
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
  options->database_name = FLAGS_database;
  options->listen = FLAGS_listen;
  options->threads = FLAGS_threads;
  options->workers = FLAGS_workers;
  options->databases = FLAGS_databases;
  options->clients_max = FLAGS_maxclients;
  if (FLAGS_requirepass_file.empty()) return Status::OK();
  return ReadPassword(FLAGS_requirepass_file, &options->password);
}

Status Run() {
  server::ServerOptions options;
  NACRE_RETURN_IF_ERROR(MakeOptions(&options));
  // Blocked before any thread begins, so that they come to sigwait.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::unique_ptr<metrics::Endpoint> endpoint;
  Status left_out;
  NACRE_RETURN_IF_ERROR(
      metrics::OpenEndpoint(FLAGS_metrics, &endpoint, &left_out).WithContext("--metrics"));
  if (!left_out.ok()) fmt::print(stderr, "no metrics are shown: {}\n", left_out.ToString());
  std::unique_ptr<server::Server> server;
  NACRE_RETURN_IF_ERROR(server::Server::Start(options, &server));
  if (endpoint != nullptr) endpoint->Show(server.get());
  fmt::print("serving {} at {}\n", FLAGS_database, server->address());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&ends, &signal);
  if (endpoint != nullptr) endpoint->Show(nullptr);
  return server->Stop(std::chrono::seconds(FLAGS_drain_s));
}

}  // namespace
}  // namespace nacre

int main(int argc, char** argv) {
  gflags::SetUsageMessage(nacre::kUsage);
  if (nacre::ParseFlagsOrPrintVersion("nacre-server", &argc, &argv)) return 0;
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
