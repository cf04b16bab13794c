// What the shm backend costs. BM_Read and BM_Write beside BM_Memcpy: the same bytes at the same
// random addresses, copied by the transport (posted, signalled and polled one by one) or directly.
// The first argument is the size of a request, the second that of the memory it falls into: 1 MiB
// stays in the cache, 256 MiB does not.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rdma/transport.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

constexpr size_t kNearBytes = 8 << 20;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

struct Side {
  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> pair;

  LocalBuffer Buffer(size_t offset, size_t size) const {
    return {region->data() + offset, static_cast<uint32_t>(size), region.get()};
  }
  /// Busy-polls, as a latency-bound caller does.
  Completion Next() const {
    Completion completion;
    while (queue->Poll(&completion, 1) == 0) {
    }
    if (completion.code != CompletionCode::kSuccess) throw std::runtime_error("failed");
    return completion;
  }
};

/// Two devices of this process, connected.
struct Link {
  explicit Link(size_t far_bytes, const std::string& scheme = "shm",
                const std::map<std::string, std::string>& parameters = {}) {
    for (Side* side : {&near, &far}) {
      const bool is_near = side == &near;
      DeviceOptions options;
      if (is_near) options.parameters = parameters;
      Check(OpenDevice(scheme, options, Clock::System(), &side->device));
      Check(side->device->CreateCompletionQueue(1024, &side->queue));
      Check(side->device->AllocateRegion(is_near ? kNearBytes : far_bytes, Access::kRemoteAll,
                                         &side->region));
      std::memset(side->region->data(), 1, side->region->size());
    }
    std::unique_ptr<Listener> listener;
    Check(far.device->Listen("@", &listener));
    std::thread accepting([&] {
      std::unique_ptr<IncomingConnection> incoming;
      Check(listener->Accept(std::chrono::seconds(10), &incoming));
      Check(incoming->Accept(far.queue.get(), far.queue.get(), "", &far.pair));
    });
    std::string reply;
    Check(near.device->Connect(listener->address(), "", {}, near.queue.get(), near.queue.get(),
                               Deadline::After(Clock::System(), std::chrono::seconds(10)), &reply,
                               &near.pair));
    accepting.join();
  }

  RemoteBuffer Far(size_t offset) const {
    const RemoteKey key = far.region->remote_key();
    return {key.address + offset, key.key};
  }

  Side near;
  Side far;
};

/// Multiples of 8 at which a request of that size fits.
class Offsets {
 public:
  explicit Offsets(const benchmark::State& state)
      : bound_(static_cast<uint64_t>(state.range(1) - state.range(0)) / 8 + 1), random_(42) {}
  size_t Next() { return random_.Uniform(bound_) * 8; }

