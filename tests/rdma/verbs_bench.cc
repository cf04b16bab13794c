// What a small write takes to arrive over verbs: two ends write to one another in turn, each
// polling its memory, as perftest's ib_write_lat does. p50_us is the middle of the times of one
// way, ib_write_lat's t_typical: where two processors are emulated, the mean is that of the
// scheduler. Needs the device that NACRE_TEST_VERBS_HOST names (the guest of tests/rdma_vm).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/rdma/rdma_endpoint.h"

namespace nacre::rdma {

namespace {

/// Writes `number` to the other end's last byte; every so often waits for a completion, which
/// takes back the places of all before it.
class Player {
 public:
  Player(Endpoint* self, const Endpoint& other, size_t size)
      : self_(self), size_(size), key_(other.regions[0]->remote_key()) {}

  void Serve(uint8_t number) {
    constexpr uint32_t kSignalEvery = 64;
    self_->Data(0)[kOut + size_ - 1] = static_cast<char>(number);
    const bool signal = ++posted_ % kSignalEvery == 0;
    self_->queue_pairs[0]
        ->PostWrite(1, self_->Buffer(0, kOut, size_), {key_.address, key_.key},
                    signal ? uint8_t{kSignaled} : uint8_t{0})
        .IgnoreError();  // A lost write shows as a benchmark that does not end.
    Completion completion;
    while (signal && self_->queue->Poll(&completion, 1) == 0) {
    }
  }
  void Await(uint8_t number) {
    const std::atomic_ref<char> last(self_->Data(0)[size_ - 1]);
    while (last.load(std::memory_order_acquire) != static_cast<char>(number)) {
    }
  }

 private:
  static constexpr size_t kOut = 4096;

  Endpoint* const self_;
  const size_t size_;
  const RemoteKey key_;
  uint32_t posted_ = 0;
};

void BM_VerbsWriteOneWay(benchmark::State& state) {
  if (VerbsHost() == nullptr) {
    state.SkipWithError("no RDMA device named by NACRE_TEST_VERBS_HOST");
    return;
  }
  const DeviceSpec spec{.scheme = "verbs"};
  Endpoint near(spec);
  Endpoint far(spec);
  near.Allocate(8192);
  far.Allocate(8192);
  const std::string address = FreshAddress("verbs");
  std::string reply;
  bool connected = far.Listen(address).ok();
  std::thread accepting([&] { connected = connected && far.Accept("").ok(); });
  const Status status = near.Connect(address, "", {}, &reply);
  accepting.join();
  if (!status.ok() || !connected) {
    state.SkipWithError("not connected");
    return;
  }
  const auto size = static_cast<size_t>(state.range(0));
  std::atomic<bool> stop{false};
  std::thread answering([&] {
    Player player(&far, near, size);
    for (uint8_t number = 1; !stop.load(); number++) {
      player.Await(number);
      player.Serve(number);
    }
  });
  Player player(&near, far, size);
  uint8_t number = 0;
  std::vector<std::chrono::nanoseconds> round_trips;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    player.Serve(++number);
    player.Await(number);
    round_trips.push_back(std::chrono::steady_clock::now() - begin);
  }
  stop.store(true);
  player.Serve(++number);
  answering.join();
  const auto middle = round_trips.begin() + static_cast<ptrdiff_t>(round_trips.size() / 2);
  std::nth_element(round_trips.begin(), middle, round_trips.end());
  state.counters["p50_us"] = static_cast<double>(middle->count()) / 2000;
}
BENCHMARK(BM_VerbsWriteOneWay)->Arg(64)->Iterations(3000)->UseRealTime();

}  // namespace

}  // namespace nacre::rdma
