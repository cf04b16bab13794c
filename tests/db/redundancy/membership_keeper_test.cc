// Goal: an open database hears of each change of its nodes once, and follows them all the time.
// Method: nodes that the test makes up.

#include "db/redundancy/membership_keeper.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/test_db.h"
#include "util/mutex.h"

namespace nacre {
namespace {

class MembershipKeeperTest : public testing::Test {
 protected:
  void Set(NodeStates nodes) {
    MutexLock lock(&mutex_);
    nodes_ = std::move(nodes);
  }

  Mutex mutex_;
  NodeStates nodes_ GUARDED_BY(mutex_){.alive = {true, true}, .draining = {false, false}};
  NodeStates before_;  ///< The thread uses this and what follows, until `changes` tells.
  NodeStates now_;
  std::atomic<int> looks_{0};
  std::atomic<int> left_{0};
  TaskThreads threads_;
  MembershipKeeper keeper_{{.clock = Clock::System(),
                            .where = {&threads_},
                            .look =
                                [this] {
                                  MutexLock lock(&mutex_);
                                  return nodes_;
                                },
                            .changed =
                                [this](const NodeStates& before, const NodeStates& now) {
                                  before_ = before;
                                  now_ = now;
                                },
                            .follow = [this] { ++looks_; },
                            .leave_nodes = [this] { ++left_; }}};
};

TEST_F(MembershipKeeperTest, TellsOfEachChangeOnce) {
  keeper_.Start();
  ASSERT_TRUE(Eventually([&] { return keeper_.changes() == 1; }));
  EXPECT_TRUE(before_.alive.empty());
  EXPECT_TRUE(now_.Alive(0) && now_.Alive(1) && !now_.Alive(2));
  const int looks = looks_;
  ASSERT_TRUE(Eventually([&] { return looks_ > looks + 3; }));
  EXPECT_EQ(keeper_.changes(), 1u);
  const int left = left_;
  Set({.alive = {true, false, true}, .draining = {true, false, false}});
  keeper_.Wake();
  ASSERT_TRUE(Eventually([&] { return keeper_.changes() == 2 && left_ > left; }));
  EXPECT_TRUE(before_.Alive(1));
  EXPECT_FALSE(now_.Alive(1));
  EXPECT_TRUE(now_.Draining(0) && !now_.Draining(2));
  // Without a change it looks around now and then, too.
  const int again = left_;
  ASSERT_TRUE(Eventually([&] { return left_ > again; }));
  EXPECT_EQ(keeper_.changes(), 2u);
  keeper_.Stop();
  const int last = looks_;
  keeper_.Stop();
  EXPECT_EQ(looks_, last);
}

}  // namespace
}  // namespace nacre
