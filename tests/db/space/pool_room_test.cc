// Goal: what a pool takes of tables is measured by where their fragments can lie, and what is kept
// back of a small pool is a part of it.
// Method: free space of unlike nodes, by hand.

#include "db/space/pool_room.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

TEST(PoolRoomTest, FragmentsOfATableAreInDifferentDomains) {
  EXPECT_EQ(PlaceableBytes({100, 100, 100}, 1), 300u);
  EXPECT_EQ(PlaceableBytes({100, 100, 100}, 2), 300u);
  EXPECT_EQ(PlaceableBytes({100, 100, 100}, 3), 300u);
  EXPECT_EQ(PlaceableBytes({100, 100}, 3), 0u);
  EXPECT_EQ(PlaceableBytes({}, 1), 0u);
  // The second copies of what is on the large node are on the others.
  EXPECT_EQ(PlaceableBytes({20, 1000, 30}, 2), 100u);
  EXPECT_EQ(PlaceableBytes({20, 1000, 30}, 3), 60u);
  EXPECT_EQ(PlaceableBytes({1000, 900, 30, 20}, 3), 150u);
  EXPECT_EQ(PlaceableBytes({1000, 0}, 2), 0u);
}

TEST(PoolRoomTest, ASmallPoolKeepsAPartBack) {
  const HeadroomSize size{.buffers = 100, .opening = 20};
  EXPECT_EQ(size.Of(1000), 120u);
  EXPECT_EQ(size.Of(400), 100u);
  EXPECT_EQ(size.Of(40), 20u) << "else it could not be opened";
}

TEST(PoolRoomTest, AStepHasRoomForLargeRecords) {
  constexpr uint64_t kTarget = 1 << 20;
  const StepRoom small = RoomOfStep(100, kTarget, 16 << 10);
  const StepRoom large = RoomOfStep(10 << 20, kTarget, 16 << 10);
  EXPECT_GT(small.bytes, (kSunkTables + 1) * kTarget);
  EXPECT_LT(small.output, kTarget);
  EXPECT_GT(large.output, uint64_t{80} << 20);
  EXPECT_GT(large.bytes, large.output);
}

}  // namespace
}  // namespace nacre
