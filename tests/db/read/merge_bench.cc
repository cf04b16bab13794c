// Goal: a Get that merges reads what the key has and nothing else, wherever its operand lies.
//
// Method: embedded databases of 100,000 keys with values of 100 bytes, compacted, and five flushes
// of level 0 with keys of their own beside them. Every key of a thousand that are read has its
// value only, or an operand besides: in the MemTable, or in a sixth flush.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "tests/support/bench_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 100'000;
constexpr uint64_t kRead = 1000;
constexpr uint64_t kOtherFlushes = 5;
constexpr size_t kValueBytes = 100;

enum Place { kNone, kMemTable, kTable };

void BM_GetMerged(benchmark::State& state) {
  const auto place = static_cast<Place>(state.range(0));
  Options options = BenchOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  const std::unique_ptr<DB> db = FillBench(options, kKeys);
  for (uint64_t flush = 0; flush < kOtherFlushes; ++flush) {
    for (uint64_t n = 0; n < kRead; ++n) {
      BenchCheck(
          db->Put({}, BenchKey(n * (kKeys / kRead) + 1 + flush), std::string(kValueBytes, 'w')));
    }
    BenchCheck(db->Flush({}));
  }
  for (uint64_t n = 0; place != kNone && n < kRead; ++n) {
    BenchCheck(db->Merge({}, BenchKey(n * (kKeys / kRead)), "more"));
  }
  if (place == kTable) BenchCheck(db->Flush({}));
  Random random(1);
  PinnableSlice value;
  for (auto _ : state) {
    BenchCheck(db->Get({}, BenchKey(random.Uniform(kRead) * (kKeys / kRead)), &value));
    benchmark::DoNotOptimize(value.data());
  }
}
BENCHMARK(BM_GetMerged)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);

}  // namespace
}  // namespace nacre
