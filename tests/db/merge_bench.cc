// Goal: a Get that merges reads what the key has and nothing else, wherever its operand lies.
//
// Method: embedded databases of 100,000 keys with values of 100 bytes, compacted, and five flushes
// of level 0 with keys of their own beside them. Every key of a thousand that are read has its
// value only, or an operand besides: in the MemTable, or in a sixth flush.

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 100'000;
constexpr uint64_t kRead = 1000;
constexpr uint64_t kOtherFlushes = 5;
constexpr size_t kValueBytes = 100;

enum Place { kNone, kMemTable, kTable };

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string Key(uint64_t n) { return "key" + std::to_string(1'000'000 + n); }

void BM_GetMerged(benchmark::State& state) {
  const auto place = static_cast<Place>(state.range(0));
  Options options;
  options.create_if_missing = true;
  options.pool_uri = "embedded:?nodes=1&size=512MiB";
  options.disable_auto_compactions = true;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  std::unique_ptr<DB> db;
  Check(DB::Open(options, "bench", &db));
  for (uint64_t n = 0; n < kKeys; ++n) {
    Check(db->Put({}, Key(n), std::string(kValueBytes, 'v')));
  }
  Check(db->CompactRange({}, nullptr, nullptr));
  for (uint64_t flush = 0; flush < kOtherFlushes; ++flush) {
    for (uint64_t n = 0; n < kRead; ++n) {
      Check(db->Put({}, Key(n * (kKeys / kRead) + 1 + flush), std::string(kValueBytes, 'w')));
    }
    Check(db->Flush({}));
  }
  for (uint64_t n = 0; place != kNone && n < kRead; ++n) {
    Check(db->Merge({}, Key(n * (kKeys / kRead)), "more"));
  }
  if (place == kTable) Check(db->Flush({}));
  Random random(1);
  PinnableSlice value;
  for (auto _ : state) {
    Check(db->Get({}, Key(random.Uniform(kRead) * (kKeys / kRead)), &value));
    benchmark::DoNotOptimize(value.data());
  }
}
BENCHMARK(BM_GetMerged)->Arg(kNone)->Arg(kMemTable)->Arg(kTable);

}  // namespace
}  // namespace nacre
