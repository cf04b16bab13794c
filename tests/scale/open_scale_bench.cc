// Goal: what an opening costs for each table that there is: until the database is open, until the
// first Get is answered, and until all indexes are there.
//
// Method: a database of about as many small tables as the argument says (64 KiB, the least that
// options allow), made by compactions of random keys, on a node of this host over shm; opened
// again and again. `live_tables` is how many there are; the other counters are steps of
// `nacre.open.timeline`, in milliseconds. For as many tables as fill ten terabytes there is a
// manifest only (BM_OpenNamedTables): of tables of six fragments that have space and no bytes,
// which an opening does not look at, and a Get of a key that none of them has. Log and manifest
// have three copies.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "db/manifest/manifest_log.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kTableBytes = 64 << 10;
constexpr size_t kValueBytes = 1000;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

uint64_t Property(DB* db, const std::string& name) {
  uint64_t value = 0;
  if (!db->GetIntProperty("nacre." + name, &value)) throw std::runtime_error(name);
  return value;
}

class Bench {
 public:
  explicit Bench(uint64_t tables) : keys_(tables * kTableBytes / (kValueBytes + 30)) {
    const uint64_t mib = 512 + 5 * tables * kTableBytes / (1 << 20);
    nodes_ = std::make_unique<MemnodeProcesses>(
        1, MemnodeProcessOptions{.size = fmt::format("{}MiB", mib), .slab_size = "64MiB"});
    const std::unique_ptr<DB> db = Open();
    // A part of the keys after the other, as a compaction needs room for what it writes.
    constexpr uint64_t kPart = 100'000;
    Random random(7);
    for (uint64_t first = 0; first < keys_; first += kPart) {
      const uint64_t count = std::min(kPart, keys_ - first);
      for (uint64_t i = 0; i < count; ++i) {
        Check(db->Put({}, Key(first + random.Uniform(count)), TestValue(i, kValueBytes)));
      }
      Check(db->Flush({}));
      const std::string begin = Key(first);
      const std::string end = Key(first + count);
      const Slice begin_key(begin);
      const Slice end_key(end);
      Check(db->CompactRange({}, &begin_key, &end_key));
    }
    Check(db->Close());
  }

  std::unique_ptr<DB> Open() {
    Options options;
    options.create_if_missing = true;
    options.pool_uri = nodes_->pool_uri();
    options.redundancy = "none";
    options.write_buffer_size = 64 << 20;
    options.disable_auto_compactions = true;
    options.target_file_size_base = kTableBytes;
    options.chunk_size = 4 << 10;  // How closely tables keep to their size.
    std::unique_ptr<DB> db;
    Check(DB::Open(options, "db", &db));
    return db;
  }
  std::string AnyKey() { return Key(random_.Uniform(keys_)); }

 private:
  static std::string Key(uint64_t i) { return fmt::format("key{:016}", i); }

  const uint64_t keys_;
  Random random_{8};
  std::unique_ptr<MemnodeProcesses> nodes_;
};

/// Microseconds by step.
std::map<std::string, double> Timeline(DB* db) {
  std::string text;
  if (!db->GetProperty("nacre.open.timeline", &text)) throw std::runtime_error("timeline");
  std::map<std::string, double> steps;
  std::istringstream lines(text);
  std::string step;
  for (double micros = 0; lines >> step >> micros;) steps[step] = micros;
  return steps;
}

