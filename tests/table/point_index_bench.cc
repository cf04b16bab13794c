// Point index: bytes per key, measured rate of false positives, cost of building and of probing.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "table/index/point_index.h"
#include "util/random.h"

namespace nacre {
namespace {

struct BuiltIndex {
  std::vector<uint64_t> hashes;
  std::unique_ptr<char[]> memory;
  PointIndex index;
  size_t bytes = 0;
};

constexpr uint32_t kRecordBytes = 428;

BuiltIndex Build(size_t keys, uint64_t seed) {
  Random random(seed);
  BuiltIndex built;
  PointIndexBuilder builder(3);
  for (size_t i = 0; i < keys; ++i) {
    built.hashes.push_back(random.Next());
    builder.Add(built.hashes.back(), i * 432 % (uint64_t{1} << 27), kRecordBytes);
  }
  std::string section;
  builder.Finish(&section);
  built.bytes = section.size();
  built.memory = std::make_unique<char[]>(section.size() + 64);
  char* const aligned =
      built.memory.get() + (-reinterpret_cast<uintptr_t>(built.memory.get()) & 63);
  section.copy(aligned, section.size());
  PointIndexShape shape;
  if (PointIndexShape::Parse(section, &shape)) built.index = PointIndex(shape, aligned);
  return built;
}

void BM_PointIndexBuild(benchmark::State& state) {
  Random random(1);
  PointIndexBuilder builder(3);
  const auto keys = static_cast<size_t>(state.range(0));
  for (size_t i = 0; i < keys; ++i) builder.Add(random.Next(), i * 432, kRecordBytes);
  for (auto _ : state) {
    std::string section;
    builder.Finish(&section);
    benchmark::DoNotOptimize(section.data());
  }
  state.counters["time_per_key"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(keys),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_PointIndexBuild)->Arg(1000)->Arg(150'000);

void BM_PointIndexHit(benchmark::State& state) {
  const BuiltIndex built = Build(static_cast<size_t>(state.range(0)), 2);
  Random random(3);
  RecordCandidate candidates[kMaxCandidates];
  uint64_t found = 0;
  for (auto _ : state) {
    const uint64_t hash = built.hashes[random.Uniform(built.hashes.size())];
    found += static_cast<uint64_t>(built.index.Lookup(hash, candidates));
  }
  state.counters["bytes_per_key"] =
      static_cast<double>(built.bytes) / static_cast<double>(built.hashes.size());
  state.counters["candidates_per_hit"] =
      static_cast<double>(found) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_PointIndexHit)->Arg(1000)->Arg(150'000)->Arg(10'000'000);

void BM_PointIndexMiss(benchmark::State& state) {
  const BuiltIndex built = Build(static_cast<size_t>(state.range(0)), 4);
  Random random(5);
  RecordCandidate candidates[kMaxCandidates];
  uint64_t found = 0;
  for (auto _ : state) {
    found += static_cast<uint64_t>(built.index.Lookup(random.Next(), candidates));
  }
  state.counters["false_positive_percent"] =
      100 * static_cast<double>(found) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_PointIndexMiss)->Arg(1000)->Arg(150'000)->Arg(10'000'000);

/// How often the home bucket does not hold the answer, so that a second one is touched.
void BM_PointIndexSecondBucket(benchmark::State& state) {
  const BuiltIndex built = Build(150'000, 6);
  const PointIndexShape& shape = built.index.shape();
  const char* const buckets =
      built.memory.get() + (-reinterpret_cast<uintptr_t>(built.memory.get()) & 63);
  Random random(7);
  RecordCandidate candidates[kMaxCandidates];
  uint64_t second = 0;
  for (auto _ : state) {
    const uint64_t hash =
        state.range(0) != 0 ? built.hashes[random.Uniform(built.hashes.size())] : random.Next();
    uint64_t next = 0;
    PointIndex::LookupBucket(shape, buckets + shape.HomeBucket(hash) * kPointIndexBucketBytes, true,
                             hash, candidates, &next);
    second += next != PointIndex::kNoBucket;
  }
  state.counters["second_bucket_percent"] =
      100 * static_cast<double>(second) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_PointIndexSecondBucket)->ArgName("present")->Arg(0)->Arg(1);

}  // namespace
}  // namespace nacre
