// Goal: a Get beside 1,000 range tombstones costs at most 1.3 times one without; and a scan passes
// over what is deleted by seeks.
//
// Method: embedded databases of 100,000 keys, compacted, equal but for 1,000 range tombstones:
// none, in the MemTable, or in a table of level 0. Each tombstone covers one key in a hundred;
// BM_Get reads random keys that none of them covers; the keys of BM_GetLongKeys begin with the same
// 16 bytes, and the tombstones of BM_Get...Shuffled were written in no order. BM_Scan reads all of
// a database half of which one range deletion hides. BM_DeleteRanges writes 10,000 and 100,000
// range deletions, one a key, in no order, and BM_ScanSwath passes over the swath that they make:
// neither may take much more than ten times as long. BM_DeleteNested writes range deletions that
// all cover one another: neither time nor bytes may be their square.

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "nacre/db.h"
#include "tests/support/bench_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 100'000;
constexpr uint64_t kTombstones = 1000;

enum Place { kNone, kMemTable, kTable };

std::string LongKey(uint64_t n) { return "a common prefix/" + std::to_string(1'000'000 + n); }

enum Order { kAscending, kShuffled };

void GetBesideTombstones(benchmark::State& state, std::string (*key)(uint64_t), Order order) {
  const std::unique_ptr<DB> db = FillBench(BenchOptions(), kKeys, key);
  const auto place = static_cast<Place>(state.range(0));
  constexpr uint64_t kApart = kKeys / kTombstones;
  constexpr uint64_t kPrime = 7919;
  for (uint64_t i = 0; place != kNone && i < kTombstones; ++i) {
    const uint64_t n = order == kAscending ? i : i * kPrime % kTombstones;
    BenchCheck(db->DeleteRange({}, key(n * kApart), key(n * kApart + 1)));
  }
  if (place == kTable) BenchCheck(db->Flush({}));
  Random random(1);
  PinnableSlice value;
  for (auto _ : state) {
    BenchCheck(db->Get(
        {}, key(random.Uniform(kTombstones) * kApart + 1 + random.Uniform(kApart - 1)), &value));
  }
}

void BM_Get(benchmark::State& state) { GetBesideTombstones(state, BenchKey, kAscending); }
void BM_GetShuffled(benchmark::State& state) { GetBesideTombstones(state, BenchKey, kShuffled); }
void BM_GetLongKeys(benchmark::State& state) { GetBesideTombstones(state, LongKey, kAscending); }
void BM_GetLongKeysShuffled(benchmark::State& state) {
  GetBesideTombstones(state, LongKey, kShuffled);
}
BENCHMARK(BM_Get)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);
BENCHMARK(BM_GetShuffled)->Arg(kNone)->Arg(kMemTable);
BENCHMARK(BM_GetLongKeys)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);
BENCHMARK(BM_GetLongKeysShuffled)->Arg(kNone)->Arg(kMemTable);

/// One range deletion for each of `count` keys, in no order.
void DeleteEach(DB* db, uint64_t count) {
  constexpr uint64_t kPrime = 7919;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t n = i * kPrime % count;
    BenchCheck(db->DeleteRange({}, BenchKey(n), BenchKey(n + 1)));
  }
}

Options LargeBuffer() {
  Options options = BenchOptions();
  options.write_buffer_size = 512 << 20;
  return options;
}

void BM_DeleteRanges(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<DB> db = OpenBench(LargeBuffer());
    state.ResumeTiming();
    DeleteEach(db.get(), static_cast<uint64_t>(state.range(0)));
    state.PauseTiming();
    db.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_DeleteRanges)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_ScanSwath(benchmark::State& state) {
  const std::unique_ptr<DB> db = OpenBench(LargeBuffer());
  const auto count = static_cast<uint64_t>(state.range(0));
  for (uint64_t n = 0; n <= count; ++n) BenchCheck(db->Put({}, BenchKey(n), "value"));
  BenchCheck(db->Flush({}));
  DeleteEach(db.get(), count);
  for (auto _ : state) {
    const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
    iterator->SeekToFirst();
    if (!iterator->Valid() || iterator->key() != Slice(BenchKey(count))) {
      throw std::runtime_error("the scan found another key");
    }
  }
}
BENCHMARK(BM_ScanSwath)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(3);

/// Range deletions that all cover one another, the widest ones first.
void BM_DeleteNested(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<DB> db = OpenBench(LargeBuffer());
    state.ResumeTiming();
    for (uint64_t n = 0; n < count; ++n) {
      BenchCheck(db->DeleteRange({}, BenchKey(n), BenchKey(3 * count - n)));
    }
    state.PauseTiming();
    std::string memory;
    if (!db->GetProperty("nacre.cur-size-all-mem-tables", &memory)) memory = "0";
    state.counters["bytes"] = std::stod(memory);
    db.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_DeleteNested)->Arg(1000)->Arg(4000)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_Scan(benchmark::State& state) {
  const std::unique_ptr<DB> db = FillBench(BenchOptions(), kKeys);
  if (state.range(0) != 0)
    BenchCheck(db->DeleteRange({}, BenchKey(kKeys / 4), BenchKey(3 * kKeys / 4)));
  for (auto _ : state) {
    const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
    uint64_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    BenchCheck(iterator->status());
    benchmark::DoNotOptimize(seen);
  }
}
BENCHMARK(BM_Scan)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
