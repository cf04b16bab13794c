#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/engine/keyspace.h"
#include "db_bench/flags/flags.h"
#include "db_bench/report/json_report.h"
#include "db_bench/report/latency_files.h"
#include "db_bench/report/report.h"
#include "db_bench/runner.h"
#include "nacre/utilities/etcd.h"
#include "util/api/program_version.h"
#include "util/clock.h"

namespace {

// The one thing that a signal handler can reach.
std::atomic<bool> stop_requested{false};

void RequestStop(int) { stop_requested.store(true, std::memory_order_relaxed); }

/// The first signal ends the run as soon as the threads look, so that folders are removed; a second
/// one ends the process.
void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

/// Has the library know the coordinators that this build has.
nacre::Status UseCoordinators(const nacre::bench::BenchConfig& config) {
#ifdef NACRE_DB_BENCH_ETCD
  nacre::UseEtcd();
#endif
  if (!config.coordinator.starts_with("etcd:")) return nacre::Status::OK();
#ifdef NACRE_DB_BENCH_ETCD
  return nacre::Status::OK();
#else
  return nacre::Status::NotSupported("--coordinator: this db_bench was built without etcd");
#endif
}

nacre::Status RunBenchmarks(const nacre::bench::BenchConfig& config) {
  using nacre::bench::JsonReport;
  if (!config.json.empty()) NACRE_RETURN_IF_ERROR(nacre::bench::CheckWritable(config.json));
  if (!config.latency_files.empty()) {
    NACRE_RETURN_IF_ERROR(nacre::bench::CheckWritable(config.latency_files + "1"));
  }
  const std::unique_ptr<nacre::bench::Engine> engine = nacre::bench::NewEngine(config);
  nacre::bench::PrintHeader(stdout, config, *engine);
  nacre::bench::Runner runner(config, engine.get(), nacre::Clock::System(), &stop_requested);
  NACRE_RETURN_IF_ERROR(runner.Run());
  nacre::bench::PrintSummary(stdout, *engine, runner.results());
  if (!config.json.empty() && !runner.results().empty()) {
    JsonReport report{.config = &config,
                      .engine_description = engine->Describe(),
                      .engine_warning = engine->Warning(),
                      .results = &runner.results(),
                      .space = {},
                      .traffic = {},
                      .durability = engine->DurabilityCounters(),
                      .process = nacre::bench::ReadProcessUsage()};
    NACRE_RETURN_IF_ERROR(engine->Space(&report.space));
    NACRE_RETURN_IF_ERROR(engine->Traffic(&report.traffic));
    NACRE_RETURN_IF_ERROR(nacre::bench::WriteFile(config.json, report.ToString()));
  }
  if (!config.latency_files.empty()) {
    NACRE_RETURN_IF_ERROR(nacre::bench::WriteLatencyFiles(config.latency_files, runner.results()));
  }
  return engine->Close();
}

}  // namespace

#if defined(__SANITIZE_THREAD__)
// RocksDB, LevelDB and LMDB come without instrumentation: their locking by atomics is not seen, and
// memory that they hand from thread to thread looks as if it were not guarded.
extern "C" const char* __tsan_default_suppressions() {
  return "race:librocksdb.so\nrace:libleveldb.so\nrace:liblmdb.so\n";
}
#endif

int main(int argc, char** argv) {
  nacre::bench::BenchConfig config;
  bool help = false;
  const nacre::Status parsed = nacre::bench::ParseFlags(argc, argv, &config, &help);
  if (!parsed.ok()) {
    std::fprintf(stderr, "db_bench: %s\n", std::string(parsed.message()).c_str());
    return 1;
  }
  if (nacre::PrintVersion("db_bench")) return 0;
  if (help) {
    nacre::bench::PrintHelp();
    return 0;
  }
  nacre::Status status = UseCoordinators(config);
  if (status.ok() && config.serve_member) {
    // It ends with the process that started it.
    std::signal(SIGINT, SIG_IGN);
    status = nacre::bench::ServeMember(config);
  } else if (status.ok()) {
    HandleSignals();
    status = RunBenchmarks(config);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "db_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
