// What a connection of the tcp backend takes: time to set up, memory of the process and of the
// kernel. Both ends are in this process, so each figure is for two of them.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr size_t kPairs = 1000;
constexpr uint32_t kBytes = 4096;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Memory of all TCP sockets of the machine: "TCP: inuse 9 orphan 0 tw 4 alloc 9 mem 1", in pages.
double KernelBytes() {
  std::ifstream file("/proc/net/sockstat");
  for (std::string word; file >> word;) {
    if (word != "TCP:") continue;
    while (file >> word && word != "mem") {
    }
    double pages = 0;
    file >> pages;
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  return 0;
}

/// With tls these are control connections, encrypted.
void BM_TcpConnections(benchmark::State& state) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const bool tls = state.range(0) != 0;
  DeviceOptions options;
  if (tls) options = {.parameters = {{"tls", "1"}}, .secret = "a secret"};
  std::unique_ptr<Device> devices[2];
  std::unique_ptr<CompletionQueue> queues[2];
  std::unique_ptr<MemoryRegion> regions[2];
  for (size_t i = 0; i < 2; i++) {
    Check(OpenDevice("tcp", options, Clock::System(), &devices[i]));
    Check(devices[i]->CreateCompletionQueue(4 * kPairs, &queues[i]));
    Check(devices[i]->AllocateRegion(kBytes, Access::kRemoteAll, &regions[i]));
  }
  std::unique_ptr<Listener> listener;
  Check(devices[1]->Listen("tcp:127.0.0.1:0", &listener));
  const RemoteKey key = regions[1]->remote_key();
  for (auto _ : state) {
    std::vector<std::unique_ptr<QueuePair>> pairs[2];
    const double resident = ResidentBytes();
    const double kernel = KernelBytes();
    std::thread accepting([&] {
      for (size_t i = 0; i < kPairs; i++) {
        std::unique_ptr<IncomingConnection> incoming;
        Check(listener->Accept(kPatience, &incoming));
        Check(incoming->Accept(queues[1].get(), queues[1].get(), "", &pairs[1].emplace_back()));
      }
    });
    for (size_t i = 0; i < kPairs; i++) {
      std::string reply;
      Check(devices[0]->Connect(listener->address(), "", {.control = tls}, queues[0].get(),
                                queues[0].get(), Deadline::After(Clock::System(), kPatience),
                                &reply, &pairs[0].emplace_back()));
    }
    accepting.join();
    state.PauseTiming();
    state.counters["idle_resident"] = (ResidentBytes() - resident) / kPairs;
    state.counters["idle_kernel"] = (KernelBytes() - kernel) / kPairs;
    for (const auto& pair : pairs[0]) {
      for (uint64_t id = 0; id < 2; id++) {
        const LocalBuffer local{regions[0]->data(), kBytes, regions[0].get()};
        const RemoteBuffer remote{key.address, key.key};
        Check(id == 0 ? pair->PostWrite(id, local, remote, kSignaled)
                      : pair->PostRead(id, local, remote, kSignaled));
        Completion completion;
        while (queues[0]->Poll(&completion, 1) == 0) Check(queues[0]->Wait(kPatience));
        if (completion.code != CompletionCode::kSuccess) throw std::runtime_error("failed");
      }
    }
    state.counters["used_resident"] = (ResidentBytes() - resident) / kPairs;
    state.counters["used_kernel"] = (KernelBytes() - kernel) / kPairs;
    pairs[0].clear();
    pairs[1].clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPairs));
}
BENCHMARK(BM_TcpConnections)->ArgName("tls")->Arg(0)->Arg(1)->Iterations(1)->UseRealTime();

}  // namespace

}  // namespace nacre::rdma
