// Goal: an embedded pool end to end: databases, tables, point reads, and what happens when nodes
// die. Method: nodes in this process; every byte that is read is compared with what was written.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "memnode/memory_node.h"
#include "pool/databases.h"
#include "pool/read/point_reader.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/node_stats.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

class PoolTest : public PoolFixture {
 protected:
  /// Reads random parts of `bytes` by `ReadAll`, from random copies.
  void CheckPointReads(const Placement& placement, const std::string& bytes, uint64_t seed,
                       size_t count) {
    Random random(seed);
    const int copies = static_cast<int>(placement.fragments.size());
    std::vector<PointRead> reads(count);
    std::vector<uint64_t> offsets(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t length = random.Uniform(std::min<uint64_t>(bytes.size(), 700));
      offsets[i] = random.Uniform(bytes.size() - length);
      reads[i].from = store_->Resolve(
          placement, offsets[i], static_cast<int>(random.Uniform(static_cast<uint64_t>(copies))));
      reads[i].length = static_cast<uint32_t>(length);
    }
    PointReader reader(client_->point_sessions());
    reader.ReadAll(reads);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(reads[i].status.ok()) << reads[i].status.ToString();
      ASSERT_EQ(std::memcmp(reads[i].data, bytes.data() + offsets[i], reads[i].length), 0);
    }
  }
  void CheckExtent(const Placement& placement, const std::string& bytes) {
    const std::shared_ptr<Extent> extent = store_->OpenExtent(1, placement, bytes.size());
    const auto read = extent->StartRead(0, bytes.size());
    Slice all;
    const Status s = read->Await(&all);
    ASSERT_TRUE(s.ok()) << s.ToString();
    EXPECT_TRUE(all == Slice(bytes));
  }
};

TEST_F(PoolTest, WritesAndReadsBack) {
  const uint64_t seed = TestSeed(301);
  OpenPoolAt("embedded:?nodes=3&size=16MiB");
  CreateDatabase();
  for (const int copies : {1, 2, 3}) {
    for (const size_t size : {size_t{1}, kChunkBytes, kChunkBytes + 1, size_t{1'500'000}}) {
      Placement placement;
      ASSERT_TRUE(space_->Reserve(Copies(copies), size, kNoNode, &placement).ok());
      const std::string bytes = RandomBytes(seed + size, size);
      ASSERT_TRUE(WriteBytes(placement, bytes).ok());
      CheckExtent(placement, bytes);
      for (const size_t count : {1, 2, 33, 300}) CheckPointReads(placement, bytes, seed, count);
      space_->Free(placement);
    }
  }
}

// The region announced in small pieces, as adapters may need it: requests that straddle are cut.
TEST_F(PoolTest, RegionInPieces) {
  const uint64_t seed = TestSeed(302);
  std::unique_ptr<rdma::Device> device;
  ASSERT_TRUE(rdma::OpenDevice("shm", {}, Clock::System(), &device).ok());
  MemoryNodeOptions options;
  options.listen = "shm:@";
  options.region_bytes = 8 << 20;
  options.slab_bytes = 1 << 20;
  options.piece_bytes = 16 << 10;
  std::unique_ptr<MemoryNode> node;
  ASSERT_TRUE(MemoryNode::Start(options, device.get(), Clock::System(), &node).ok());
  OpenPoolAt(node->address());
  CreateDatabase();
  const std::string bytes = RandomBytes(seed, 1'000'000);
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(1), bytes.size(), kNoNode, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  CheckExtent(placement, bytes);
  for (const size_t count : {1, 2, 200}) CheckPointReads(placement, bytes, seed, count);
  ClosePool();
}