void BM_OpenToFirstGet(benchmark::State& state) {
  Bench bench(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    std::unique_ptr<DB> db = bench.Open();
    std::string value;
    const Status status = db->Get({}, bench.AnyKey(), &value);
    state.PauseTiming();
    if (!status.IsNotFound()) Check(status);
    while (Property(db.get(), "num-unloaded-tables") > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::map<std::string, double> steps;
    while (!steps.contains("indexes")) steps = Timeline(db.get());
    for (const auto& [step, micros] : steps) state.counters[step] = micros / 1000;
    state.counters["live_tables"] = static_cast<double>(Property(db.get(), "num-live-tables"));
    Check(db->Close());
    db.reset();
    state.ResumeTiming();
  }
}

/// A manifest whose root is the database's.
class RootedManifest : public ManifestPool {
 public:
  using ManifestPool::ManifestPool;
  Status PublishRoot(const std::string& value) override {
    return client()->databases()->PublishRoot(database_id(), value);
  }
};

constexpr int kFragments = 6;
constexpr uint64_t kNamedSlabBytes = 64 << 20;

/// Tables of which there is nothing but what the manifest says, of a database named "manifest".
void NameTables(const std::string& pool_uri, uint64_t tables) {
  std::shared_ptr<pool::PoolImpl> pool;
  pool::PoolOpenOptions options;
  options.slab_bytes = kNamedSlabBytes;
  Check(OpenPool(pool_uri, options, Clock::System(), &pool));
  pool::PoolClient* const client = pool->client();
  RootedManifest manifest(3, pool, kNamedSlabBytes);
  ManifestState state = manifest.InitialState();
  state.slab_bytes = kNamedSlabBytes;
  state.comparator = BytewiseComparator()->Name();
  for (NodeId node = 0; node < client->node_count(); ++node) {
    // Nothing of these tables can be read, or repaired.
    pool::Directions now;
    Check(pool::SetDirections(client, node, {.version = 1, .repair_paused = true}, &now));
  }
  Random random(9);
  for (uint64_t id = 1; id <= tables; ++id) {
    TableMeta meta = RandomTableMeta(&random, id, 16, kFragments);
    meta.level = state.num_levels - 1;
    meta.smallest.clear();
    meta.largest.clear();
    AppendInternalKey(&meta.smallest, fmt::format("key{:016}", 2 * id),
                      PackTag(1, ValueType::kValue));
    AppendInternalKey(&meta.largest, fmt::format("key{:016}", 2 * id + 1),
                      PackTag(1, ValueType::kValue));
    meta.comparator = state.comparator;
    meta.records.length = 64;
    meta.size = 100;
    Check(
        manifest.space()->Reserve(meta.placement.redundancy, meta.size, kNoNode, &meta.placement));
    state.tables[id] = {meta.level, std::move(meta)};
  }
  state.next_table_id = tables + 1;
  std::unique_ptr<ManifestLog> log;
  Check(ManifestLog::Create(manifest.LogOptions(), std::move(state), &manifest, &log));
  log->Close();
  Check(client->databases()->Leave(manifest.database_id()));
}

void BM_OpenNamedTables(benchmark::State& state) {
  const auto tables = static_cast<uint64_t>(state.range(0));
  const uint64_t mib = 768 + tables * 10 / 1024;
  MemnodeProcesses nodes(
      kFragments, MemnodeProcessOptions{.size = fmt::format("{}MiB", mib), .slab_size = "64MiB"});
  NameTables(nodes.pool_uri(), tables);
  Options options;
  options.pool_uri = nodes.pool_uri();
  options.redundancy = "rep(3)";
  options.disable_auto_compactions = true;
  for (auto _ : state) {
    std::unique_ptr<DB> db;
    Check(DB::Open(options, "manifest", &db));
    std::string value;
    const Status status = db->Get({}, "zzz", &value);
    state.PauseTiming();
    if (!status.IsNotFound()) throw std::runtime_error("first Get: " + status.ToString());
    std::map<std::string, double> steps = Timeline(db.get());
    for (const auto& [step, micros] : steps) state.counters[step] = micros / 1000;
    state.counters["live_tables"] = static_cast<double>(Property(db.get(), "num-live-tables"));
    Check(db->Close());
    db.reset();
    state.ResumeTiming();
  }
}

BENCHMARK(BM_OpenNamedTables)
    ->Arg(1'650)
    ->Arg(16'500)
    ->Arg(165'000)
    ->Iterations(3)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK(BM_OpenToFirstGet)
    ->Arg(1'650)
    ->Arg(6'600)
    ->Iterations(3)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
