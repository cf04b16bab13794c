// What a connection of the verbs backend takes: time to set up, memory of the process and of the
// kernel (all that the machine lacks besides). Both ends are in this process, so each figure is for
// two of them. Needs the device that NACRE_TEST_VERBS_HOST names (the guest of tests/rdma_vm), and
// a machine that does nothing else.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/support/rdma/rdma_endpoint.h"

namespace nacre::rdma {

namespace {

constexpr int kPairs = 100;

double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// What the machine could still give: "MemAvailable: 2912345 kB".
double AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  double kib = 0;
  for (std::string word; file >> word;) {
    if (word == "MemAvailable:") file >> kib;
  }
  return kib * 1024;
}

/// Depths as a data connection of a client has them, or a request's.
void BM_VerbsConnections(benchmark::State& state) {
  if (VerbsHost() == nullptr) {
    state.SkipWithError("no RDMA device named by NACRE_TEST_VERBS_HOST");
    return;
  }
  const bool control = state.range(0) != 0;
  const QueueDepths depths = control ? QueueDepths{.send = 4, .receive = 4, .control = true}
                                     : QueueDepths{.send = 256, .receive = 1};
  const DeviceSpec spec{.scheme = "verbs"};
  Endpoint near(spec);
  Endpoint far(spec);
  if (!far.Listen(AnyAddress("verbs")).ok()) state.SkipWithError("cannot listen");
  for (auto _ : state) {
    const double resident = ResidentBytes();
    const double available = AvailableBytes();
    std::thread accepting([&] {
      for (int i = 0; i < kPairs; i++) {
        if (!far.Accept("").ok()) state.SkipWithError("cannot accept");
      }
    });
    std::string reply;
    for (int i = 0; i < kPairs; i++) {
      if (!near.Connect(far.listener->address(), "", depths, &reply).ok()) {
        state.SkipWithError("cannot connect");
      }
    }
    accepting.join();
    state.PauseTiming();
    const double taken = ResidentBytes() - resident;
    state.counters["resident"] = taken / kPairs;
    state.counters["kernel"] = (available - AvailableBytes() - taken) / kPairs;
    near.queue_pairs.clear();
    far.queue_pairs.clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kPairs);
}
BENCHMARK(BM_VerbsConnections)->ArgName("control")->Arg(0)->Arg(1)->Iterations(3)->UseRealTime();

}  // namespace

}  // namespace nacre::rdma
