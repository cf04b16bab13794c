// Goal: what a snapshot costs to take and to give back does not depend on how many are held.
// Method: as many snapshots as the argument says; one in the middle is given back, and another one
// taken.

#include <benchmark/benchmark.h>

#include <vector>

#include "db/version/snapshot_list.h"
#include "util/random.h"

namespace nacre {
namespace {

void BM_SnapshotTakenAndGivenBack(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  SnapshotList list;
  std::vector<const Snapshot*> held;
  SequenceNumber sequence = 0;
  for (size_t i = 0; i < count; ++i) held.push_back(list.Add(++sequence));
  Random random(7);
  for (auto _ : state) {
    const Snapshot*& one = held[random.Uniform(count)];
    list.Remove(one);
    one = list.Add(++sequence);
  }
}

BENCHMARK(BM_SnapshotTakenAndGivenBack)->Arg(100)->Arg(10'000)->Arg(100'000);

}  // namespace
}  // namespace nacre
