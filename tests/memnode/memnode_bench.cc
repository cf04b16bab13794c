// What the client half costs over a plain copy: point reads, table writes, requests.

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memnode/memory_node.h"
#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "pool/read/point_reader.h"
#include "pool/space/space_allocator.h"
#include "pool/store/table_store.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

constexpr uint32_t kRecordBytes = 430;
constexpr uint64_t kRegionBytes = uint64_t{1} << 30;

/// One node in this process, reached by `scheme`, with its whole region touched.
struct Bench {
  explicit Bench(const std::string& scheme) {
    rdma::OpenDevice(scheme, {}, Clock::System(), &node_device).IgnoreError();
    MemoryNodeOptions options;
    options.listen = scheme + ":@";
    options.region_bytes = kRegionBytes;
    MemoryNode::Start(options, node_device.get(), Clock::System(), &node).IgnoreError();
    rdma::OpenDevice(scheme, {}, Clock::System(), &device).IgnoreError();
    Uri uri;
    ParseUri(node->address(), &uri).IgnoreError();
    PoolClient::Connect(uri, PoolClientOptions(), device.get(), Clock::System(), &client)
        .IgnoreError();
    DatabaseLease lease;
    client->databases()
        ->Open("bench", {.create_if_missing = true, .error_if_exists = true}, &lease)
        .IgnoreError();
    store = std::make_unique<TableStore>(client.get(), LocalMemory());
    space = std::make_unique<SpaceAllocator>(client.get(), lease.database_id, 64 << 20, 256 << 10);
    space->Reserve(Redundancy(), 15 * (uint64_t{64} << 20), kNoNode, &table).IgnoreError();
    Write(table, 14 * (uint64_t{64} << 20), 256 << 10);
  }
  ~Bench() {
    space.reset();
    store.reset();
    client.reset();
    node.reset();
  }

  void Write(const Placement& placement, uint64_t bytes, size_t chunk_bytes) {
    std::unique_ptr<ExtentWriter> writer;
    store->NewWriter(1, placement, chunk_bytes, &writer).IgnoreError();
    for (uint64_t done = 0; done < bytes; done += chunk_bytes) {
      char* chunk = nullptr;
      writer->NextChunk(&chunk).IgnoreError();
      std::memset(chunk, static_cast<int>(done), chunk_bytes);
      writer->Commit(chunk_bytes).IgnoreError();
    }
    writer->Finish("head").IgnoreError();
  }

  std::unique_ptr<rdma::Device> node_device;
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<MemoryNode> node;
  std::unique_ptr<PoolClient> client;
  std::unique_ptr<TableStore> store;
  std::unique_ptr<SpaceAllocator> space;
  Placement table;
};

const char* SchemeOf(int64_t number) { return number == 0 ? "embedded" : "shm"; }

Bench& BenchOf(int64_t scheme) {
  static std::unique_ptr<Bench> benches[2];
  if (benches[scheme] == nullptr) benches[scheme] = std::make_unique<Bench>(SchemeOf(scheme));
  return *benches[scheme];
}

constexpr uint64_t kOffsets = 1 << 16;
constexpr uint64_t kSpan = 14 * (uint64_t{64} << 20);

void AwaitLoads() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#endif
}

std::vector<uint64_t> RandomOffsets(uint64_t base, uint64_t span) {
  Random random(1);
  std::vector<uint64_t> offsets(kOffsets);
  // The last bits vary as those of records do.
  for (uint64_t& offset : offsets) offset = base + random.Uniform(span - kRecordBytes) / 16 * 16;
  return offsets;
}

/// The same reads by memcpy out of memory of this process. A batch does not begin before the last
/// one has ended, as a caller needs a record before it goes on.
void BM_Memcpy(benchmark::State& state) {
  static std::unique_ptr<rdma::Device> device;
  static std::unique_ptr<rdma::MemoryRegion> region;
  if (region == nullptr) {
    rdma::OpenDevice(SchemeOf(state.range(0)), {}, Clock::System(), &device).IgnoreError();
    device->AllocateRegion(kSpan, rdma::Access::kRemoteAll, &region).IgnoreError();
    std::memset(region->data(), 1, kSpan);
  }
  const std::vector<uint64_t> offsets = RandomOffsets(0, kSpan);
  const auto batch = static_cast<size_t>(state.range(1));
  std::vector<char> to(batch * 448);
  uint64_t at = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < batch; ++i) {
      std::memcpy(to.data() + i * 448, region->data() + offsets[at++ % kOffsets], kRecordBytes);
    }
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
    AwaitLoads();
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

void BM_ReadAll(benchmark::State& state) {
  Bench& bench = BenchOf(state.range(0));
  const std::vector<uint64_t> offsets =
      RandomOffsets(bench.table.fragments[0].start.offset + kFragmentHeadBytes, kSpan);
  std::vector<PointRead> reads(static_cast<size_t>(state.range(1)));
  uint64_t at = 0;
  for (auto _ : state) {
    for (PointRead& read : reads) {
      read.from.node = 0;
      read.from.offset = offsets[at++ % kOffsets];
      read.length = kRecordBytes;
    }
    PointReader reader(bench.client.get()->point_sessions());
    reader.ReadAll(reads);
    benchmark::DoNotOptimize(reads[0].data);
    AwaitLoads();
  }
  if (!reads[0].status.ok()) state.SkipWithError(reads[0].status.ToString().c_str());
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

/// One record again and again: what is left is the cost of the call.
void BM_ReadAllCached(benchmark::State& state) {
  Bench& bench = BenchOf(state.range(0));
  PointRead read;
  read.from = bench.table.fragments[0].start;
  read.length = kRecordBytes;
  for (auto _ : state) {
    PointReader reader(bench.client.get()->point_sessions());
    reader.ReadAll(std::span<PointRead>(&read, 1));
    benchmark::DoNotOptimize(read.data);
  }
}
void BM_MemcpyCached(benchmark::State& state) {
  std::vector<char> from(kRecordBytes);
  std::vector<char> to(kRecordBytes);
  for (auto _ : state) {
    size_t n = kRecordBytes;
    benchmark::DoNotOptimize(n);
    std::memcpy(to.data(), from.data(), n);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
}

void BM_WriteTable(benchmark::State& state) {
  Bench& bench = BenchOf(state.range(0));
  const uint64_t bytes = uint64_t{64} << 20;
  for (auto _ : state) bench.Write(bench.table, bytes, 256 << 10);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void BM_Request(benchmark::State& state) {
  Bench& bench = BenchOf(state.range(0));
  for (auto _ : state) {
    const Status s = bench.client->Ping(0);
    if (!s.ok()) state.SkipWithError(s.ToString().c_str());
  }
}

void BM_ReserveAndFree(benchmark::State& state) {
  Bench& bench = BenchOf(state.range(0));
  for (auto _ : state) {
    Placement placement;
    const Status s = bench.space->Reserve(Redundancy(), 100'000, kNoNode, &placement);
    if (!s.ok()) state.SkipWithError(s.ToString().c_str());
    bench.space->Free(placement);
  }
}

BENCHMARK(BM_MemcpyCached);
BENCHMARK(BM_ReadAllCached)->Arg(0)->Arg(1);
BENCHMARK(BM_Memcpy)->Args({0, 1})->Args({0, 32});
BENCHMARK(BM_ReadAll)->Args({0, 1})->Args({0, 32})->Args({1, 1})->Args({1, 32});
BENCHMARK(BM_WriteTable)->Arg(0)->Arg(1);
BENCHMARK(BM_Request)->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK(BM_ReserveAndFree)->Arg(0);

}  // namespace
}  // namespace nacre::pool
