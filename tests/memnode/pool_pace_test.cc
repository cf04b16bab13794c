// Goal: what counts as late follows from what operations take on the nodes of a pool, at most less
// than half of them are slow at a time, one that is slow again and again stays so for longer, and
// reads that are asked twice are a bounded share.
// Method: links that are never connected, with times that the test notes, under a clock that it
// moves. The monitor has no thread, so no node is asked but by the test.

#include "pool/connect/pool_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "pool/connect/fabric.h"
#include "rdma/transport.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_assert.h"

namespace nacre::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kRefresh = milliseconds(50);

class PoolPaceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(IsOk(rdma::OpenDevice("shm", {}, &clock_, &device_)));
    fabric_.context.device = device_.get();
    fabric_.context.clock = &clock_;
    SetNodes(5);
    ASSERT_TRUE(IsOk(NodeMonitor::Create(
        &fabric_, [](NodeLink*, bool, Deadline) { return Status::OK(); }, &fabric_.monitor)));
  }

  void SetNodes(int count) {
    fabric_.links.clear();
    for (int i = 0; i < count; ++i) {
      fabric_.links.push_back(
          std::make_unique<NodeLink>(&fabric_.context, static_cast<NodeId>(i), "node"));
    }
    fabric_.taken.store(count);
  }
  PoolClientOptions& options() { return fabric_.context.options; }
  PoolPace& pace() { return fabric_.pace; }
  NodeLink* Link(int node) { return fabric_.link(static_cast<NodeId>(node)); }
  uint64_t Now() { return clock_.NowNanos(); }

  void Note(int node, nanoseconds took, int count = 100,
            NodeOperation operation = NodeOperation::kRead) {
    for (int i = 0; i < count; ++i) Link(node)->mutable_pace()->Note(operation, took);
  }
  /// The patience that follows from all that was noted.
  nanoseconds Patience(NodeOperation operation = NodeOperation::kRead) {
    clock_.Advance(kRefresh);
    return pace().Patience(operation);
  }
  nanoseconds Within(int node, double share) {
    return Link(node)->pace().times(NodeOperation::kRead).Within(share);
  }
  /// The node is as fast as others when it is asked next.
  void AnswerWell(int node) {
    const uint64_t at = pace().ProbeAt(*Link(node));
    if (at > Now()) clock_.Advance(nanoseconds(at - Now()));
    pace().NoteProbe(Link(node), nanoseconds(0), nanoseconds(0));
  }
  /// The same each time, until it returns: after how long.
  nanoseconds Return(int node) {
    const uint64_t begun = Now();
    for (int i = 0; i < 1000 && Link(node)->pace().slow(); ++i) AnswerWell(node);
    EXPECT_FALSE(Link(node)->pace().slow());
    return nanoseconds(Now() - begun);
  }
  bool MayHedge(std::vector<int> late, bool again = false) {
    std::vector<NodeLink*> links;
    for (const int node : late) links.push_back(Link(node));
    return pace().MayHedge(links, again);
  }
  /// For reads that wait for a node while two others count as slow, and no more may.
  int TakeHedges() {
    EXPECT_TRUE(pace().NoteLate(Link(3)));
    EXPECT_TRUE(pace().NoteLate(Link(4)));
    int taken = 0;
    while (taken < 10'000 && MayHedge({2})) ++taken;
    return taken;
  }

  ManualClock clock_;
  std::unique_ptr<rdma::Device> device_;  ///< Ends after the monitor.
  Fabric fabric_;
};