TEST_F(PoolTest, PointReadsOutsideOfThePool) {
  OpenPoolAt("embedded:?nodes=2&size=4MiB");
  std::vector<PointRead> reads(4);
  reads[0].from = {.offset = 0, .node = 7};
  reads[1].from = {.offset = client_->region_bytes(0), .node = 0};
  reads[2].from = {.offset = 0, .node = 1};
  reads[3].from = {.offset = (uint64_t{1} << 48) - 1, .node = 1};
  for (PointRead& read : reads) read.length = 100;
  PointReader reader(client_->point_sessions());
  reader.ReadAll(reads);
  EXPECT_TRUE(reads[0].status.IsInvalidArgument()) << reads[0].status.ToString();
  // The region's size is known once the node was used.
  EXPECT_TRUE(reads[1].status.IsInvalidArgument()) << reads[1].status.ToString();
  EXPECT_TRUE(reads[2].status.ok()) << reads[2].status.ToString();
  EXPECT_TRUE(reads[3].status.IsInvalidArgument()) << reads[3].status.ToString();
  reader.ReadAll(std::span<PointRead>(&reads[3], 1));
  EXPECT_TRUE(reads[3].status.IsInvalidArgument());
  reader.ReadAll({});
}

TEST_F(PoolTest, LargePointReadsGrowTheLandingMemoryAndGiveItBack) {
  const uint64_t seed = TestSeed(303);
  OpenPoolAt("embedded:?nodes=1&size=32MiB", 16 << 20);
  CreateDatabase();
  const std::string bytes = RandomBytes(seed, 12'000'000);
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(1), bytes.size(), kNoNode, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  for (const uint32_t length : {100u, 11'000'000u, 100u, 70'000u, 100u}) {
    PointRead read;
    read.from = store_->Resolve(placement, 5, 0);
    read.length = length;
    PointReader reader(client_->point_sessions());
    reader.ReadAll(std::span<PointRead>(&read, 1));
    ASSERT_TRUE(read.status.ok()) << read.status.ToString();
    EXPECT_EQ(std::memcmp(read.data, bytes.data() + 5, length), 0);
  }
}

// A pipeline: groups of random size are started up to the limit ahead, and finished in order. Some
// groups do not fit the landing memory beside the others, or are more than the queue takes.
TEST_F(PoolTest, PipelinesOfReads) {
  const uint64_t seed = TestSeed(304);
  Random random(seed);
  OpenPoolAt("embedded:?nodes=3&size=16MiB&rtt_us=20");
  CreateDatabase();
  const std::string bytes = RandomBytes(seed, 3'000'000);
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(3), bytes.size(), kNoNode, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  struct Group {
    std::vector<PointRead> reads;
    std::vector<uint64_t> offsets;
  };
  for (size_t round = Scaled(60); round > 0; --round) {
    const uint64_t most_bytes = uint64_t{1} << random.Uniform(18);
    std::vector<Group> groups(random.Uniform(30));
    for (Group& group : groups) {
      const size_t count = random.Skewed(7);  // Up to kMaxReadsAtOnce.
      for (size_t i = 0; i < count; ++i) {
        PointRead& read = group.reads.emplace_back();
        read.length = static_cast<uint32_t>(random.Uniform(most_bytes));
        group.offsets.push_back(random.Uniform(bytes.size() - read.length));
        read.from =
            store_->Resolve(placement, group.offsets.back(), static_cast<int>(random.Uniform(3)));
      }
    }
    auto reader = std::make_unique<PointReader>(client_->point_sessions());
    size_t started = 0;
    for (size_t finished = 0; finished < groups.size(); ++finished) {
      const size_t ahead = 1 + random.Uniform(PointReader::kMaxStarted);
      for (; started < groups.size() && started - finished < ahead; ++started) {
        reader->StartReads(groups[started].reads);
      }
      reader->FinishReads();
      const Group& group = groups[finished];
      for (size_t i = 0; i < group.reads.size(); ++i) {
        const PointRead& read = group.reads[i];
        ASSERT_TRUE(read.status.ok()) << read.status.ToString();
        ASSERT_EQ(std::memcmp(read.data, bytes.data() + group.offsets[i], read.length), 0);
      }
    }
    reader.reset();
    CheckPointReads(placement, bytes, seed + round, 1 + random.Uniform(3));
  }
}

// The node dies with several groups under way: each read has its bytes, or names the node.
TEST_F(PoolTest, PipelineOverADeath) {
  const uint64_t seed = TestSeed(305);
  for (int round = 0; round < 5; ++round) {
    OpenPoolAt("embedded:?nodes=2&size=8MiB&rtt_us=300");
    CreateDatabase();
    const std::string bytes = RandomBytes(seed, 100'000);
    Placement placement;
    ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), kNoNode, &placement).ok());
    ASSERT_TRUE(WriteBytes(placement, bytes).ok());
    const std::string address = client_->node_address(1);
    std::vector<std::vector<PointRead>> groups(PointReader::kMaxStarted);
    for (auto& group : groups) {
      group.resize(8);
      for (size_t i = 0; i < group.size(); ++i) {
        group[i].from = {.offset = 4096 + 8 * i, .node = static_cast<NodeId>(i % 2)};
        group[i].length = 100;
      }
    }
    auto reader = std::make_unique<PointReader>(client_->point_sessions());
    reader->StartReads(groups[0]);  // Connects.
    reader->FinishReads();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (g == static_cast<size_t>(round)) pool_->KillEmbeddedNode(1);
      reader->StartReads(groups[g]);
    }
    for (const auto& group : groups) {
      reader->FinishReads();
      for (const PointRead& read : group) {
        if (read.from.node == 0) {
          EXPECT_TRUE(read.status.ok()) << read.status.ToString();
        } else if (!read.status.ok()) {
          EXPECT_TRUE(read.status.IsUnavailable()) << read.status.ToString();
          EXPECT_NE(read.status.ToString().find(address), std::string::npos);
        }
      }
    }
    EXPECT_FALSE(groups.back()[1].status.ok()) << "it was started after the death";
    EXPECT_TRUE(groups.back()[0].status.ok());
    reader.reset();
    ClosePool();
  }
}

