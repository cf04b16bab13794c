// Goal: a node whose process is stopped, while the system keeps its connections, is down until it
// answers again; then it is as it was.
// Method: nodes over tcp, one of which is stopped and goes on.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "pool/space/slab_leases.h"
#include "pool/space/space_allocator.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::pool {
namespace {

class SilentNodeTest : public PoolFixture {
 protected:
  void TearDown() override { ClosePool(); }
};

TEST_F(SilentNodeTest, IsDownUntilItAnswers) {
  MemnodeProcesses nodes(2, {.scheme = "tcp"});
  OpenPoolAt(nodes.pool_uri() + "?timeout_ms=300");
  CreateDatabase();
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(client_, 0, database_id_, {.count = 2}, &slabs)));
  nodes[0].Pause();
  EXPECT_FALSE(client_->Ping(0).ok());
  // For several times as long as a suspicion lasts.
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(client_->alive(0)) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(IsOk(client_->Ping(1)));
  nodes[0].Resume();
  ASSERT_TRUE(Eventually([&] { return client_->alive(0); }));
  // It is the same process, and knows whose the database is.
  EXPECT_TRUE(IsOk(client_->Ping(0)));
  EXPECT_TRUE(IsOk(pool::ReturnSlabs(client_, 0, database_id_, slabs)));
  EXPECT_EQ(client_->node_count(), 2);
}

TEST_F(SilentNodeTest, ThoseThatAnswerAreThereThoughOthersDoNot) {
  MemnodeProcesses nodes(6, {.scheme = "tcp"});
  for (const size_t silent : {size_t{0}, size_t{2}, size_t{3}}) nodes[silent].Pause();
  OpenPoolAt(nodes.pool_uri() + "?timeout_ms=300");
  for (NodeId node = 0; node < 6; ++node) {
    const bool silent = node == 0 || node == 2 || node == 3;
    EXPECT_EQ(client_->alive(node), !silent) << node;
    if (!silent) {
      EXPECT_TRUE(IsOk(client_->Ping(node)));
    }
  }
  EXPECT_EQ(client_->node_count(), 6);
  // They are taken into the pool when they answer again.
  for (const size_t silent : {size_t{0}, size_t{2}, size_t{3}}) nodes[silent].Resume();
  ASSERT_TRUE(Eventually([&] { return client_->alive_count() == 6; }));
}

// A flush asks what is free, and the thread that gives slabs back waits for the node.
TEST_F(SilentNodeTest, WhatIsFreeIsAnsweredThoughSlabsAreBeingGivenBack) {
  MemnodeProcesses nodes(3, {.scheme = "tcp", .size = "32MiB", .slab_size = "1MiB"});
  constexpr uint64_t kSlab = 1 << 20;
  OpenPoolAt(nodes.pool_uri() + "?timeout_ms=600000", kSlab, std::chrono::minutes(10));
  CreateDatabase();
  SpaceAllocator::FreeSpace before;
  ASSERT_TRUE(IsOk(space_->MeasureFree(0, kSlab, &before)));
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Redundancy::Copies(1), 8 * kSlab, 0, &placement)));
  const NodeId node = placement.fragments[0].start.node;
  ASSERT_TRUE(IsOk(space_->MeasureFree(node, kSlab, &before)));
  nodes[node].Pause();
  space_->Free(placement);
  std::atomic<bool> answered{false};
  std::thread asks([&] {
    SpaceAllocator::FreeSpace free;
    EXPECT_TRUE(IsOk(space_->MeasureFree(node, kSlab, &free)));
    EXPECT_GE(free.total, before.total);
    answered.store(true);
  });
  EXPECT_TRUE(Eventually([&] { return answered.load(); }));
  nodes[node].Resume();
  asks.join();
}

}  // namespace
}  // namespace nacre::pool