TEST_F(PoolPaceTest, PatienceFollowsTheNodeInTheMiddle) {
  options().slow_node_patience_max = seconds(10);
  const nanoseconds slowest[] = {milliseconds(3), milliseconds(900), milliseconds(5),
                                 milliseconds(1), milliseconds(700)};
  for (int i = 0; i < 5; ++i) {
    Note(i, microseconds(20), 95);
    Note(i, slowest[i], 5);
  }
  // Looking at them ages them, which changes no share here but by rounding.
  const nanoseconds patience = Patience();
  EXPECT_GE(patience, 4 * milliseconds(5));
  EXPECT_LE(patience, 4 * milliseconds(5) * 5 / 4);
  // It stays until the next look.
  for (int i = 0; i < 5; ++i) Note(i, milliseconds(100), 10'000);
  EXPECT_EQ(pace().Patience(NodeOperation::kRead), patience);
  EXPECT_GE(Patience(), 4 * milliseconds(100));
}

TEST_F(PoolPaceTest, PatienceHasAFloorAndACeiling) {
  EXPECT_EQ(Patience(), options().slow_node_patience_max) << "nothing is known yet";
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5), 15);
  EXPECT_EQ(Patience(), options().slow_node_patience_max) << "too little is known";
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5), 1000);
  EXPECT_EQ(Patience(), options().slow_node_patience_min);
  for (int i = 0; i < 5; ++i) Note(i, milliseconds(100), 400);
  EXPECT_EQ(Patience(), options().slow_node_patience_max);
  // The ceiling is what counts where it lies below the floor.
  options().slow_node_patience_max = options().slow_node_patience_min / 2;
  EXPECT_EQ(Patience(NodeOperation::kWrite), options().slow_node_patience_max);
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5), 100, NodeOperation::kWrite);
  EXPECT_EQ(Patience(NodeOperation::kWrite), options().slow_node_patience_max);
  options().slow_node_patience_max = milliseconds(20);
  // Requests have other work beside them.
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5), 100, NodeOperation::kRequest);
  EXPECT_EQ(Patience(NodeOperation::kRequest), 16 * options().slow_node_patience_min);
}

TEST_F(PoolPaceTest, WhereAllTakesLongNothingIsLate) {
  for (int i = 0; i < 5; ++i) Note(i, milliseconds(300));
  EXPECT_GE(Patience(), 4 * milliseconds(300));
}

TEST_F(PoolPaceTest, NodesThatAreSlowOrGoneSayNothing) {
  options().slow_node_patience_max = seconds(100);
  for (int i = 0; i < 5; ++i) Note(i, i < 2 ? milliseconds(1) : milliseconds(500));
  EXPECT_GE(Patience(), 4 * milliseconds(500));
  ASSERT_TRUE(pace().NoteLate(Link(2)));
  Link(3)->SetLost(Status::Unavailable("gone"));
  Link(4)->SetDown(Status::Unavailable("down"));
  EXPECT_LE(Patience(), 4 * milliseconds(1) * 5 / 4);
}

TEST_F(PoolPaceTest, LessThanHalfAreSlow) {
  for (int nodes = 1; nodes <= 8; ++nodes) {
    SCOPED_TRACE(nodes);
    SetNodes(nodes);
    int slow = 0;
    for (int i = 0; i < nodes; ++i) slow += pace().NoteLate(Link(i)) ? 1 : 0;
    EXPECT_EQ(slow, (nodes - 1) / 2);
  }
  // Those that are not there do not count.
  SetNodes(5);
  Link(3)->SetLost(Status::Unavailable("gone"));
  ASSERT_TRUE(pace().NoteLate(Link(0)));
  EXPECT_FALSE(pace().NoteLate(Link(1)));
  EXPECT_FALSE(Link(1)->pace().slow());
  EXPECT_TRUE(pace().NoteLate(Link(0))) << "it is slow already";
  EXPECT_EQ(Link(0)->pace().times_slow(), 1u);
  EXPECT_EQ(Link(0)->pace().late(), 2u);
  EXPECT_EQ(Link(1)->pace().late(), 1u);
  // When one is back, the next may be slow.
  Return(0);
  EXPECT_TRUE(pace().NoteLate(Link(1)));
}

