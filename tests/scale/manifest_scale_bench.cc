// Goal: what a manifest costs follows what an edit changes, not how many tables there are: edits
// and image updates, and what a renewal keeps a commit waiting; how long a recovery takes, and how
// long the first manifest of an owner.
//
// Method: three copies on nodes of this host over shm; manifests of as many tables, of six
// fragments and keys of 16 bytes, as the argument says (64 MiB each: 100 GB, 1 TB and 10 TB).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_recovery.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/process/memnode_process.h"

namespace nacre {
namespace {

constexpr uint64_t kSlabBytes = 64 << 20;
constexpr int kFragments = 6;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

class Bench {
 public:
  explicit Bench(uint64_t tables) {
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "768MiB", .slab_size = "64MiB"});
    std::shared_ptr<pool::PoolImpl> opened;
    pool::PoolOpenOptions options;
    options.slab_bytes = kSlabBytes;
    Check(OpenPool(nodes_->pool_uri(), options, Clock::System(), &opened));
    pool_ = std::make_unique<ManifestPool>(3, opened, kSlabBytes);
    initial_ = pool_->InitialState();
    for (uint64_t id = 1; id <= tables; ++id) {
      initial_.tables[id] = {static_cast<uint32_t>(id % 7), Table(id)};
    }
    next_id_ = initial_.next_table_id = tables + 1;
    Create(initial_);
  }

  /// A manifest of the tables that there were first, in the place of the one that there is.
  void Create(ManifestState state) {
    Check(ManifestLog::Create(pool_->LogOptions(), std::move(state), pool_.get(), &log_));
  }
  void DropManifest() {
    const std::vector<ExtentAddr> copies = log_->copies();
    log_.reset();
    pool_->FreeReplicas(copies);
  }
  const ManifestState& initial() const { return initial_; }

  /// A compaction: one table is replaced by another one. Of one thread.
  ManifestEdit NextEdit() {
    ManifestEdit edit;
    const uint64_t id = next_id_++;
    edit.added.emplace_back(1, Table(id));
    edit.removed.push_back(oldest_id_++);
    edit.next_table_id = id + 1;
    return edit;
  }
  void Commit() {
    ManifestEdit edit = NextEdit();
    Check(log_->Commit(&edit));
  }
  ManifestLog* log() { return log_.get(); }
  ManifestPool* pool() { return pool_.get(); }

 private:
  TableMeta Table(uint64_t id) { return RandomTableMeta(&random_, id, 16, kFragments); }

  Random random_{7};
  ManifestState initial_;
  uint64_t next_id_ = 1;
  uint64_t oldest_id_ = 1;
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::unique_ptr<ManifestPool> pool_;
  std::unique_ptr<ManifestLog> log_;
};

uint64_t Tables(const benchmark::State& state) { return static_cast<uint64_t>(state.range(0)); }

/// Includes the image updates that the ring asks for.
void BM_ManifestScaleCommit(benchmark::State& state) {
  Bench bench(Tables(state));
  for (auto _ : state) bench.Commit();
}

/// Each update has 64 edits.
void BM_ManifestScaleImageUpdate(benchmark::State& state) {
  Bench bench(Tables(state));
  for (auto _ : state) {
    state.PauseTiming();
    for (int i = 0; i < 64; ++i) bench.Commit();
    state.ResumeTiming();
    Check(bench.log()->UpdateImages());
  }
}

/// Renewals beside commits, one every millisecond. `commit_us_max` is the longest of these, and
/// `commit_us_p50` one of the usual ones.
void BM_ManifestScaleRenewal(benchmark::State& state) {
  Bench bench(Tables(state));
  std::atomic<bool> ends{false};
  std::vector<double> micros;
  std::thread committer([&] {
    while (!ends.load()) {
      ManifestEdit edit = bench.NextEdit();
      const auto start = std::chrono::steady_clock::now();
      Check(bench.log()->Commit(&edit));
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      micros.push_back(took.count());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (auto _ : state) Check(bench.log()->Renew());
  ends.store(true);
  committer.join();
  std::sort(micros.begin(), micros.end());
  state.counters["commit_us_p50"] = micros[micros.size() / 2];
  state.counters["commit_us_max"] = micros.back();
}

void BM_ManifestScaleRecovery(benchmark::State& state) {
  Bench bench(Tables(state));
  for (int i = 0; i < 64; ++i) bench.Commit();
  for (auto _ : state) {
    ManifestRecovered recovered;
    Check(RecoverManifest(bench.pool()->client(), bench.pool()->root(), bench.pool()->database_id(),
                          &recovered));
  }
}

void BM_ManifestScaleCreate(benchmark::State& state) {
  Bench bench(Tables(state));
  for (auto _ : state) {
    state.PauseTiming();
    ManifestState initial = bench.initial();
    bench.DropManifest();
    state.ResumeTiming();
    bench.Create(std::move(initial));
  }
}

void AllSizes(benchmark::internal::Benchmark* bench) {
  for (const int64_t tables : {1'650, 16'500, 165'000}) bench->Arg(tables);
  bench->UseRealTime();
}

BENCHMARK(BM_ManifestScaleCommit)->Apply(AllSizes)->Iterations(2000);
BENCHMARK(BM_ManifestScaleImageUpdate)->Apply(AllSizes)->Iterations(20);
BENCHMARK(BM_ManifestScaleRenewal)->Apply(AllSizes)->Iterations(10)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ManifestScaleCreate)->Apply(AllSizes)->Iterations(5)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ManifestScaleRecovery)->Apply(AllSizes)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
