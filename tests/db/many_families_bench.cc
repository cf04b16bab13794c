// Goal: what threads write to many column families costs what it costs in one: memory and flushes
// follow what is stored, not how many MemTables and threads there are.
//
// Method: 32 threads put and get keys of 16 and values of 100 bytes in 1 and in 200 column families
// with write buffers of 1 MiB, on four embedded nodes.

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr int kThreads = 32;
constexpr uint64_t kKeys = 100'000;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

/// Opened by the first thread of a run, used by all.
struct Database {
  explicit Database(int count) {
    Options options;
    options.pool_uri = "embedded:?nodes=4&size=1GiB";
    options.create_if_missing = true;
    options.write_buffer_size = 1 << 20;
    Check(DB::Open(options, "bench", &db));
    families.push_back(db->DefaultColumnFamily());
    for (int i = 1; i < count; ++i) {
      families.push_back(nullptr);
      Check(db->CreateColumnFamily(options, "family" + std::to_string(i), &families.back()));
    }
  }
  ~Database() {
    for (size_t i = 1; i < families.size(); ++i) delete families[i];
  }

  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> families;
};

std::unique_ptr<Database> database;

void BM_PutAndGet(benchmark::State& state) {
  Random random(static_cast<uint64_t>(state.thread_index()) + 1);
  const std::string value(100, 'v');
  std::string found;
  for (auto _ : state) {
    ColumnFamilyHandle* family = database->families[random.Uniform(database->families.size())];
    std::string key = std::to_string(random.Uniform(kKeys));
    key.insert(0, 16 - key.size(), '0');
    Check(database->db->Put({}, family, key, value));
    Check(database->db->Get({}, family, key, &found));
  }
  state.SetItemsProcessed(state.iterations());
}

void Open(const benchmark::State& state) {
  database = std::make_unique<Database>(static_cast<int>(state.range(0)));
}
void Close(const benchmark::State&) { database.reset(); }

BENCHMARK(BM_PutAndGet)
    ->Arg(1)
    ->Arg(200)
    ->Threads(kThreads)
    ->Setup(Open)
    ->Teardown(Close)
    ->UseRealTime();

}  // namespace
}  // namespace nacre
