// Goal: range deletions, and reads and scans beside them, cost no more here than with RocksDB.
//
// Method: the same calls of either engine in one run, in turns with
// --benchmark_enable_random_interleaving: an embedded pool of memory here, a file system in memory
// there, both with their log. 100,000 keys are compacted; then come range deletions, disjoint ones
// of one key each or such that all cover one another, in the MemTable. BM_Delete writes them,
// BM_Get reads random keys that none covers, BM_Seek seeks to keys that are covered, BM_Scan reads
// all that is left.

#include <benchmark/benchmark.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "nacre/db.h"
#include "tests/support/bench_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 100'000;
constexpr size_t kBufferBytes = 512 << 20;

class NacreSide {
 public:
  NacreSide() {
    Options options = BenchOptions();
    options.write_buffer_size = kBufferBytes;
    db_ = FillBench(options, kKeys);
  }
  void DeleteRange(const std::string& begin, const std::string& end) {
    BenchCheck(db_->DeleteRange({}, begin, end));
  }
  bool Get(const std::string& key) {
    PinnableSlice value;
    return db_->Get({}, key, &value).ok();
  }
  auto NewIterator() { return std::unique_ptr<Iterator>(db_->NewIterator({})); }

 private:
  std::unique_ptr<DB> db_;
};

class RocksSide {
 public:
  RocksSide() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.write_buffer_size = kBufferBytes;
    options.disable_auto_compactions = true;
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, "/bench", &db));
    db_.reset(db);
    for (uint64_t n = 0; n < kKeys; ++n) {
      Check(db_->Put({}, BenchKey(n), std::string(100, 'v')));
    }
    Check(db_->CompactRange({}, nullptr, nullptr));
  }
  void DeleteRange(const std::string& begin, const std::string& end) {
    Check(db_->DeleteRange({}, db_->DefaultColumnFamily(), begin, end));
  }
  bool Get(const std::string& key) {
    rocksdb::PinnableSlice value;
    return db_->Get({}, db_->DefaultColumnFamily(), key, &value).ok();
  }
  auto NewIterator() { return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator({})); }

 private:
  static void Check(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  std::unique_ptr<rocksdb::Env> env_;  ///< Outlives the database.
  std::unique_ptr<rocksdb::DB> db_;
};

/// Even keys, one by one and in no order; or all that lies between, the widest ranges first.
template <typename Side>
void Delete(Side* side, uint64_t count, bool nested) {
  constexpr uint64_t kPrime = 7919;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t n = 2 * (i * kPrime % count);
    side->DeleteRange(BenchKey(nested ? i : n), BenchKey(nested ? 4 * count - i : n + 1));
  }
}

template <typename Side>
void BM_Delete(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto side = std::make_unique<Side>();
    state.ResumeTiming();
    Delete(side.get(), static_cast<uint64_t>(state.range(0)), state.range(1) != 0);
    state.PauseTiming();
    side.reset();
    state.ResumeTiming();
  }
}

template <typename Side>
void BM_Get(benchmark::State& state) {
  Side side;
  const auto count = static_cast<uint64_t>(state.range(0));
  const bool nested = state.range(1) != 0;
  Delete(&side, count, nested);
  Random random(1);
  for (auto _ : state) {
    const uint64_t key =
        nested ? 4 * count + random.Uniform(kKeys - 4 * count) : 2 * random.Uniform(count) + 1;
    if (!side.Get(BenchKey(key))) throw std::runtime_error("a key is gone");
  }
}

template <typename Side>
void BM_Seek(benchmark::State& state) {
  Side side;
  const auto count = static_cast<uint64_t>(state.range(0));
  Delete(&side, count, state.range(1) != 0);
  const auto iterator = side.NewIterator();
  Random random(1);
  for (auto _ : state) {
    iterator->Seek(BenchKey(2 * random.Uniform(count)));
    if (!iterator->Valid()) throw std::runtime_error("no key is left");
  }
}

template <typename Side>
void BM_Scan(benchmark::State& state) {
  Side side;
  Delete(&side, static_cast<uint64_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) {
    uint64_t seen = 0;
    const auto iterator = side.NewIterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    if (seen == 0) throw std::runtime_error("no key is left");
  }
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"count", "nested"})->ArgsProduct({{1000, 10'000}, {0, 1}});
}

BENCHMARK(BM_Delete<NacreSide>)->Apply(Sizes)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(BM_Delete<RocksSide>)->Apply(Sizes)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(BM_Get<NacreSide>)->Apply(Sizes);
BENCHMARK(BM_Get<RocksSide>)->Apply(Sizes);
BENCHMARK(BM_Seek<NacreSide>)->Apply(Sizes);
BENCHMARK(BM_Seek<RocksSide>)->Apply(Sizes);
BENCHMARK(BM_Scan<NacreSide>)->Apply(Sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Scan<RocksSide>)->Apply(Sizes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
