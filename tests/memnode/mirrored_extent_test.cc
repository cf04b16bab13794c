// Goal: what MirroredExtent says is written is on every replica, bytes and order as posted; a node
// that fails is named and ends it, with the buffers free. Method: extents on several embedded
// nodes, read back replica by replica; nodes that are killed, slabs that are returned.

#include "pool/store/mirrored_extent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pool/read/pool_reader.h"
#include "pool/space/slab_leases.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

class MirroredExtentTest : public PoolFixture {
 protected:
  static constexpr uint64_t kBufferBytes = 4 << 20;

  void Open(int nodes, const std::string& parameters = "") {
    OpenPoolAt("embedded:?size=32MiB&nodes=" + std::to_string(nodes) + parameters);
    CreateDatabase();
    ASSERT_TRUE(IsOk(AllocateBuffer(client_->fabric(), kBufferBytes, &buffer_)));
  }
  void OpenExtent(int replicas, uint64_t bytes) {
    Placement placement;
    ASSERT_TRUE(IsOk(space_->Reserve(Copies(replicas), bytes, kNoNode, &placement)));
    extents_ = placement.fragments;
    ASSERT_TRUE(IsOk(MirroredExtent::Open(client_->fabric(), extents_, &mirrored_)));
  }
  Deadline Soon() const { return Deadline::After(Clock::System(), std::chrono::seconds(20)); }
  rdma::LocalBuffer Fill(size_t at, const std::string& bytes) {
    std::memcpy(buffer_->data() + at, bytes.data(), bytes.size());
    return {.data = buffer_->data() + at,
            .size = static_cast<uint32_t>(bytes.size()),
            .region = buffer_.get()};
  }
  Status Read(const ExtentAddr& replica, uint64_t offset, size_t n, char* to) {
    std::unique_ptr<PoolReader> reader;
    NACRE_RETURN_IF_ERROR(PoolReader::Open(client_->fabric(), &reader));
    return reader->Read(replica, offset, n, to);
  }
  void ExpectOnAll(uint64_t offset, const std::string& bytes) {
    for (const ExtentAddr& replica : extents_) {
      std::string found(bytes.size(), '\0');
      ASSERT_TRUE(IsOk(Read(replica, offset, found.size(), found.data())));
      EXPECT_TRUE(found == bytes) << bytes.size() << " bytes at " << offset << " differ on node "
                                  << replica.start.node;
    }
  }
  ~MirroredExtentTest() override {
    mirrored_.reset();
    buffer_.reset();
  }

  std::unique_ptr<rdma::MemoryRegion> buffer_;
  std::vector<ExtentAddr> extents_;
  std::unique_ptr<MirroredExtent> mirrored_;
};

TEST_F(MirroredExtentTest, WritesAreOnAllReplicasInTheOrderOfTickets) {
  const uint64_t seed = TestSeed(401);
  Random random(seed);
  for (const char* parameters : {"", "&rtt_us=2"}) {
    for (const int replicas : {1, 2, 3}) {
      Open(4, parameters);
      OpenExtent(replicas, 256 << 10);
      std::string model = RandomBytes(seed, 128 << 10);
      uint64_t ticket = 0;
      ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(1 << 20, model), &ticket)));
      for (int round = 0; round < 60; ++round) {
        const uint64_t offset = random.Uniform(64 << 10);
        const std::string bytes = RandomBytes(random.Next(), 1 + random.Uniform(3000));
        uint64_t next = 0;
        // A buffer of its own for each write: they overlap in time.
        ASSERT_TRUE(
            IsOk(mirrored_->Write(offset, Fill(static_cast<size_t>(round) * 4096, bytes), &next)));
        EXPECT_EQ(next, ticket + 1);
        ticket = next;
        model.replace(offset, bytes.size(), bytes);
        if (round % 7 != 0) continue;
        ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
        EXPECT_EQ(mirrored_->Poll(), ticket);
      }
      ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
      ExpectOnAll(0, model);
      mirrored_.reset();
      buffer_.reset();
      ClosePool();
    }
  }
}

