// Goal: know what the helpers on hot paths cost.
// Method: each alone in a loop over data that stays in the cache.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "util/codes/crc32c.h"
#include "util/hash.h"
#include "util/histogram.h"
#include "util/memory/arena.h"
#include "util/memory/arena_block_pool.h"
#include "util/random.h"
#include "util/thread_index.h"
#include "util/threads/epoch.h"

namespace nacre {
namespace {

void BM_ThreadIndex(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ThreadIndex::Current());
}
BENCHMARK(BM_ThreadIndex);

void BM_EpochGuard(benchmark::State& state) {
  static EpochDomain domain;
  domain.PrepareToReclaim();
  for (auto _ : state) {
    EpochDomain::Guard guard(&domain);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_EpochGuard)->Threads(1)->Threads(2);

void BM_EpochRetire(benchmark::State& state) {
  EpochDomain domain;
  for (auto _ : state) domain.Retire([] {});
}
BENCHMARK(BM_EpochRetire);

void BM_ArenaAllocate(benchmark::State& state) {
  const auto blocks = std::make_shared<ArenaBlockPool>(64 << 20);
  auto arena = std::make_unique<ConcurrentArena>(blocks);
  bool new_chunk = false;
  for (auto _ : state) {
    benchmark::DoNotOptimize(arena->Allocate(64, &new_chunk, 24));
    if (arena->MemoryUsage() > 32 << 20) {
      state.PauseTiming();
      arena.reset();
      arena = std::make_unique<ConcurrentArena>(blocks);
      state.ResumeTiming();
    }
  }
}
BENCHMARK(BM_ArenaAllocate);

void BM_Hash64(benchmark::State& state) {
  const std::string key(static_cast<size_t>(state.range(0)), 'k');
  for (auto _ : state) benchmark::DoNotOptimize(Hash64(key));
}
BENCHMARK(BM_Hash64)->Arg(8)->Arg(20)->Arg(100);

void BM_Crc32c(benchmark::State& state) {
  const std::string bytes(static_cast<size_t>(state.range(0)), 'b');
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes.data(), bytes.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Crc32c)->Arg(16)->Arg(64)->Arg(100)->Arg(430)->Arg(4096)->Arg(256 << 10);

void BM_HistogramAdd(benchmark::State& state) {
  Histogram histogram;
  Random random(1);
  for (auto _ : state) histogram.Add(random.Next() >> 44);
  benchmark::DoNotOptimize(histogram.count());
}
BENCHMARK(BM_HistogramAdd);

}  // namespace
}  // namespace nacre
