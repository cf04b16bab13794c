// Goal: Get of a record costs little more than the one-sided read that brings it.
//
// Method: one database of 1,048,576 keys (20 bytes) with values of 400 bytes over four
// nacre-memnode processes, compacted. BM_Get reads random keys of it. BM_RawRead posts, on a
// connection of its own to the same nodes, one read at a time of as many bytes as a record has, at
// random places of the same tables. Both choose their place by the same generator, in the same
// process.
//
// NACRE_BENCH_POOL names the pool to use; without it four processes are started.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/connect/lane.h"
#include "pool/pool_impl.h"
#include "table/format/internal_key.h"
#include "table/format/record.h"
#include "tests/support/process/memnode_process.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 1 << 20;
constexpr size_t kKeyBytes = 20;
constexpr size_t kValueBytes = 400;
constexpr uint64_t kAlignment = 16;  ///< That places of raw reads have, as records do.

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

/// A key of db_bench: a big-endian number, then '0's.
class Key {
 public:
  Key() { bytes_.fill('0'); }
  Slice Set(uint64_t number) {
    const uint64_t big_endian = __builtin_bswap64(number);
    std::memcpy(bytes_.data(), &big_endian, sizeof(big_endian));
    return {bytes_.data(), bytes_.size()};
  }

 private:
  std::array<char, kKeyBytes> bytes_;
};

/// A range of a node's region that holds records and little else.
struct Range {
  NodeId node;
  uint64_t offset;
  uint64_t bytes;
};

class Bench {
 public:
  Bench() {
    std::string uri;
    if (const char* pool = std::getenv("NACRE_BENCH_POOL"); pool != nullptr) {
      uri = pool;
    } else {
      nodes_ = std::make_unique<MemnodeProcesses>(
          4, MemnodeProcessOptions{.size = "512MiB", .slab_size = "64MiB"});
      uri = nodes_->pool_uri();
    }
    Check(pool::OpenPool(uri, {}, Clock::System(), &pool_));
    Options options;
    options.create_if_missing = true;
    options.pool = pool_;
    Check(DB::Open(options, "get_bench", &db_));
    Fill();
    FindRecords();
  }

  DB* db() { return db_.get(); }
  pool::Fabric* fabric() { return pool_->client()->fabric(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  void Fill() {
    WriteOptions write;
    write.disable_wal = true;
    Random random(1);
    std::string value(kValueBytes, '\0');
    Key key;
    for (uint64_t i = 0; i < kKeys; ++i) {
      for (size_t at = 0; at < kValueBytes; at += sizeof(uint64_t)) {
        const uint64_t word = random.Next();
        std::memcpy(value.data() + at, &word, sizeof(word));
      }
      // An odd factor: each number once, in no order.
      Check(db_->Put(write, key.Set(i * 0x9e3779b1 % kKeys), value));
    }
    Check(db_->CompactRange({}, nullptr, nullptr));
    Check(db_->WaitForCompact());
  }

  /// Parses the lines of "nacre.sstables": "... entries N ... bytes N ... on node N at N".
  void FindRecords() {
    std::string text;
    if (!db_->GetProperty("nacre.sstables", &text)) throw std::runtime_error("no nacre.sstables");
    const auto number = [&text](size_t* at, const char* name) {
      *at = text.find(name, *at);
      if (*at == std::string::npos)
        throw std::runtime_error(std::string("nacre.sstables lacks") + name);
      *at += std::strlen(name);
      return std::strtoull(text.c_str() + *at, nullptr, 10);
    };
    uint64_t entries = 0;
    for (size_t at = 0; text.find(" entries ", at) != std::string::npos;) {
      entries += number(&at, " entries ");
      Range range{};
      range.bytes = number(&at, " bytes ");
      range.node = static_cast<NodeId>(number(&at, " node "));
      range.offset = number(&at, " at ") + kFragmentHeadBytes;
      ranges_.push_back(range);
    }
    if (entries != kKeys) throw std::runtime_error("tables hold other entries than were put");
  }

  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  std::vector<Range> ranges_;
};

/// The first benchmark that runs makes it.
Bench& SharedBench() {
  static Bench bench;
  return bench;
}

void BM_Get(benchmark::State& state) {
  Bench& bench = SharedBench();
  Random random(2);
  Key key;
  PinnableSlice value;
  for (auto _ : state) {
    Check(bench.db()->Get({}, key.Set(random.Uniform(kKeys)), &value));
    benchmark::DoNotOptimize(value.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_RawRead(benchmark::State& state) {
  Bench& bench = SharedBench();
  pool::Fabric* fabric = bench.fabric();
  const auto bytes =
      static_cast<uint32_t>(RecordBytes(kKeyBytes, PackTag(kKeys, ValueType::kValue), kValueBytes));
  std::unique_ptr<rdma::MemoryRegion> landing;
  Check(fabric->context.device->AllocateRegion(bytes, rdma::Access::kLocalOnly, &landing));
  std::unique_ptr<pool::Lane> lane;
  Check(pool::Lane::Create(fabric, 1, &lane));

  struct Place {
    rdma::QueuePair* queue_pair;
    rdma::RemoteBuffer start;
    uint64_t slots;
  };
  std::vector<Place> places;
  for (const Range& range : bench.ranges()) {
    Place place{};
    pool::NodeLink* link = fabric->link(range.node);
    Check(lane->Get(link, &place.queue_pair));
    uint64_t contiguous = 0;
    place.start = link->Translate(range.offset, &contiguous);
    place.slots = (std::min(contiguous, range.bytes) - bytes) / kAlignment;
    places.push_back(place);
  }

  Random random(2);
  rdma::Completion completion;
  for (auto _ : state) {
    // Half of the bits choose the table, half the place in it, without a division.
    const uint64_t number = random.Next();
    const Place& place = places[(number >> 32) * places.size() >> 32];
    const uint64_t slot = (number & UINT32_MAX) * place.slots >> 32;
    const rdma::RemoteBuffer from{place.start.address + slot * kAlignment, place.start.key};
    Check(place.queue_pair->PostRead(1, {landing->data(), bytes, landing.get()}, from,
                                     rdma::kSignaled));
    while (lane->queue()->Poll(&completion, 1) == 0) {
    }
    if (completion.code != rdma::CompletionCode::kSuccess) throw std::runtime_error("read failed");
    benchmark::DoNotOptimize(landing->data()[0]);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(BM_Get);
BENCHMARK(BM_RawRead);

}  // namespace
}  // namespace nacre
