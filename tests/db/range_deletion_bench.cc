// Goal: a Get beside 1,000 range tombstones costs at most 1.3 times one without; and a scan passes
// over what is deleted by seeks.
//
// Method: embedded databases of 100,000 keys, compacted, equal but for 1,000 range tombstones:
// none, in the MemTable, or in a table of level 0. Each tombstone covers one key in a hundred;
// BM_Get reads random keys that none of them covers. BM_Scan reads all of a database half of which
// one range deletion hides.

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "nacre/db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 100'000;
constexpr uint64_t kTombstones = 1000;
constexpr size_t kValueBytes = 100;

enum Place { kNone, kMemTable, kTable };

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string Key(uint64_t n) { return "key" + std::to_string(1'000'000 + n); }

std::unique_ptr<DB> Fill() {
  Options options;
  options.create_if_missing = true;
  options.pool_uri = "embedded:?nodes=1&size=512MiB";
  options.disable_auto_compactions = true;
  std::unique_ptr<DB> db;
  Check(DB::Open(options, "bench", &db));
  for (uint64_t n = 0; n < kKeys; ++n) {
    Check(db->Put({}, Key(n), std::string(kValueBytes, 'v')));
  }
  Check(db->CompactRange({}, nullptr, nullptr));
  return db;
}

void BM_Get(benchmark::State& state) {
  const std::unique_ptr<DB> db = Fill();
  const auto place = static_cast<Place>(state.range(0));
  constexpr uint64_t kApart = kKeys / kTombstones;
  for (uint64_t n = 0; place != kNone && n < kTombstones; ++n) {
    Check(db->DeleteRange({}, Key(n * kApart), Key(n * kApart + 1)));
  }
  if (place == kTable) Check(db->Flush({}));
  Random random(1);
  PinnableSlice value;
  for (auto _ : state) {
    Check(db->Get({}, Key(random.Uniform(kTombstones) * kApart + 1 + random.Uniform(kApart - 1)),
                  &value));
  }
}
BENCHMARK(BM_Get)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);

void BM_Scan(benchmark::State& state) {
  const std::unique_ptr<DB> db = Fill();
  if (state.range(0) != 0) Check(db->DeleteRange({}, Key(kKeys / 4), Key(3 * kKeys / 4)));
  for (auto _ : state) {
    const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
    uint64_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    Check(iterator->status());
    benchmark::DoNotOptimize(seen);
  }
}
BENCHMARK(BM_Scan)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
