// Goal: space is handed out once, joined again, leased when needed and given back. Method: random
// operations compared with a byte map (FreeRanges) and with an interval set (SpaceAllocator over
// embedded nodes). A device whose keys do not end stands in for a writer that cannot be ended.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "memnode/server_region.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/space/free_ranges.h"
#include "pool/wire/node_stats.h"
#include "rdma/interposed_device.h"
#include "table/format/fragment_checksums.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

TEST(FreeRangesTest, AgreesWithAByteMap) {
  Random random(TestSeed(601));
  constexpr uint64_t kBytes = 300;
  FreeRanges ranges;
  std::vector<bool> free(kBytes, false);
  for (size_t round = 0; round < Scaled(20'000); ++round) {
    const uint64_t start = random.Uniform(kBytes);
    const uint64_t length = 1 + random.Uniform(std::min<uint64_t>(40, kBytes - start));
    const auto at = free.begin() + static_cast<ptrdiff_t>(start);
    const auto end = at + static_cast<ptrdiff_t>(length);
    switch (random.Uniform(3)) {
      case 0: {
        const bool expected = std::find(at, end, true) == end;
        ASSERT_EQ(ranges.Insert(start, length), expected);
        if (expected) std::fill(at, end, true);
        break;
      }
      case 1: {
        const bool expected = std::find(at, end, false) == end;
        ASSERT_EQ(ranges.Remove(start, length), expected);
        if (expected) std::fill(at, end, false);
        break;
      }
      default: {
        // The best fit: no free run is both long enough and shorter than the one taken.
        std::map<uint64_t, uint64_t> runs;  // Length to lowest start.
        for (uint64_t i = 0; i < kBytes;) {
          uint64_t j = i;
          while (j < kBytes && free[j]) ++j;
          if (j > i) runs.emplace(j - i, i);
          i = j + 1;
        }
        const auto best = runs.lower_bound(length);
        const std::optional<uint64_t> taken = ranges.Take(length);
        ASSERT_EQ(taken.has_value(), best != runs.end());
        if (!taken.has_value()) break;
        ASSERT_EQ(*taken, best->second);
        std::fill_n(free.begin() + static_cast<ptrdiff_t>(*taken), length, false);
      }
    }
    ASSERT_EQ(ranges.bytes(), static_cast<uint64_t>(std::count(free.begin(), free.end(), true)));
    uint64_t end_of_last = UINT64_MAX;
    for (const auto& [range_start, range_length] : ranges.ranges()) {
      ASSERT_NE(range_start, end_of_last) << "two ranges touch";
      end_of_last = range_start + range_length;
    }
  }
}

class SpaceTest : public PoolFixture {
 protected:
  uint64_t Leased(NodeId node) {
    NodeStats stats;
    EXPECT_TRUE(pool::GetStats(client_, node, &stats).ok());
    return stats.slabs_leased;
  }
};

/// Live extents, which must never overlap.
class ExtentMap {
 public:
  void Add(const Placement& placement) {
    for (const ExtentAddr& extent : placement.fragments) {
      auto& node = nodes_[extent.start.node];
      const uint64_t start = extent.start.offset;
      const auto next = node.lower_bound(start);
      if (next != node.end()) {
        EXPECT_LE(start + extent.length, next->first);
      }
      if (next != node.begin()) {
        const auto previous = std::prev(next);
        EXPECT_LE(previous->first + previous->second, start);
      }
      node[start] = extent.length;
    }
  }
  void Remove(const Placement& placement) {
    for (const ExtentAddr& extent : placement.fragments) {
      nodes_[extent.start.node].erase(extent.start.offset);
    }
  }
  uint64_t Bytes(NodeId node) const {
    uint64_t bytes = 0;
    const auto it = nodes_.find(node);
    if (it == nodes_.end()) return 0;
    for (const auto& [start, length] : it->second) bytes += length;
    return bytes;
  }

 private:
  std::map<NodeId, std::map<uint64_t, uint64_t>> nodes_;
};

TEST_F(SpaceTest, RandomOperationsAgreeWithAModel) {
  Random random(TestSeed(602));
  OpenPoolAt("embedded:?nodes=3&size=16MiB", 256 << 10);
  CreateDatabase();
  ExtentMap model;
  std::vector<Placement> live;
  for (size_t round = 0; round < Scaled(2'000); ++round) {
    if (live.empty() || random.Uniform(100) < 55) {
      const int copies = 1 + static_cast<int>(random.Uniform(3));
      // Up to three slabs and more.
      const uint64_t bytes = 1 + random.Skewed(20);
      Placement placement;
      const Status s = space_->Reserve(Copies(copies), bytes,
                                       static_cast<NodeId>(random.Uniform(4)), &placement);
      if (!s.ok()) {
        ASSERT_TRUE(s.IsNoSpace()) << s.ToString();
        continue;
      }
      ASSERT_EQ(placement.fragments.size(), static_cast<size_t>(copies));
      std::vector<bool> used(3, false);
      for (const ExtentAddr& extent : placement.fragments) {
        ASSERT_FALSE(used[extent.start.node]);
        used[extent.start.node] = true;
        ASSERT_GE(FragmentCapacity(extent.length, placement.chunk_size), bytes);
        ASSERT_LE(extent.start.offset + extent.length, client_->region_bytes(extent.start.node));
      }
      if (random.OneIn(2)) {
        const uint64_t less = random.Uniform(bytes + 1);
        space_->Trim(&placement, less);
        for (const ExtentAddr& extent : placement.fragments) {
          const uint64_t needed =
              kFragmentHeadBytes + less + FragmentTailBytes(less, placement.chunk_size);
          ASSERT_GE(extent.length, needed);
          ASSERT_LT(extent.length, needed + 4096);
        }
      }
      model.Add(placement);
      live.push_back(placement);
    } else {
      const size_t victim = random.Uniform(live.size());
      space_->Free(live[victim]);
      model.Remove(live[victim]);
      live[victim] = live.back();
      live.pop_back();
    }
    if (random.OneIn(100)) {
      ASSERT_TRUE(space_->ReturnFreeSlabs().ok());
    }
    for (NodeId node = 0; node < 3; ++node) {
      ASSERT_EQ(space_->Usage(node).used_bytes, model.Bytes(node));
      ASSERT_GE(space_->Usage(node).leased_bytes, model.Bytes(node));
    }
  }
  for (const Placement& placement : live) space_->Free(placement);
  ASSERT_TRUE(space_->ReturnFreeSlabs().ok());
  // A lease ahead may still be on its way.
  space_.reset();
  for (NodeId node = 0; node < 3; ++node) EXPECT_LE(Leased(node), 8u);
}

TEST_F(SpaceTest, SlabsComeBackAndFullNodesSayNoSpace) {
  OpenPoolAt("embedded:?nodes=2&size=8MiB", 1 << 20);
  CreateDatabase();
  std::vector<Placement> tables;
  Status s;
  while (true) {
    Placement placement;
    s = space_->Reserve(Copies(1), 700'000, kNoNode, &placement);
    if (!s.ok()) break;
    tables.push_back(placement);
  }
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_GE(tables.size(), 16u);
  EXPECT_EQ(Leased(0), 8u);
  EXPECT_EQ(Leased(1), 8u);
  EXPECT_TRUE(space_->Reserve(Copies(1), 1 << 30, kNoNode, &tables[0]).IsNoSpace());
  EXPECT_TRUE(space_->Reserve(Copies(1), UINT64_MAX, kNoNode, &tables[0]).IsNoSpace());
  EXPECT_TRUE(space_->Reserve(Copies(3), 10, kNoNode, &tables[0]).IsInvalidArgument());
}

TEST_F(SpaceTest, FreedSpaceIsUsedAgainAndReturned) {
  OpenPoolAt("embedded:?nodes=2&size=8MiB", 1 << 20);
  CreateDatabase();
  for (int round = 0; round < 20; ++round) {
    std::vector<Placement> tables;
    for (int i = 0; i < 10; ++i) {
      Placement placement;
      const Status s = space_->Reserve(Copies(1), 1'300'000, kNoNode, &placement);
      ASSERT_TRUE(s.ok()) << round << " " << i << " " << s.ToString();
      tables.push_back(placement);
    }
    for (const Placement& placement : tables) space_->Free(placement);
  }
  space_->ReturnFreeSlabs().IgnoreError();
  EXPECT_EQ(space_->Usage().used_bytes, 0u);
}

TEST_F(SpaceTest, ManyThreads) {
  const uint64_t seed = TestSeed(603);
  OpenPoolAt("embedded:?nodes=3&size=64MiB", 512 << 10);
  CreateDatabase();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed + t);
      std::vector<Placement> live;
      for (size_t i = 0; i < Scaled(300); ++i) {
        Placement placement;
        if (live.size() < 8) {
          const Status s = space_->Reserve(Copies(2), random.Uniform(900'000), kNoNode, &placement);
          if (s.ok()) live.push_back(placement);
          EXPECT_TRUE(s.ok()) << s.ToString();
        } else {
          space_->Free(live.back());
          live.pop_back();
        }
      }
      for (const Placement& placement : live) space_->Free(placement);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(space_->Usage().used_bytes, 0u);
}

TEST_F(SpaceTest, RestoredAfterReopening) {
  OpenPoolAt("embedded:?nodes=2&size=16MiB", 1 << 20);
  CreateDatabase("a");
  std::vector<Placement> tables(6);
  for (Placement& table : tables) {
    ASSERT_TRUE(space_->Reserve(Copies(2), 900'000, kNoNode, &table).ok());
  }
  const std::string bytes = RandomBytes(1, 900'000);
  ASSERT_TRUE(WriteBytes(tables[3], bytes).ok());
  std::vector<std::vector<uint64_t>> slabs;
  store_.reset();
  for (NodeId node = 0; node < 2; ++node) slabs.push_back(space_->Slabs(node));
  space_.reset();
  ASSERT_TRUE(client_->databases()->PublishRoot(database_id_, "root").ok());
  ASSERT_TRUE(client_->databases()->Leave(database_id_).ok());

  DatabaseLease lease;
  ASSERT_TRUE(client_->databases()->Open("a", {}, &lease).ok());
  space_ = std::make_unique<SpaceAllocator>(client_, lease.database_id, slab_bytes_, kChunkBytes);
  store_ = std::make_unique<TableStore>(client_, LocalMemory());
  for (NodeId node = 0; node < 2; ++node) {
    std::vector<ExtentAddr> live;
    for (const ExtentAddr& extent : tables[3].fragments) {
      if (extent.start.node == node) live.push_back(extent);
    }
    ASSERT_TRUE(space_->Restore(node, slabs[node], live).ok());
    EXPECT_TRUE(space_->Restore(node, slabs[node], {}).IsCorruption());
    EXPECT_TRUE(space_->Restore(node, {}, live).IsCorruption());
  }
  EXPECT_TRUE(space_->Restore(7, {}, {}).IsCorruption());
  Placement other;
  ASSERT_TRUE(space_->Reserve(Copies(2), 900'000, kNoNode, &other).ok());
  ASSERT_TRUE(WriteBytes(other, std::string(900'000, 'z')).ok());
  Slice got;
  const auto read = store_->OpenExtent(1, tables[3], bytes.size())->StartRead(0, bytes.size());
  ASSERT_TRUE(read->Await(&got).ok());
  EXPECT_TRUE(got == Slice(bytes));
}

TEST(ServerRegionTest, LeasesAndReturns) {
  Random random(TestSeed(604));
  std::unique_ptr<rdma::Device> device;
  ASSERT_TRUE(rdma::OpenDevice("embedded", {}, Clock::System(), &device).ok());
  std::unique_ptr<ServerRegion> region;
  constexpr uint64_t kSlab = 64 << 10;
  EXPECT_TRUE(
      ServerRegion::Create(device.get(), 1 << 20, 1000, 1, nullptr, &region).IsInvalidArgument());
  EXPECT_TRUE(ServerRegion::Create(device.get(), kSlab - 1, kSlab, 1, nullptr, &region)
                  .IsInvalidArgument());
  ASSERT_TRUE(ServerRegion::Create(device.get(), 32 * kSlab, kSlab, 1, nullptr, &region).ok());
  ASSERT_EQ(region->slab_count(), 32u);
  std::map<uint64_t, uint64_t> owners;  // Slab offset to database.
  for (int round = 0; round < 5000; ++round) {
    const uint64_t database = 1 + random.Uniform(3);
    if (random.OneIn(2)) {
      const auto count = static_cast<uint32_t>(1 + random.Uniform(4));
      const bool contiguous = random.OneIn(2);
      const uint64_t extend_at = owners.empty() ? 0 : owners.begin()->first + kSlab;
      const auto extend_count = static_cast<uint32_t>(random.Uniform(3));
      std::vector<uint64_t> offsets;
      const Status s =
          region->Lease(database, count, contiguous, extend_at, extend_count, &offsets);
      if (!s.ok()) {
        ASSERT_TRUE(s.IsNoSpace()) << s.ToString();
        ASSERT_TRUE(contiguous || 32 - owners.size() < count);
        continue;
      }
      const bool extended = offsets[0] == extend_at && offsets.size() == extend_count;
      ASSERT_TRUE(extended || offsets.size() == count);
      for (size_t i = 0; i < offsets.size(); ++i) {
        ASSERT_TRUE(owners.emplace(offsets[i], database).second);
        if (contiguous && i > 0) {
          ASSERT_EQ(offsets[i], offsets[i - 1] + kSlab);
        }
        ASSERT_TRUE(region->Owns(database, offsets[i], kSlab));
        ASSERT_FALSE(region->Owns(database + 1, offsets[i], 1));
      }
    } else if (random.OneIn(20)) {
      region->ReturnAll(database);
      std::erase_if(owners, [&](const auto& owner) { return owner.second == database; });
    } else if (!owners.empty()) {
      auto it = owners.begin();
      std::advance(it, random.Uniform(owners.size()));
      const std::vector<uint64_t> offsets = {it->first};
      const uint32_t key = region->WriteKey(it->first);
      ASSERT_TRUE(region->Return(it->second + 1, offsets, {key}).IsInvalidArgument());
      ASSERT_TRUE(region->Return(it->second, {it->first + 1}, {key}).IsInvalidArgument());
      ASSERT_TRUE(region->Return(it->second, offsets, {key + 1}).IsInvalidArgument());
      ASSERT_TRUE(region->Return(it->second, offsets, {key}).ok());
      owners.erase(it);
    }
    ASSERT_EQ(region->leased(), owners.size());
  }
  EXPECT_FALSE(region->Owns(1, 0, 10));
  EXPECT_FALSE(region->Owns(1, region->size(), 10));
  EXPECT_FALSE(region->Owns(1, UINT64_MAX, 10));
}

/// Memory whose grants are not over while `writers_stand_still`.
class StubbornRegion final : public rdma::MemoryRegion {
 public:
  StubbornRegion(std::unique_ptr<rdma::MemoryRegion> inner, const bool* writers_stand_still)
      : inner_(std::move(inner)), writers_stand_still_(writers_stand_still) {}

  char* data() const override { return inner_->data(); }
  size_t size() const override { return inner_->size(); }
  rdma::RemoteKey remote_key() const override { return inner_->remote_key(); }
  Status Grant(size_t offset, size_t size, rdma::Access access,
               std::unique_ptr<rdma::RegionGrant>* grant) override {
    std::unique_ptr<rdma::RegionGrant> made;
    NACRE_RETURN_IF_ERROR(inner_->Grant(offset, size, access, &made));
    *grant = std::make_unique<StubbornGrant>(std::move(made), writers_stand_still_);
    return Status::OK();
  }

 private:
  class StubbornGrant final : public rdma::RegionGrant {
   public:
    StubbornGrant(std::unique_ptr<rdma::RegionGrant> inner, const bool* writers_stand_still)
        : inner_(std::move(inner)), writers_stand_still_(writers_stand_still) {}
    rdma::RemoteKey remote_key() const override { return inner_->remote_key(); }
    Status Revoke() override {
      return *writers_stand_still_ ? Status::Unavailable("one stands still") : inner_->Revoke();
    }

   private:
    const std::unique_ptr<rdma::RegionGrant> inner_;
    const bool* const writers_stand_still_;
  };

  const std::unique_ptr<rdma::MemoryRegion> inner_;
  const bool* const writers_stand_still_;
};

class StubbornDevice final : public rdma::InterposedDevice {
 public:
  StubbornDevice(std::unique_ptr<rdma::Device> inner, const bool* writers_stand_still)
      : InterposedDevice(std::move(inner), nullptr, Clock::System()),
        writers_stand_still_(writers_stand_still) {}

  Status AllocateRegion(size_t size, rdma::Access access,
                        std::unique_ptr<rdma::MemoryRegion>* region) override {
    std::unique_ptr<rdma::MemoryRegion> made;
    NACRE_RETURN_IF_ERROR(InterposedDevice::AllocateRegion(size, access, &made));
    *region = std::make_unique<StubbornRegion>(std::move(made), writers_stand_still_);
    return Status::OK();
  }

 private:
  const bool* const writers_stand_still_;
};

TEST(ServerRegionTest, WhatMayStillBeWrittenToIsNobodys) {
  bool writers_stand_still = false;
  std::unique_ptr<rdma::Device> device;
  ASSERT_TRUE(rdma::OpenDevice("embedded", {}, Clock::System(), &device).ok());
  device = std::make_unique<StubbornDevice>(std::move(device), &writers_stand_still);
  std::unique_ptr<ServerRegion> region;
  constexpr uint64_t kSlab = 64 << 10;
  ASSERT_TRUE(
      ServerRegion::Create(device.get(), 4 * kSlab, kSlab, 1, /*log=*/nullptr, &region).ok());
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  ASSERT_TRUE(region->Lease(1, 2, false, 0, 0, &first).ok());
  ASSERT_TRUE(region->Lease(2, 1, false, 0, 0, &second).ok());

  // Slabs that were given back, and those of a database whose owner has gone.
  writers_stand_still = true;
  ASSERT_TRUE(
      region->Return(1, first, {region->WriteKey(first[0]), region->WriteKey(first[1])}).ok());
  region->RevokeAll(2);
  EXPECT_EQ(region->leased(), 3u);
  EXPECT_TRUE(region->GrantAll(2).IsUnavailable());
  std::vector<uint64_t> offsets;
  EXPECT_TRUE(region->Lease(3, 2, false, 0, 0, &offsets).IsNoSpace());
  ASSERT_TRUE(region->Lease(3, 1, true, first[0], 2, &offsets).ok());
  EXPECT_EQ(offsets.size(), 1u);  // Not those two.
  EXPECT_FALSE(region->Owns(1, first[0], 1));

  writers_stand_still = false;
  ASSERT_TRUE(region->GrantAll(2).ok());
  EXPECT_NE(region->WriteKey(second[0]), 0u);
  ASSERT_TRUE(region->Lease(4, 2, false, 0, 0, &offsets).ok());
  EXPECT_EQ(offsets, first);
  EXPECT_EQ(region->leased(), 4u);
}

}  // namespace
}  // namespace nacre::pool