TEST_F(MirroredExtentTest, WritesAndReadsGoOverTheEndsOfSlabs) {
  Open(3);
  OpenExtent(3, 5 << 20);
  const std::string bytes = RandomBytes(TestSeed(402), 4 << 20);
  uint64_t ticket = 0;
  ASSERT_TRUE(IsOk(mirrored_->Write(300'000, Fill(0, bytes), &ticket)));
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  ExpectOnAll(300'000, bytes);
  ExpectOnAll(1'300'000, bytes.substr(1'000'000, 77));
}

TEST_F(MirroredExtentTest, MoreWritesThanRequestsFit) {
  Open(2, "&rtt_us=20");
  OpenExtent(2, 1 << 20);
  const std::string bytes = RandomBytes(TestSeed(403), 8);
  uint64_t ticket = 0;
  for (uint64_t i = 0; i < 3 * Lane::kDepth; ++i) {
    ASSERT_TRUE(IsOk(mirrored_->Write(8 * i, Fill(0, bytes), &ticket)));
  }
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  ExpectOnAll(uint64_t{8} * (3 * Lane::kDepth - 1), bytes);
}

TEST_F(MirroredExtentTest, AWriteOutsideIsRefusedAndNothingElseHappens) {
  Open(2);
  OpenExtent(2, 64 << 10);
  uint64_t ticket = 0;
  const rdma::LocalBuffer from = Fill(0, "12345678");
  EXPECT_TRUE(mirrored_->Write(mirrored_->length() - 7, from, &ticket).IsInvalidArgument());
  EXPECT_TRUE(mirrored_->Write(UINT64_MAX - 3, from, &ticket).IsInvalidArgument());
  EXPECT_TRUE(IsOk(mirrored_->failure()));
  ASSERT_TRUE(IsOk(mirrored_->Write(mirrored_->length() - 8, from, &ticket)));
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  char byte = 0;
  EXPECT_TRUE(Read(extents_[0], extents_[0].length, 1, &byte).IsInvalidArgument());
}

TEST_F(MirroredExtentTest, ALostNodeIsNamedAndEndsIt) {
  Open(3);
  OpenExtent(3, 64 << 10);
  uint64_t ticket = 0;
  ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(0, "before"), &ticket)));
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  const NodeId victim = extents_[1].start.node;
  pool_->KillEmbeddedNode(victim);
  uint64_t later = 0;
  Status s = mirrored_->Write(8, Fill(8, "after"), &later);
  if (s.ok()) s = mirrored_->Await(later, Soon());
  EXPECT_TRUE(IsFailure(s, Status::Code::kUnavailable, client_->node_address(victim)));
  EXPECT_EQ(mirrored_->failed_nodes(), std::vector<NodeId>{victim});
  EXPECT_EQ(mirrored_->Poll(), ticket);
  EXPECT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  EXPECT_EQ(mirrored_->Write(16, Fill(16, "later"), &later), s);
  EXPECT_EQ(mirrored_->TakeLane(), nullptr);
  char bytes[6];
  EXPECT_TRUE(IsFailure(Read(extents_[1], 0, 6, bytes), Status::Code::kUnavailable,
                        client_->node_address(victim)));
  ASSERT_TRUE(IsOk(Read(extents_[0], 0, 6, bytes)));
  EXPECT_EQ(std::string(bytes, 6), "before");
  std::unique_ptr<MirroredExtent> again;
  EXPECT_TRUE(IsFailure(MirroredExtent::Open(client_->fabric(), extents_, &again),
                        Status::Code::kUnavailable, client_->node_address(victim)));
}

TEST_F(MirroredExtentTest, ASlabThatWasReturnedIsNotWritten) {
  Open(1);
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(
      IsOk(pool::LeaseSlabs(client_, 0, database_id_, {.count = 1, .contiguous = true}, &slabs)));
  ExtentAddr extent;
  extent.start.node = 0;
  extent.start.offset = slabs[0] & ((uint64_t{1} << 48) - 1);
  extent.length = slab_bytes_;
  for (const bool known : {true, false}) {
    // With the key in hand, the node refuses; without it, nothing is posted.
    ASSERT_TRUE(IsOk(MirroredExtent::Open(client_->fabric(), {extent}, &mirrored_)));
    uint64_t ticket = 0;
    if (known) {
      ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(0, "mine"), &ticket)));
      ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
      ASSERT_TRUE(IsOk(pool::ReturnSlabs(client_, 0, database_id_, slabs)));
    }
    Status s = mirrored_->Write(0, Fill(0, "gone"), &ticket);
    if (s.ok()) s = mirrored_->Await(ticket, Soon());
    EXPECT_TRUE(IsFailure(s, Status::Code::kInvalidArgument, client_->node_address(0)));
    EXPECT_TRUE(client_->alive(0));
  }
}