TEST_F(PoolPaceTest, RelapsesDoubleTheProbation) {
  const uint64_t changes = pace().changes();
  nanoseconds expected = milliseconds(50);
  for (uint64_t i = 1; i <= 12; ++i) {
    ASSERT_TRUE(pace().NoteLate(Link(1)));
    EXPECT_EQ(pace().changes(), changes + 2 * i - 1);
    EXPECT_EQ(Return(1), expected);
    EXPECT_EQ(pace().changes(), changes + 2 * i);
    expected = std::min<nanoseconds>(2 * expected, seconds(10));
  }
  // One that was well for long begins anew.
  clock_.Advance(16 * seconds(10));
  ASSERT_TRUE(pace().NoteLate(Link(1)));
  EXPECT_EQ(Return(1), milliseconds(50));
  // Others are not affected.
  ASSERT_TRUE(pace().NoteLate(Link(2)));
  EXPECT_EQ(Return(2), milliseconds(50));
}

TEST_F(PoolPaceTest, OneThatAnswersWellMakesWayForOneThatDoesNot) {
  // With a probation of 200 ms.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pace().NoteLate(Link(1)));
    Return(1);
  }
  ASSERT_TRUE(pace().NoteLate(Link(1)));
  ASSERT_TRUE(pace().NoteLate(Link(2)));
  EXPECT_FALSE(pace().NoteLate(Link(3))) << "neither of two of five was asked yet";
  clock_.Advance(nanoseconds(pace().ProbeAt(*Link(1)) - Now()));
  pace().NoteProbe(Link(1), seconds(1), nanoseconds(0));
  EXPECT_FALSE(pace().NoteLate(Link(3))) << "it is slow still";
  AnswerWell(1);
  EXPECT_TRUE(Link(1)->pace().slow()) << "it is on probation still";
  EXPECT_TRUE(pace().NoteLate(Link(3)));
  EXPECT_FALSE(Link(1)->pace().slow());
  EXPECT_TRUE(Link(2)->pace().slow());
  EXPECT_FALSE(pace().NoteLate(Link(4)));
  // It has not forgotten what the node was like.
  Return(2);
  ASSERT_TRUE(pace().NoteLate(Link(1)));
  EXPECT_EQ(Return(1), milliseconds(400));
}

TEST_F(PoolPaceTest, WhereAllAreSlowByTurnsProbationsEndEarlyNowAndThenOnly) {
  SetNodes(3);
  // Their probations are ten seconds long from now on.
  for (int i = 0; i < 9; ++i) {
    for (int node = 0; node < 3; ++node) {
      ASSERT_TRUE(pace().NoteLate(Link(node)));
      Return(node);
    }
  }
  ASSERT_TRUE(pace().NoteLate(Link(0)));
  const uint64_t before = pace().changes();
  const uint64_t begun = Now();
  for (int slow = 0; Now() - begun < 5'000'000'000;) {
    AnswerWell(slow);
    const int next = (slow + 1) % 3;
    if (pace().NoteLate(Link(next))) slow = next;
  }
  // One returns and one becomes slow, four times at once and twice a second.
  EXPECT_GE(pace().changes() - before, 2 * 4u);
  EXPECT_LE(pace().changes() - before, 2 * (4 + 2 * 5 + 1u));
}

TEST_F(PoolPaceTest, ReturnsWhenWhatItIsAskedIsNotLate) {
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5));
  ASSERT_TRUE(pace().NoteLate(Link(0)));
  const nanoseconds read = Patience(NodeOperation::kRead);
  const nanoseconds request = Patience(NodeOperation::kRequest);
  clock_.Advance(milliseconds(50));
  pace().NoteProbe(Link(0), read + nanoseconds(1), nanoseconds(0));
  EXPECT_TRUE(Link(0)->pace().slow());
  EXPECT_EQ(nanoseconds(pace().ProbeAt(*Link(0)) - Now()), milliseconds(50))
      << "it is asked again after as long";
  pace().NoteProbe(Link(0), nanoseconds(0), request + nanoseconds(1));
  EXPECT_TRUE(Link(0)->pace().slow());
  pace().NoteProbe(Link(0), read, request);
  EXPECT_TRUE(Link(0)->pace().slow()) << "its probation has begun anew";
  clock_.Advance(milliseconds(50));
  const uint64_t noted = Link(0)->pace().times(NodeOperation::kRead).count();
  pace().NoteProbe(Link(0), read, request);
  EXPECT_FALSE(Link(0)->pace().slow());
  EXPECT_EQ(Link(0)->pace().times(NodeOperation::kRead).count(), noted / 2);
  // One that is reached anew begins anew.
  ASSERT_TRUE(pace().NoteLate(Link(3)));
  pace().Forget(Link(3));
  EXPECT_FALSE(Link(3)->pace().slow());
}

