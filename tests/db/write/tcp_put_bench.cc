// What a logged Put costs over tcp, with three nodes that are processes of this machine, beside a
// ping-pong of as many bytes over as many blocking sockets, and over one: micro_db
// --benchmark_filter=OverTcp, with repetitions that interleave where the machine is busy.

#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "rdma/tcp/frame.h"
#include "table/format/log_format.h"
#include "tests/support/bench_db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/rdma/bare_sockets.h"
#include "util/clock.h"
#include "util/histogram.h"

namespace nacre {
namespace {

constexpr int kNodes = 3;
constexpr size_t kValueBytes = 400;

/// Adds the median time of an iteration, in microseconds, to what is reported.
class Medians {
 public:
  explicit Medians(benchmark::State* state) : state_(state) {}
  ~Medians() {
    state_->counters["p50_us"] =
        benchmark::Counter(histogram_.Median() / 1e3, benchmark::Counter::kAvgThreads);
    state_->counters["p99_us"] =
        benchmark::Counter(histogram_.Percentile(99) / 1e3, benchmark::Counter::kAvgThreads);
  }
  Medians(const Medians&) = delete;
  Medians& operator=(const Medians&) = delete;

  template <typename Work>
  void Time(const Work& work) {
    const uint64_t start = Clock::System()->NowNanos();
    work();
    histogram_.Add(Clock::System()->NowNanos() - start);
  }

 private:
  benchmark::State* const state_;
  Histogram histogram_;
};

/// A database whose log is on three nodes. It lasts for one run of a benchmark.
struct LoggedDb {
  explicit LoggedDb(const std::string& parameters)
      : nodes(kNodes, {.scheme = "tcp",
                       .size = "768MiB",
                       .slab_size = "16MiB",
                       .populate = true,
                       .parameters = parameters,
                       .environment = {"NACRE_SECRET=benchmark"}}) {
    Options options;
    options.create_if_missing = true;
    PoolOptions pool;
    pool.secret = "benchmark";
    BenchCheck(Pool::Open(nodes.pool_uri() + parameters, pool, &options.pool));
    options.redundancy = "rep(3)";
    options.write_buffer_size = 128 << 20;
    db = OpenBench(options);
  }

  const MemnodeProcesses nodes;
  std::unique_ptr<DB> db;
  std::atomic<uint64_t> next_key{0};
};

std::unique_ptr<LoggedDb> logged;

void OpenPlain(const benchmark::State&) { logged = std::make_unique<LoggedDb>(""); }
void OpenEncrypted(const benchmark::State&) { logged = std::make_unique<LoggedDb>("?tls=all"); }
void Close(const benchmark::State&) { logged.reset(); }

void BM_PutOverTcp(benchmark::State& state) {
  const std::string value(kValueBytes, 'v');
  Medians medians(&state);
  for (auto _ : state) {
    const std::string key = BenchKey(logged->next_key.fetch_add(1, std::memory_order_relaxed));
    medians.Time([&] { BenchCheck(logged->db->Put({}, key, value)); });
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PutOverTcp)
    ->Setup(OpenPlain)
    ->Teardown(Close)
    ->Threads(1)
    ->Threads(8)
    ->Threads(64)
    ->UseRealTime();
BENCHMARK(BM_PutOverTcp)
    ->Name("BM_PutOverTcpEncrypted")
    ->Setup(OpenEncrypted)
    ->Teardown(Close)
    ->Threads(1)
    ->UseRealTime();

/// The frames of such a Put, there and back.
void BM_BarePingPongOverTcp(benchmark::State& state) {
  const size_t record =
      LogRecordBytes(BenchKey(0).size() + kValueBytes + 4);  // Type, and the sizes of both.
  rdma::BareSockets sockets(static_cast<size_t>(state.range(0)), rdma::kFrameHeaderBytes + record,
                            rdma::kFrameHeaderBytes);
  Medians medians(&state);
  for (auto _ : state) medians.Time([&] { sockets.PingAll(); });
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_BarePingPongOverTcp)->ArgName("sockets")->Arg(1)->Arg(kNodes)->UseRealTime();

}  // namespace
}  // namespace nacre
