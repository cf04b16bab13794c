// Goal: what the manifest costs: a commit about one round trip, an image update what its edits
// were, a recovery of many tables little enough not to be noticed.
//
// Method: three replicas on nodes of this process, reached over shm as processes would be, or with
// the NIC model at a round trip of 2 us; manifests of 10,000 tables with keys of 16 bytes.

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_recovery.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/process/memnode_process.h"

namespace nacre {
namespace {

constexpr uint64_t kTables = 10'000;
constexpr uint64_t kSlabBytes = 64 << 20;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

struct Bench {
  explicit Bench(uint64_t tables, const std::string& parameters = "") {
    nodes = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "256MiB", .slab_size = "64MiB"});
    std::shared_ptr<pool::PoolImpl> opened;
    pool::PoolOpenOptions pool_options;
    pool_options.slab_bytes = kSlabBytes;
    Check(OpenPool(nodes->pool_uri() + parameters, pool_options, Clock::System(), &opened));
    pool = std::make_unique<ManifestPool>(3, opened, kSlabBytes);
    ManifestState state = pool->InitialState();
    for (uint64_t id = 1; id <= tables; ++id) {
      state.tables[id] = {static_cast<uint32_t>(id % 7), RandomTableMeta(&random, id, 16, 6)};
    }
    first_id = next_id = state.next_table_id = tables + 1;
    Check(ManifestLog::Create(pool->LogOptions(), state, pool.get(), &log));
  }

  ManifestEdit NextEdit() {
    ManifestEdit edit;
    const uint64_t id = next_id++;
    edit.added.emplace_back(1, RandomTableMeta(&random, id, 16, 6));
    if (id > first_id) edit.removed.push_back(oldest_id++);
    edit.next_table_id = id + 1;
    return edit;
  }

  Random random{7};
  uint64_t first_id = 1;
  uint64_t next_id = 1;
  uint64_t oldest_id = 1;
  std::unique_ptr<MemnodeProcesses> nodes;
  std::unique_ptr<ManifestPool> pool;
  std::unique_ptr<ManifestLog> log;
};

/// One table added, one removed. Image updates, when the ring asks for them, are part of it.
void BM_ManifestCommit(benchmark::State& state) {
  Bench bench(0, state.range(0) == 0 ? "" : "?rtt_us=2");
  for (auto _ : state) {
    state.PauseTiming();
    ManifestEdit edit = bench.NextEdit();
    state.ResumeTiming();
    Check(bench.log->Commit(&edit));
  }
  const ManifestCounters counters = bench.log->counters();
  state.counters["edit_bytes"] =
      static_cast<double>(counters.edit_bytes) / static_cast<double>(counters.edits);
}

/// After as many edits as the argument says, of a manifest of 10,000 tables.
void BM_ManifestImageUpdate(benchmark::State& state) {
  Bench bench(kTables);
  for (auto _ : state) {
    state.PauseTiming();
    for (int64_t i = 0; i < state.range(0); ++i) {
      ManifestEdit edit = bench.NextEdit();
      Check(bench.log->Commit(&edit));
    }
    state.ResumeTiming();
    Check(bench.log->UpdateImages());
  }
  const ManifestCounters counters = bench.log->counters();
  state.counters["delta_bytes"] =
      static_cast<double>(counters.delta_bytes) / static_cast<double>(counters.image_updates);
  state.counters["image_bytes"] = static_cast<double>(counters.image_bytes);
}

/// An image of 10,000 tables and as many edits as the argument says.
void BM_ManifestRecovery(benchmark::State& state) {
  Bench bench(kTables);
  for (int64_t i = 0; i < state.range(0); ++i) {
    ManifestEdit edit = bench.NextEdit();
    Check(bench.log->Commit(&edit));
  }
  for (auto _ : state) {
    ManifestRecovered recovered;
    Check(RecoverManifest(bench.pool->client(), bench.pool->root(), bench.pool->database_id(),
                          &recovered));
    if (recovered.edits.size() != static_cast<size_t>(state.range(0))) {
      state.SkipWithError("not all edits");
    }
  }
}

void BM_ManifestRenewal(benchmark::State& state) {
  Bench bench(kTables);
  for (auto _ : state) Check(bench.log->Renew());
}

BENCHMARK(BM_ManifestCommit)->Arg(0)->Arg(2)->UseRealTime();
BENCHMARK(BM_ManifestImageUpdate)->Arg(1)->Arg(10)->Arg(100)->UseRealTime();
BENCHMARK(BM_ManifestRecovery)->Arg(0)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ManifestRenewal)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
