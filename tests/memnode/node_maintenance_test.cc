// Goal: clients do without a node in maintenance from a moment after the order on, until it ends or
// its time is up, and know it for the same node or another one. Method: an embedded pool whose
// nodes are given directions as an operator's program gives them, and clients that watch.

#include "pool/node_maintenance.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "pool/connect/fabric.h"
#include "pool/reports.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kHourNanos = 3'600'000'000'000;

class NodeMaintenanceTest : public PoolFixture {
 protected:
  void SetUp() override {
    OpenPoolAt("embedded:?nodes=3&size=16MiB");
    ASSERT_NO_FATAL_FAILURE(CreateDatabase());
  }

  Maintenance OrderFor(NodeId node, uint64_t left_nanos) const {
    return {.instance_id = client_->instance_id(node),
            .start_id = client_->start_id(node),
            .address = client_->node_address(node),
            .left_nanos = left_nanos};
  }
};

TEST_F(NodeMaintenanceTest, TheTimeThatIsLeftGoesByOnTheNodes) {
  const Directions wanted{.version = 3, .maintenance = {OrderFor(1, kHourNanos)}};
  Directions now;
  ASSERT_TRUE(IsOk(SetDirections(client_, 0, wanted, &now)));
  EXPECT_EQ(now, wanted);
  Directions first;
  ASSERT_TRUE(IsOk(GetDirections(client_, 0, &first)));
  ASSERT_EQ(first.maintenance.size(), 1u);
  EXPECT_EQ(first, wanted) << "it is the same order";
  EXPECT_LE(first.maintenance[0].left_nanos, kHourNanos);
  EXPECT_GT(first.maintenance[0].left_nanos, 0u);
  EXPECT_EQ(first.maintenance[0].address, client_->node_address(1));
  client_->clock()->SleepFor(std::chrono::milliseconds(2));
  Directions later;
  ASSERT_TRUE(IsOk(GetDirections(client_, 0, &later)));
  EXPECT_LT(later.maintenance[0].left_nanos, first.maintenance[0].left_nanos);
  // It does not become less than none.
  Directions over = wanted;
  over.version = 4;
  over.maintenance[0].left_nanos = 1;
  ASSERT_TRUE(IsOk(SetDirections(client_, 0, over, &now)));
  client_->clock()->SleepFor(std::chrono::milliseconds(2));
  ASSERT_TRUE(IsOk(GetDirections(client_, 0, &later)));
  EXPECT_EQ(later.maintenance[0].left_nanos, 0u);
}

TEST_F(NodeMaintenanceTest, TheLatestWordHoldsForOneStartOfOneNode) {
  NodeMaintenance maintenance(client_);
  EXPECT_FALSE(maintenance.Holds(1));
  maintenance.Hear({.version = 2, .maintenance = {OrderFor(1, kHourNanos)}});
  EXPECT_TRUE(maintenance.Holds(1));
  EXPECT_FALSE(maintenance.Holds(0));
  EXPECT_FALSE(maintenance.Holds(7)) << "there is no such node";
  maintenance.Hear({.version = 1});
  EXPECT_TRUE(maintenance.Holds(1)) << "an older word";
  maintenance.Hear({.version = 2, .maintenance = {OrderFor(1, 0)}});
  EXPECT_FALSE(maintenance.Holds(1)) << "of one version the one that ends first holds";
  maintenance.Hear({.version = 2, .maintenance = {OrderFor(1, kHourNanos)}});
  EXPECT_FALSE(maintenance.Holds(1));
  Maintenance earlier = OrderFor(2, kHourNanos);
  earlier.start_id += 2;
  maintenance.Hear({.version = 3, .maintenance = {earlier}});
  EXPECT_FALSE(maintenance.Holds(2)) << "it was started anew since";
}

TEST_F(NodeMaintenanceTest, ClientsThatWatchDoWithoutTheNode) {
  client_->WatchMaintenance();
  client_->WatchMaintenance();
  Directions now;
  // One node knows of it: nodes are asked in turn.
  ASSERT_TRUE(IsOk(
      SetDirections(client_, 2, {.version = 1, .maintenance = {OrderFor(1, kHourNanos)}}, &now)));
  EXPECT_TRUE(Eventually([&] { return !client_->prompt(1); }));
  EXPECT_TRUE(client_->alive(1));
  EXPECT_TRUE(client_->prompt(0));
  EXPECT_FALSE(client_->fabric()->link(1)->pace().slow()) << "it has kept nobody waiting";
  EXPECT_EQ(client_->prompt_domain_count(), 2);
  ASSERT_TRUE(IsOk(SetDirections(client_, 0, {.version = 2}, &now)));
  EXPECT_TRUE(Eventually([&] { return client_->prompt(1); }));
  constexpr uint64_t kSomeNanos = 6'000'000'000;
  for (const NodeId node : {0, 1, 2}) {  // All, so that the client hears of it in time.
    ASSERT_TRUE(IsOk(SetDirections(
        client_, node, {.version = 3, .maintenance = {OrderFor(1, kSomeNanos)}}, &now)));
  }
  EXPECT_TRUE(Eventually([&] { return !client_->prompt(1); }));
  EXPECT_TRUE(Eventually([&] { return client_->prompt(1); })) << "its time is up";
}

}  // namespace
}  // namespace nacre::pool