TEST_F(PoolPaceTest, HedgesAreAShareOfReads) {
  Patience();
  EXPECT_EQ(TakeHedges(), 64);
  EXPECT_EQ(pace().hedges(), 64u);
  Patience();
  EXPECT_EQ(TakeHedges(), 0) << "nothing was read";
  Note(0, microseconds(5), 300);
  Note(1, microseconds(5), 100);
  Patience();
  EXPECT_EQ(TakeHedges(), 20);
  // No more than at first are saved.
  Note(0, microseconds(5), 100'000);
  Patience();
  EXPECT_EQ(TakeHedges(), 64);
}

TEST_F(PoolPaceTest, SlowReadersGetTheirShareToo) {
  Patience();
  EXPECT_EQ(TakeHedges(), 64);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    Note(i % 5, microseconds(5), 1);
    clock_.Advance(milliseconds(300));
    pace().Patience(NodeOperation::kRead);
    taken += TakeHedges();
  }
  EXPECT_EQ(taken, 50);
}

TEST_F(PoolPaceTest, WhatWaitsForANodeThatBecomesSlowIsAskedOfOthersInAnyCase) {
  Patience();
  EXPECT_EQ(TakeHedges(), 64);
  EXPECT_FALSE(MayHedge({2}));
  EXPECT_TRUE(MayHedge({3}));
  EXPECT_TRUE(MayHedge({3, 4}));
  EXPECT_FALSE(MayHedge({2, 3})) << "one of them does not count as slow";
  EXPECT_EQ(pace().hedges(), 66u);
  // It counts as a part of the share.
  Note(0, microseconds(5), 60);
  Patience();
  EXPECT_TRUE(MayHedge({2}));
  EXPECT_FALSE(MayHedge({2}));
  Return(3);
  Return(4);
  EXPECT_TRUE(MayHedge({2}));
  EXPECT_TRUE(Link(2)->pace().slow());
}

TEST_F(PoolPaceTest, AReadThatWaitsIsLateOnce) {
  ASSERT_TRUE(MayHedge({0}));
  ASSERT_TRUE(MayHedge({1}));
  const uint64_t late = Link(2)->pace().late();
  for (int look = 0; look < 100; ++look) MayHedge({2}, look > 0);
  EXPECT_EQ(Link(2)->pace().late(), late + 1);
  // As soon as others are well again it counts as slow, whatever it has waited for.
  Return(0);
  EXPECT_TRUE(MayHedge({2}, /*again=*/true));
  EXPECT_TRUE(Link(2)->pace().slow());
}

TEST_F(PoolPaceTest, WithoutHedgesNoneIsTaken) {
  options().hedged_reads_percent = 0;
  EXPECT_FALSE(MayHedge({0}));
  ASSERT_TRUE(pace().NoteLate(Link(0)));
  EXPECT_FALSE(MayHedge({0}));
}

TEST_F(PoolPaceTest, WithoutAPatienceNothingIsLate) {
  options().slow_node_patience_max = milliseconds(0);
  for (int i = 0; i < 5; ++i) Note(i, microseconds(5));
  EXPECT_EQ(Patience(), options().operation_timeout);
  EXPECT_FALSE(pace().NoteLate(Link(0)));
  EXPECT_FALSE(MayHedge({0}));
  EXPECT_FALSE(Link(0)->pace().slow());
}

}  // namespace
}  // namespace nacre::pool
