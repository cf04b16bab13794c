// Goal: a Get beside 1,000 range tombstones costs at most 1.3 times one without; and a scan passes
// over what is deleted by seeks.
//
// Method: embedded databases of 100,000 keys, compacted, equal but for 1,000 range tombstones:
// none, in the MemTable, or in a table of level 0. Each tombstone covers one key in a hundred;
// BM_Get reads random keys that none of them covers; the keys of BM_GetLongKeys begin with the same
// 16 bytes. BM_Scan reads all of a database half of which one range deletion hides. BM_DeleteRanges
// writes 10,000 and 100,000 range deletions, one a key, in no order, and BM_ScanSwath passes over
// the swath that they make: neither may take much more than ten times as long.

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
std::string LongKey(uint64_t n) { return "a common prefix/" + std::to_string(1'000'000 + n); }

std::unique_ptr<DB> Fill(std::string (*key)(uint64_t) = Key) {
  Options options;
  options.create_if_missing = true;
  options.pool_uri = "embedded:?nodes=1&size=512MiB";
  options.disable_auto_compactions = true;
  std::unique_ptr<DB> db;
  Check(DB::Open(options, "bench", &db));
  for (uint64_t n = 0; n < kKeys; ++n) {
    Check(db->Put({}, key(n), std::string(kValueBytes, 'v')));
  }
  Check(db->CompactRange({}, nullptr, nullptr));
  return db;
}

void GetBesideTombstones(benchmark::State& state, std::string (*key)(uint64_t)) {
  const std::unique_ptr<DB> db = Fill(key);
  const auto place = static_cast<Place>(state.range(0));
  constexpr uint64_t kApart = kKeys / kTombstones;
  for (uint64_t n = 0; place != kNone && n < kTombstones; ++n) {
    Check(db->DeleteRange({}, key(n * kApart), key(n * kApart + 1)));
  }
  if (place == kTable) Check(db->Flush({}));
  Random random(1);
  PinnableSlice value;
  for (auto _ : state) {
    Check(db->Get({}, key(random.Uniform(kTombstones) * kApart + 1 + random.Uniform(kApart - 1)),
                  &value));
  }
}

void BM_Get(benchmark::State& state) { GetBesideTombstones(state, Key); }
void BM_GetLongKeys(benchmark::State& state) { GetBesideTombstones(state, LongKey); }
BENCHMARK(BM_GetLongKeys)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);
BENCHMARK(BM_Get)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);

/// One range deletion for each of `count` keys, in no order.
void DeleteEach(DB* db, uint64_t count) {
  constexpr uint64_t kPrime = 7919;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t n = i * kPrime % count;
    Check(db->DeleteRange({}, Key(n), Key(n + 1)));
  }
}

std::unique_ptr<DB> OpenEmpty() {
  Options options;
  options.create_if_missing = true;
  options.pool_uri = "embedded:?nodes=1&size=512MiB";
  options.disable_auto_compactions = true;
  options.write_buffer_size = 512 << 20;
  std::unique_ptr<DB> db;
  Check(DB::Open(options, "bench", &db));
  return db;
}

void BM_DeleteRanges(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<DB> db = OpenEmpty();
    state.ResumeTiming();
    DeleteEach(db.get(), static_cast<uint64_t>(state.range(0)));
    state.PauseTiming();
    db.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_DeleteRanges)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_ScanSwath(benchmark::State& state) {
  const std::unique_ptr<DB> db = OpenEmpty();
  const auto count = static_cast<uint64_t>(state.range(0));
  for (uint64_t n = 0; n <= count; ++n) Check(db->Put({}, Key(n), "value"));
  Check(db->Flush({}));
  DeleteEach(db.get(), count);
  for (auto _ : state) {
    const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
    iterator->SeekToFirst();
    if (!iterator->Valid() || iterator->key() != Slice(Key(count))) {
      throw std::runtime_error("the scan found another key");
    }
  }
}
BENCHMARK(BM_ScanSwath)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(3);

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