// More threads than queue pairs: they take turns, and no further connection is made.
TEST_F(PoolTest, BoundedQueuePairs) {
  constexpr int kBound = 4;
  const uint64_t seed = TestSeed(306);
  PoolOpenOptions options;
  options.slab_bytes = 1 << 20;
  options.pool.max_queue_pairs_per_node = kBound;
  std::shared_ptr<PoolImpl> pool;
  ASSERT_TRUE(OpenPool("embedded:?nodes=2&size=8MiB", options, Clock::System(), &pool).ok());
  PoolClient* client = pool->client();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (size_t round = Scaled(200); round > 0; --round) {
        // The header of a node's region: the same bytes at every read.
        std::vector<PointRead> reads(1 + random.Uniform(20));
        for (PointRead& read : reads) {
          read.from = {.offset = 0, .node = static_cast<NodeId>(random.Uniform(2))};
          read.length = 8;
        }
        PointReader reader(client->point_sessions());
        if (random.OneIn(2)) {
          reader.ReadAll(reads);
        } else {
          reader.StartReads(reads);
          reader.FinishReads();
        }
        for (const PointRead& read : reads) {
          if (!read.status.ok() || std::memcmp(read.data, "NCregion", 8) != 0) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  NodeStats stats;
  ASSERT_TRUE(pool::GetStats(client, 0, &stats).ok());
  // Beside the lifeline and the channel of this request.
  EXPECT_LE(stats.connections, static_cast<uint64_t>(kBound) + 2);
  for (const int bad : {1, -1, 5000}) {
    options.pool.max_queue_pairs_per_node = bad;
    EXPECT_TRUE(OpenPool("embedded:?nodes=1&size=8MiB", options, Clock::System(), &pool)
                    .IsInvalidArgument());
  }
}

TEST_F(PoolTest, LearnsTheSlabSizeOfItsNodes) {
  std::unique_ptr<rdma::Device> device;
  std::vector<std::unique_ptr<MemoryNode>> nodes;
  ASSERT_TRUE(rdma::OpenDevice("shm", {}, Clock::System(), &device).ok());
  const auto start = [&](uint64_t slab_bytes) {
    MemoryNodeOptions options;
    options.listen = "shm:@";
    options.region_bytes = 32 << 20;
    options.slab_bytes = slab_bytes;
    return MemoryNode::Start(options, device.get(), Clock::System(), &nodes.emplace_back());
  };
  ASSERT_TRUE(start(2 << 20).ok());
  ASSERT_TRUE(start(2 << 20).ok());
  ASSERT_TRUE(start(4 << 20).ok());
  const auto open = [&](size_t one, size_t two, std::shared_ptr<Pool>* pool) {
    const std::string second = nodes[two]->address();
    return Pool::Open(nodes[one]->address() + ',' + second.substr(second.find(':') + 1), pool);
  };
  std::shared_ptr<Pool> pool;
  ASSERT_TRUE(open(0, 1, &pool).ok());
  EXPECT_EQ(std::dynamic_pointer_cast<PoolImpl>(pool)->client()->options().slab_bytes, 2u << 20);
  const Status mixed = open(0, 2, &pool);
  EXPECT_TRUE(mixed.IsInvalidArgument()) << mixed.ToString();
  EXPECT_NE(mixed.ToString().find("different sizes"), std::string::npos) << mixed.ToString();

  ASSERT_TRUE(Pool::Open("embedded:?nodes=2&size=32MiB&slab_size=4MiB", &pool).ok());
  EXPECT_EQ(std::dynamic_pointer_cast<PoolImpl>(pool)->client()->options().slab_bytes, 4u << 20);
  for (const char* bad : {"1", "0", "1536KiB", "many"}) {
    EXPECT_TRUE(
        Pool::Open(std::string("embedded:?size=32MiB&slab_size=") + bad, &pool).IsInvalidArgument())
        << bad;
  }
}

TEST_F(PoolTest, MalformedPlacementsAreErrors) {
  OpenPoolAt("embedded:?nodes=2&size=4MiB");
  CreateDatabase();
  const auto placement_at = [](NodeId node, uint64_t offset, uint64_t length) {
    Placement placement;
    placement.redundancy = Copies(1);
    placement.chunk_size = kChunkBytes;
    ExtentAddr& extent = placement.fragments.emplace_back();
    extent.start.node = node;
    extent.start.offset = offset;
    extent.length = length;
    return placement;
  };
  const Placement bad[] = {Placement(), placement_at(9, 0, 1 << 20),
                           placement_at(0, uint64_t{1} << 40, 1 << 20),
                           placement_at(0, (4 << 20) - 100, 1 << 20), placement_at(0, 0, 100)};
  for (const Placement& placement : bad) {
    Slice bytes;
    EXPECT_TRUE(
        store_->OpenExtent(1, placement, 5000)->StartRead(0, 10)->Await(&bytes).IsCorruption());
    std::unique_ptr<ExtentWriter> writer;
    EXPECT_TRUE(store_->NewWriter(1, placement, kChunkBytes, &writer).IsInvalidArgument());
  }
  Slice bytes;
  const auto extent = store_->OpenExtent(1, placement_at(0, 0, 8192), 4096);
  EXPECT_TRUE(extent->StartRead(4000, 97)->Await(&bytes).IsCorruption());
}

TEST_F(PoolTest, WriterRefusesMoreThanWasReserved) {
  OpenPoolAt("embedded:?nodes=1&size=4MiB");
  CreateDatabase();
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(1), 100'000, kNoNode, &placement).ok());
  const Status s = WriteBytes(placement, std::string(200'000, 'x'));
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  // The store is as good as before.
  EXPECT_TRUE(WriteBytes(placement, std::string(100'000, 'x')).ok());
}

TEST_F(PoolTest, ReadsMayBeDroppedAndMovedBetweenThreads) {
  const uint64_t seed = TestSeed(304);
  OpenPoolAt("embedded:?nodes=2&size=16MiB");
  CreateDatabase();
  const std::string bytes = RandomBytes(seed, 1'000'000);
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), kNoNode, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  const std::shared_ptr<Extent> extent = store_->OpenExtent(1, placement, bytes.size());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (size_t i = 0; i < Scaled(300); ++i) {
        const uint64_t offset = random.Uniform(bytes.size() - 1);
        const size_t n = 1 + random.Uniform(bytes.size() - offset - 1);
        std::unique_ptr<PendingRead> read = extent->StartRead(offset, n);
        if (random.OneIn(3)) continue;
        Slice got;
        if (!read->Await(&got).ok() || got.size() != n ||
            std::memcmp(got.data(), bytes.data() + offset, n) != 0) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);

  std::unique_ptr<PendingRead> read = extent->StartRead(10, 1000);
  std::thread([&] {
    Slice got;
    EXPECT_TRUE(read->Await(&got).ok());
    EXPECT_TRUE(got == Slice(bytes.data() + 10, 1000));
    read.reset();
  }).join();
}

TEST_F(PoolTest, DeadNodeIsNamedAndItsCopiesAreElsewhere) {
  const uint64_t seed = TestSeed(305);
  OpenPoolAt("embedded:?nodes=3&size=16MiB");
  CreateDatabase();
  const std::string bytes = RandomBytes(seed, 300'000);
  Placement one;
  Placement two;
  ASSERT_TRUE(space_->Reserve(Copies(1), bytes.size(), 1, &one).ok());
  ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), 1, &two).ok());
  ASSERT_EQ(one.fragments[0].start.node, 1);
  ASSERT_EQ(two.fragments[0].start.node, 1);
  ASSERT_TRUE(WriteBytes(one, bytes).ok());
  ASSERT_TRUE(WriteBytes(two, bytes).ok());
  CheckPointReads(two, bytes, seed, 50);

  pool_->KillEmbeddedNode(1);
  const std::string address = client_->node_address(1);
  PointRead read;
  read.from = one.fragments[0].start;
  read.length = 100;
  PointReader reader(client_->point_sessions());
  reader.ReadAll(std::span<PointRead>(&read, 1));
  EXPECT_TRUE(read.status.IsUnavailable()) << read.status.ToString();
  EXPECT_NE(read.status.ToString().find(address), std::string::npos) << read.status.ToString();
  Slice got;
  const Status s = store_->OpenExtent(1, one, bytes.size())->StartRead(0, 100)->Await(&got);
  EXPECT_TRUE(s.IsUnavailable()) << s.ToString();
  EXPECT_NE(s.ToString().find(address), std::string::npos) << s.ToString();
  EXPECT_FALSE(WriteBytes(one, bytes).ok());
  EXPECT_TRUE(client_->Ping(1).IsUnavailable());

  EXPECT_FALSE(client_->alive(1));
  EXPECT_FALSE(store_->Resolve(one, 0, 0).valid());
  EXPECT_FALSE(store_->Resolve(two, 0, 0).valid());
  EXPECT_EQ(store_->Resolve(two, 0, 1).node, two.fragments[1].start.node);
  CheckExtent(two, bytes);
  Placement more;
  ASSERT_TRUE(space_->Reserve(Copies(2), 1000, 1, &more).ok());
  const Status too_few = space_->Reserve(Copies(3), 1000, kNoNode, &more);
  EXPECT_TRUE(too_few.IsUnavailable());
  EXPECT_NE(too_few.ToString().find(address), std::string::npos) << too_few.ToString();
  space_->Free(one);
  EXPECT_EQ(space_->Usage(1).used_bytes, 0u);
}

TEST_F(PoolTest, DatabasesOpenAndClose) {
  OpenPoolAt("embedded:?nodes=2&size=4MiB");
  DatabaseLease lease;
  EXPECT_TRUE(client_->databases()->Open("a", {}, &lease).IsInvalidArgument());
  EXPECT_TRUE(
      client_->databases()->Open("", {.create_if_missing = true}, &lease).IsInvalidArgument());
  ASSERT_TRUE(client_->databases()
                  ->Open("a", {.create_if_missing = true, .error_if_exists = true}, &lease)
                  .ok());
  EXPECT_FALSE(lease.existed);
  const uint64_t id = lease.database_id;
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(pool::LeaseSlabs(client_, 0, id, {.count = 2, .contiguous = true}, &slabs).ok());
  EXPECT_TRUE(client_->databases()->Open("a", {.create_if_missing = true}, &lease).IsBusy());
  EXPECT_TRUE(pool::LeaseSlabs(client_, 0, id + 1, {.count = 1}, &slabs).IsInvalidArgument());

  // A manifest far larger than a request or a reply.
  const std::string manifest = RandomBytes(1, 3'000'000);
  ASSERT_TRUE(client_->databases()->PublishRoot(id, manifest).ok());
  ASSERT_TRUE(client_->databases()->Leave(id).ok());
  EXPECT_TRUE(client_->databases()->Leave(id).IsInvalidArgument());
  EXPECT_TRUE(client_->databases()->PublishRoot(id, manifest).IsInvalidArgument());
  EXPECT_TRUE(pool::LeaseSlabs(client_, 0, id, {.count = 1}, &slabs).IsInvalidArgument());
  EXPECT_TRUE(client_->databases()
                  ->Open("a", {.create_if_missing = true, .error_if_exists = true}, &lease)
                  .IsInvalidArgument());
  ASSERT_TRUE(client_->databases()->Open("a", {}, &lease).ok());
  EXPECT_TRUE(lease.existed);
  EXPECT_EQ(lease.database_id, id);
  EXPECT_EQ(lease.root, manifest);
  NodeStats stats;
  ASSERT_TRUE(pool::GetStats(client_, 0, &stats).ok());
  EXPECT_EQ(stats.slabs_leased, 2u);
  EXPECT_EQ(stats.databases, 1u);
}

TEST_F(PoolTest, BadPools) {
  std::shared_ptr<Pool> pool;
  const struct {
    const char* uri;
    const char* named;
  } cases[] = {
      {"", "''"},
      {"embedded", "embedded"},
      {"ftp:/a", "ftp"},
      {"shm:", "shm:"},
      {"embedded:?nodes=0", "'0'"},
      {"embedded:?nodes=65", "'65'"},
      {"embedded:?nodes=x", "'x'"},
      {"embedded:?size=0", "0 B"},
      {"embedded:?size=1KiB", "1.0 KiB"},
      {"embedded:?size=lots", "lots"},
      {"embedded:?colour=red", "colour"},
      {"embedded:/x?nodes=1", "/x"},
      {"shm:/nowhere/n.sock?colour=red", "colour"},
  };
  for (const auto& bad : cases) {
    const Status s = Pool::Open(bad.uri, &pool);
    EXPECT_FALSE(s.ok()) << bad.uri;
    EXPECT_FALSE(s.IsUnavailable()) << s.ToString();
    EXPECT_NE(s.ToString().find(bad.named), std::string::npos) << s.ToString();
  }
  const Status absent = Pool::Open("shm:/nowhere/n.sock", &pool);
  EXPECT_TRUE(absent.IsUnavailable()) << absent.ToString();
  EXPECT_NE(absent.ToString().find("/nowhere/n.sock"), std::string::npos);
  EXPECT_TRUE(Pool::Open("embedded:?nodes=2&size=1TiB", &pool).IsNoSpace());
}

}  // namespace
}  // namespace nacre::pool
