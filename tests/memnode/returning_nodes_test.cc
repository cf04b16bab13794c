// Goal: a client outlives any number of restarts of its nodes, each of which takes a NodeId of its
// own. Method: nodes end and come back empty, until there have been more than can be connected at a
// time; what is written on the latest is read, by readers that were there from the beginning.

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/served_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::memnode {
namespace {

constexpr size_t kNodes = 8;
constexpr int kMoreThanAtATime = 300;

class ReturningNodesTest : public PoolFixture {
 protected:
  void SetUp() override {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kNodes; ++i) addresses.push_back(nodes_.address(i));
    OpenPoolAt(PoolUriOf(addresses));
    CreateDatabase();
  }
  void TearDown() override { ClosePool(); }

  /// All but the first, which keeps the database.
  void RestartNodes() {
    const int before = client_->node_count();
    for (size_t i = 1; i < kNodes; ++i) nodes_.Kill(i);
    for (int i = 1; i < before; ++i) {
      ASSERT_TRUE(Eventually([&] { return !client_->alive(static_cast<NodeId>(i)); })) << i;
    }
    for (size_t i = 1; i < kNodes; ++i) nodes_.StartAnew(i);
    const int after = before + static_cast<int>(kNodes) - 1;
    ASSERT_TRUE(Eventually([&] { return client_->node_count() == after; })) << before;
  }

  ServedNodes nodes_{kNodes, 8 << 20, 1 << 20};
};

TEST_F(ReturningNodesTest, AnyNumberOfThem) {
  const uint64_t seed = TestSeed(4242);
  PointReader reader(client_);
  while (client_->node_count() < kMoreThanAtATime) {
    ASSERT_NO_FATAL_FAILURE(RestartNodes());
    const auto latest = static_cast<NodeId>(client_->node_count() - 1);
    const std::string bytes = RandomBytes(seed + latest, 100'000);
    Placement placement;
    ASSERT_TRUE(IsOk(space_->Reserve(Copies(2), bytes.size(), latest, &placement)));
    ASSERT_TRUE(IsOk(WriteBytes(placement, bytes)));
    PointRead reads[4];
    for (int i = 0; i < 4; ++i) {
      reads[i].from = store_->Resolve(placement, 1000 * static_cast<uint64_t>(i), i % 2);
      reads[i].length = 777;
    }
    reader.ReadAll(reads);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(IsOk(reads[i].status)) << latest;
      ASSERT_EQ(std::memcmp(reads[i].data, bytes.data() + 1000 * i, 777), 0) << latest;
    }
    // One alone takes another way.
    reader.ReadAll(std::span<PointRead>(reads, 1));
    ASSERT_TRUE(IsOk(reads[0].status)) << latest;
    ASSERT_EQ(std::memcmp(reads[0].data, bytes.data(), 777), 0) << latest;
    for (const ExtentAddr& extent : placement.fragments) space_->Free(extent);
  }
}

}  // namespace
}  // namespace nacre::memnode