 private:
  const uint64_t bound_;
  Random random_;
};

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_MemcpyFrom(benchmark::State& state) {
  Link link(static_cast<size_t>(state.range(1)));
  const auto size = static_cast<size_t>(state.range(0));
  Offsets offsets(state);
  char* const to = link.near.region->data();
  for (auto _ : state) {
    std::memcpy(to, link.far.region->data() + offsets.Next(), size);
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_Read(benchmark::State& state) {
  Link link(static_cast<size_t>(state.range(1)));
  const auto size = static_cast<size_t>(state.range(0));
  Offsets offsets(state);
  const RemoteBuffer base = link.Far(0);
  const LocalBuffer to = link.near.Buffer(0, size);
  for (auto _ : state) {
    Check(link.near.pair->PostRead(1, to, {base.address + offsets.Next(), base.key}, kSignaled));
    link.near.Next();
  }
  SetBytes(state);
}

/// 16 reads a batch, each to a buffer of its own: what kMore gains.
void BM_ReadBatch(benchmark::State& state) {
  constexpr size_t kBatch = 16;
  Link link(static_cast<size_t>(state.range(1)));
  const auto size = static_cast<size_t>(state.range(0));
  Offsets offsets(state);
  const RemoteBuffer base = link.Far(0);
  Completion completions[kBatch];
  while (state.KeepRunningBatch(kBatch)) {
    for (size_t i = 0; i < kBatch; i++) {
      const int more = i + 1 < kBatch ? int{kMore} : 0;
      Check(link.near.pair->PostRead(i, link.near.Buffer(i * (size + 64), size),
                                     {base.address + offsets.Next(), base.key},
                                     static_cast<uint8_t>(kSignaled | more)));
    }
    if (link.near.queue->Poll(completions, kBatch) != kBatch) throw std::runtime_error("poll");
  }
  SetBytes(state);
}

void BM_MemcpyTo(benchmark::State& state) {
  Link link(static_cast<size_t>(state.range(1)));
  const auto size = static_cast<size_t>(state.range(0));
  Offsets offsets(state);
  const char* const from = link.near.region->data();
  for (auto _ : state) {
    std::memcpy(link.far.region->data() + offsets.Next(), from, size);
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_Write(benchmark::State& state) {
  Link link(static_cast<size_t>(state.range(1)));
  const auto size = static_cast<size_t>(state.range(0));
  Offsets offsets(state);
  const RemoteBuffer base = link.Far(0);
  const LocalBuffer from = link.near.Buffer(0, size);
  for (auto _ : state) {
    Check(link.near.pair->PostWrite(1, from, {base.address + offsets.Next(), base.key}, kSignaled));
    link.near.Next();
  }
  SetBytes(state);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t memory : {1 << 20, 256 << 20}) {
    for (int64_t size = 8; size <= 256 << 10; size = size == 8 ? 64 : size * 4) {
      benchmark->Args({size, memory});
    }
  }
}
BENCHMARK(BM_MemcpyFrom)->Apply(Sizes);
BENCHMARK(BM_Read)->Apply(Sizes);
BENCHMARK(BM_ReadBatch)->Args({64, 256 << 20})->Args({256, 256 << 20})->Args({1024, 256 << 20});
BENCHMARK(BM_MemcpyTo)->Apply(Sizes);
BENCHMARK(BM_Write)->Apply(Sizes);

/// An embedded device's memory has huge pages where shared memory has none.
void BM_ReadEmbedded(benchmark::State& state) {
  Link link(static_cast<size_t>(state.range(1)), "embedded");
  Offsets offsets(state);
  const RemoteBuffer base = link.Far(0);
  const LocalBuffer to = link.near.Buffer(0, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    Check(link.near.pair->PostRead(1, to, {base.address + offsets.Next(), base.key}, kSignaled));
    link.near.Next();
  }
  SetBytes(state);
}
BENCHMARK(BM_ReadEmbedded)->Args({64, 256 << 20})->Args({1024, 256 << 20});

void BM_CompareSwap(benchmark::State& state) {
  Link link(1 << 20);
  const RemoteBuffer target = link.Far(64);
  uint64_t value = 0x0101010101010101;
  for (auto _ : state) {
    Check(link.near.pair->PostCompareSwap(1, link.near.Buffer(0, 8), target, value, value + 1,
                                          kSignaled));
    link.near.Next();
    value++;
  }
}
BENCHMARK(BM_CompareSwap);

void BM_IdlePoll(benchmark::State& state) {
  Link link(1 << 20);
  Completion completion;
  for (auto _ : state) benchmark::DoNotOptimize(link.near.queue->Poll(&completion, 1));
}
BENCHMARK(BM_IdlePoll);

/// A read under the nic decorator, without latency: what the decorator itself costs.
void BM_ReadDecorated(benchmark::State& state) {
  Link link(1 << 20, "shm", {{"gbps", "1000000"}});
  const RemoteBuffer base = link.Far(0);
  for (auto _ : state) {
    Check(link.near.pair->PostRead(1, link.near.Buffer(0, 64), base, kSignaled));
    link.near.Next();
  }
}
BENCHMARK(BM_ReadDecorated);

/// 64 bytes there and back between two threads. Argument: both poll busily (0), or sleep until
/// there is something (1).
void BM_SendRoundTrip(benchmark::State& state) {
  Link link(1 << 20);
  const bool sleep = state.range(0) != 0;
  constexpr uint64_t kLast = 99;
  const auto receive = [sleep](const Side& side) {
    Completion completion;
    while (true) {
      if (side.queue->Poll(&completion, 1) == 1) {
        if (completion.opcode == Opcode::kRecv) return;
      } else if (sleep) {
        // Polls again whatever the reason.
        side.queue->Wait(std::chrono::seconds(1)).IgnoreError();
      }
    }
  };
  const auto send = [](const Side& side) {
    Check(side.pair->PostSend(1, side.Buffer(0, 64), kSignaled));
  };
  const auto post_receive = [](const Side& side) {
    Check(side.pair->PostRecv(2, side.Buffer(4096, 64)));
  };
  post_receive(link.far);
  std::thread echo([&] {
    while (true) {
      receive(link.far);
      const bool last = link.far.region->data()[4096] == static_cast<char>(kLast);
      post_receive(link.far);
      send(link.far);
      if (last) return;
    }
  });
  for (auto _ : state) {
    post_receive(link.near);
    send(link.near);
    receive(link.near);
  }
  link.near.region->data()[0] = static_cast<char>(kLast);
  post_receive(link.near);
  send(link.near);
  receive(link.near);
  echo.join();
}
BENCHMARK(BM_SendRoundTrip)->Arg(0)->Arg(1)->UseRealTime();

/// A connection made, with the proofs of a shared secret, and ended.
void BM_Connect(benchmark::State& state, const char* scheme, const char* address) {
  DeviceOptions options;
  options.secret = "the pool's secret";
  Side near;
  Side far;
  for (Side* side : {&near, &far}) {
    Check(OpenDevice(scheme, options, Clock::System(), &side->device));
    Check(side->device->CreateCompletionQueue(1024, &side->queue));
    Check(side->device->AllocateRegion(4096, Access::kRemoteAll, &side->region));
  }
  std::unique_ptr<Listener> listener;
  Check(far.device->Listen(address, &listener));
  std::thread accepting([&] {
    std::unique_ptr<IncomingConnection> incoming;
    std::unique_ptr<QueuePair> pair;
    while (listener->Accept(std::chrono::hours(1), &incoming).ok()) {
      pair.reset();
      Check(incoming->Accept(far.queue.get(), far.queue.get(), "", &pair));
    }
  });
  for (auto _ : state) {
    std::string reply;
    Check(near.device->Connect(listener->address(), "", {}, near.queue.get(), near.queue.get(),
                               Deadline::After(Clock::System(), std::chrono::seconds(10)), &reply,
                               &near.pair));
    near.pair.reset();
  }
  listener->Close();
  accepting.join();
}
BENCHMARK_CAPTURE(BM_Connect, shm, "shm", "@")->UseRealTime();
BENCHMARK_CAPTURE(BM_Connect, embedded, "embedded", "@")->UseRealTime();

}  // namespace

}  // namespace nacre::rdma
