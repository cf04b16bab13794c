// Goal: flushes and restores are refused while there is still room to empty the pool again, and not
// before.
// Method: a database without data; what is free in its pool is reserved for nothing, by steps.

#include "db/space/headroom.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/parts_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Code = Status::Code;

constexpr uint64_t kMegabyte = 1 << 20;

class HeadroomTest : public PartsFixture {
 protected:
  explicit HeadroomTest(int nodes = 3)
      : PartsFixture({.nodes = nodes, .node_bytes = 40 * kMegabyte}) {}

  Status CheckFlush(uint64_t bytes, uint64_t earlier = 0, bool pool_full = false) {
    return parts_->headroom.CheckFlush(*family(), bytes, earlier, pool_full);
  }
  /// A restore of one table.
  Status CheckRestore(uint32_t level, uint64_t bytes, const std::set<uint64_t>& there = {}) {
    TableMeta table;
    table.id = 1;
    table.size = bytes;
    table.chunk_size = options_.chunk_size;
    return parts_->headroom.CheckRestore({{level, table}}, there);
  }
};

TEST_F(HeadroomTest, RefusesAFlushThatThePoolHasNoRoomFor) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(IsOk(CheckFlush(kMegabyte)));
  // Two copies of it, and two more when it is merged.
  EXPECT_TRUE(IsOk(CheckFlush(15 * kMegabyte)));
  EXPECT_TRUE(IsFailure(CheckFlush(35 * kMegabyte), Code::kNoSpace));
  EXPECT_TRUE(IsFailure(CheckFlush(kMegabyte, /*earlier=*/60 * kMegabyte), Code::kNoSpace));
}

TEST_F(HeadroomTest, LeavesDeletionsSomeOfTheHeadroom) {
  ASSERT_NO_FATAL_FAILURE(Open());
  // So large that it does not count in how many pieces it is free.
  constexpr uint64_t kPiece = 2 * kMegabyte;
  // While less and less is left free there is a time for deletions only, and it comes between.
  size_t left = 50;
  const auto leave = [&](size_t pieces) {
    left = pieces;
    EmptyPool();
    FillPool(kPiece, left);
  };
  ASSERT_NO_FATAL_FAILURE(leave(left));
  EXPECT_TRUE(IsOk(CheckFlush(1000)));
  while (left > 0 && CheckFlush(1000).ok()) {
    ASSERT_TRUE(IsOk(CheckFlush(1000, 0, /*pool_full=*/true))) << left;
    ASSERT_NO_FATAL_FAILURE(leave(left - 1));
  }
  EXPECT_TRUE(IsFailure(CheckFlush(1000), Code::kNoSpace));
  EXPECT_TRUE(IsOk(CheckFlush(1000, 0, /*pool_full=*/true)));
  ASSERT_NO_FATAL_FAILURE(leave(0));
  EXPECT_TRUE(IsFailure(CheckFlush(1000, 0, /*pool_full=*/true), Code::kNoSpace));
  EmptyPool();
  EXPECT_TRUE(IsOk(CheckFlush(1000)));
}

TEST_F(HeadroomTest, RestoresWhatFitsWithTheCompactionAfterIt) {
  ASSERT_NO_FATAL_FAILURE(Open());
  // Two copies in 120 MB.
  EXPECT_TRUE(IsOk(CheckRestore(/*level=*/2, 40 * kMegabyte)));
  EXPECT_TRUE(IsFailure(CheckRestore(2, 70 * kMegabyte), Code::kNoSpace));
  // What levels 0 and 1 have is merged, beside what it is merged from.
  EXPECT_TRUE(IsFailure(CheckRestore(1, 40 * kMegabyte), Code::kNoSpace));
  EXPECT_TRUE(IsOk(CheckRestore(1, 20 * kMegabyte)));
  EXPECT_TRUE(IsOk(CheckRestore(1, 40 * kMegabyte, /*there=*/{1}))) << "it takes no more room";
}

class HeadroomOfTooFewNodesTest : public HeadroomTest {
 protected:
  HeadroomOfTooFewNodesTest() : HeadroomTest(/*nodes=*/1) {}
};

TEST_F(HeadroomOfTooFewNodesTest, IsNotWhatARestoreLacks) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)", /*manifest=*/false));
  EXPECT_TRUE(IsOk(CheckRestore(2, 70 * kMegabyte))) << "the reservation says what it is";
}

}  // namespace
}  // namespace nacre