TEST_F(MirroredExtentTest, ALaneGoesOnToTheNextExtent) {
  Open(3);
  OpenExtent(2, 64 << 10);
  uint64_t ticket = 0;
  ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(0, "first"), &ticket)));
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  std::unique_ptr<Lane> lane = mirrored_->TakeLane();
  ASSERT_NE(lane, nullptr);
  EXPECT_TRUE(mirrored_->Write(8, Fill(0, "more"), &ticket).IsInvalidArgument());
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Copies(3), 64 << 10, kNoNode, &placement)));
  extents_ = placement.fragments;
  ASSERT_TRUE(IsOk(MirroredExtent::Open(client_->fabric(), extents_, &lane, &mirrored_)));
  EXPECT_EQ(lane, nullptr);
  ASSERT_TRUE(IsOk(mirrored_->Write(64, Fill(0, "second"), &ticket)));
  ASSERT_TRUE(IsOk(mirrored_->Await(ticket, Soon())));
  ExpectOnAll(64, "second");
}

TEST_F(MirroredExtentTest, OneThatAlwaysTakesLongIsSlowBesideThoseThatTakeNoTime) {
  const MemnodeProcesses nodes(4, {}, {"tcp", "shm", "shm", "shm"});
  OpenPoolAt(nodes.pool_uri() + "?tcp.rtt_us=10000");
  CreateDatabase();
  ASSERT_TRUE(IsOk(AllocateBuffer(client_->fabric(), kBufferBytes, &buffer_)));
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Copies(3), 64 << 10, /*preferred=*/0, &placement)));
  extents_ = placement.fragments;
  ASSERT_EQ(extents_[0].start.node, 0u);
  ASSERT_TRUE(IsOk(MirroredExtent::Open(client_->fabric(), extents_, &mirrored_)));
  Status status;
  int writes = 0;
  for (; writes < 100 && status.ok(); ++writes) {
    uint64_t ticket = 0;
    ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(0, "bytes"), &ticket)));
    status = mirrored_->Await(ticket, Soon());
  }
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_NE(status.ToString().find("slow"), std::string::npos) << status.ToString();
  EXPECT_TRUE(client_->fabric()->link(0)->pace().slow());
}

TEST_F(MirroredExtentTest, WhatIsUnderWayIsGivenUpAtTheEnd) {
  Open(2, "&rtt_us=200000");
  OpenExtent(2, 64 << 10);
  uint64_t ticket = 0;
  ASSERT_TRUE(IsOk(mirrored_->Write(0, Fill(0, "slow"), &ticket)));
  EXPECT_EQ(mirrored_->Poll(), 0u);
  EXPECT_EQ(mirrored_->TakeLane(), nullptr);
  const Status s =
      mirrored_->Await(ticket, Deadline::After(Clock::System(), std::chrono::nanoseconds(0)));
  EXPECT_TRUE(IsFailure(s, Status::Code::kUnavailable, client_->node_address(0)));
  EXPECT_TRUE(IsFailure(s, Status::Code::kUnavailable, client_->node_address(1)));
  EXPECT_EQ(mirrored_->failed_nodes().size(), 2u);
}

}  // namespace
}  // namespace nacre::pool
