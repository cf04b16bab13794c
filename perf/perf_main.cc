// nacre-perf: what the transport itself can do, on any backend.

#include <fcntl.h>
#include <fmt/format.h>
#include <gflags/gflags.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perf/peer.h"
#include "perf/socket_ping.h"
#include "perf/workload.h"
#include "pool/connect/pool_secret.h"
#include "rdma/unique_fd.h"
#include "util/api/program_version.h"
#include "util/log.h"
#include "util/uri.h"

DEFINE_uint64(size, 512, "bytes that an operation moves (cas: always 8)");
DEFINE_int32(depth, 1, "operations under way at a time, by each thread");
DEFINE_int32(batch, 1, "of these, posted with one doorbell");
DEFINE_int32(threads, 1, "threads, each with a connection of its own");
DEFINE_double(seconds, 2, "how long to measure");
DEFINE_bool(random, false, "use all of the peer's region, not only its start");
DEFINE_string(region, "64MiB", "serve: memory that peers read and write");
DEFINE_bool(json, false, "print one line of JSON");

namespace nacre::perf {
namespace {

constexpr char kUsage[] =
    "raw operations of the transport\n\n"
    "  nacre-perf serve URI                     be the far side, until SIGINT or SIGTERM\n"
    "  nacre-perf read|write|cas|send URI       measure against the far side at URI\n"
    "  nacre-perf read|write|cas|send SCHEME:   the same with a far side of its own on this host\n"
    "  nacre-perf socket                        a bare ping-pong over a blocking TCP socket\n\n"
    "URI: shm:/run/peer.sock, tcp:HOST:PORT, verbs:HOST:PORT, each with ?parameters.";

Status OpenDevice(Uri* uri, std::unique_ptr<rdma::Device>* device) {
  rdma::DeviceOptions options;
  options.logger = NewStderrLogger(LogLevel::kWarn);
  NACRE_RETURN_IF_ERROR(pool::TakeSecret(uri, options.logger, &options.secret));
  options.parameters = uri->parameters;
  return rdma::OpenDevice(uri->scheme, options, Clock::System(), device);
}

/// Chooses where the far side listens if no address is given: where only this host can reach it.
Status OwnAddress(const std::string& scheme, std::string* address) {
  if (scheme == "shm" || scheme == "cxl") *address = "@";
  if (scheme == "tcp") *address = "127.0.0.1:0";
  if (!address->empty()) return Status::OK();
  return Status::InvalidArgument(scheme + ": needs the address of a device, as in " + scheme +
                                 ":10.0.0.1:0");
}

Status Serve(Uri uri) {
  if (uri.addresses.size() > 1) return Status::InvalidArgument("one address to serve at");
  uint64_t region = 0;
  NACRE_RETURN_IF_ERROR(ParseSize(FLAGS_region, &region).WithContext("--region"));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::string address;
  if (!uri.addresses.empty()) {
    address = uri.addresses[0];
  } else {
    NACRE_RETURN_IF_ERROR(OwnAddress(uri.scheme, &address));
  }
  std::unique_ptr<rdma::Device> device;
  NACRE_RETURN_IF_ERROR(OpenDevice(&uri, &device));
  std::unique_ptr<Peer> peer;
  NACRE_RETURN_IF_ERROR(Peer::Start(device.get(), uri.scheme + ":" + address, region, &peer));
  fmt::print("{}\n", peer->address());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return Status::OK();
}

/// This program as the far side, in a process of its own.
class ChildPeer {
 public:
  ~ChildPeer() {
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  /// `*address`: where it listens.
  Status Start(const std::string& uri, std::string* address) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::IOError("cannot make a pipe");
    const rdma::UniqueFd out(ends[0]);
    rdma::UniqueFd in(ends[1]);
    std::string program = "/proc/self/exe";
    std::string word = "serve";
    std::string uri_text = uri;
    std::string region = "--region=" + FLAGS_region;
    std::array<char*, 5> arguments = {program.data(), word.data(), uri_text.data(), region.data(),
                                      nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
    const int failed =
        ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return Status::IOError("cannot start the far side");
    in.Reset();
    char c = 0;
    while (::read(out.get(), &c, 1) == 1 && c != '\n') address->push_back(c);
    if (c == '\n') return Status::OK();
    return Status::Unavailable("the far side did not start");  // It has said why.
  }

 private:
  pid_t process_ = -1;
};

void Print(const std::string& operation, const std::string& address, const Workload& workload,
           const Result& result) {
  const auto per_second = static_cast<double>(result.operations) / result.seconds;
  const double megabytes = per_second * static_cast<double>(workload.size) / 1e6;
  const auto micros = [&](double p) { return result.latency.Percentile(p) / 1e3; };
  if (FLAGS_json) {
    fmt::print(
        "{{\"operation\": \"{}\", \"address\": \"{}\", \"size\": {}, \"depth\": {}, "
        "\"batch\": {}, \"threads\": {}, \"ops_per_sec\": {:.1f}, \"mb_per_sec\": {:.2f}, "
        "\"average_us\": {:.3f}, \"p50_us\": {:.3f}, \"p99_us\": {:.3f}}}\n",
        operation, address, workload.size, workload.depth, workload.batch, workload.threads,
        per_second, megabytes, result.latency.Average() / 1e3, micros(50), micros(99));
    return;
  }
  fmt::print("{:<8} {:>8} {:>6} {:>6} {:>8} {:>12} {:>10} {:>9} {:>9} {:>9}\n", "", "size", "depth",
             "batch", "threads", "ops/s", "MB/s", "avg us", "p50 us", "p99 us");
  fmt::print("{:<8} {:>8} {:>6} {:>6} {:>8} {:>12.0f} {:>10.1f} {:>9.2f} {:>9.2f} {:>9.2f}\n",
             operation, workload.size, workload.depth, workload.batch, workload.threads, per_second,
             megabytes, result.latency.Average() / 1e3, micros(50), micros(99));
}

Status Main(const std::vector<std::string>& words) {
  Workload workload;
  workload.size = FLAGS_size;
  workload.depth = FLAGS_depth;
  workload.batch = FLAGS_batch;
  workload.threads = FLAGS_threads;
  workload.seconds = FLAGS_seconds;
  workload.random = FLAGS_random;
  Result result;
  if (words.size() == 1 && words[0] == "socket") {
    NACRE_RETURN_IF_ERROR(RunSocketPing(workload.size, workload.seconds, Clock::System(), &result));
    Print(words[0], "loopback", workload, result);
    return Status::OK();
  }
  if (words.size() != 2) return Status::InvalidArgument("see nacre-perf --help");
  Uri uri;
  // "tcp:" names no address: the far side is to choose one.
  NACRE_RETURN_IF_ERROR(ParseUri(words[1], &uri));
  if (words[0] == "serve") return Serve(std::move(uri));
  if (!ParseOperation(words[0], &workload.operation)) {
    return Status::InvalidArgument("'" + words[0] +
                                   "' is none of serve, read, write, cas, send, "
                                   "socket");
  }
  if (workload.operation == Operation::kCas) workload.size = sizeof(uint64_t);
  if (uri.addresses.size() > 1) return Status::InvalidArgument("one far side at a time");
  if (uri.scheme == "embedded") return Status::InvalidArgument("embedded: has no far side");
  ChildPeer child;
  std::string address = uri.addresses.empty() ? "" : uri.scheme + ":" + uri.addresses[0];
  if (address.empty()) NACRE_RETURN_IF_ERROR(child.Start(words[1], &address));
  std::unique_ptr<rdma::Device> device;
  NACRE_RETURN_IF_ERROR(OpenDevice(&uri, &device));
  NACRE_RETURN_IF_ERROR(Run(workload, device.get(), address, Clock::System(), &result));
  Print(words[0], address, workload, result);
  return Status::OK();
}

}  // namespace
}  // namespace nacre::perf

int main(int argc, char** argv) {
  gflags::SetUsageMessage(nacre::perf::kUsage);
  if (nacre::ParseFlagsOrPrintVersion("nacre-perf", &argc, &argv)) return 0;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const nacre::Status status = nacre::perf::Main(words);
  if (status.ok()) return 0;
  fmt::print(stderr, "nacre-perf: {}\n", status.ToString());
  return 1;
}
