// Goal: space that a job may still write to is free when each of its nodes has said that it cannot
// any more, not before, and by itself.
// Method: nodes of the test's making, which end jobs when the test says so.

#include "pool/space/space_quarantine.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "pool/space/pending_writes.h"
#include "tests/support/test_db.h"

namespace nacre::pool {
namespace {

ExtentAddr Extent(NodeId node, uint64_t offset) {
  ExtentAddr extent;
  extent.start.node = node;
  extent.start.offset = offset & ((uint64_t{1} << 48) - 1);
  extent.length = 4096;
  return extent;
}

class SpaceQuarantineTest : public testing::Test {
 protected:
  void EndJobs(std::vector<JobEnd>* jobs) {
    MutexLock lock(&mutex_);
    ++asked_;
    for (JobEnd& job : *jobs) {
      std::erase_if(job.open,
                    [this](NodeId node) REQUIRES(mutex_) { return answering_.contains(node); });
    }
  }
  bool MayStillWrite(NodeId node) {
    MutexLock lock(&mutex_);
    return abandoned_.contains(node);
  }
  void EndAbandonedWrites() {
    MutexLock lock(&mutex_);
    std::erase_if(abandoned_,
                  [this](NodeId node) REQUIRES(mutex_) { return answering_.contains(node); });
  }
  void Abandon(NodeId node) {
    MutexLock lock(&mutex_);
    abandoned_.insert(node);
  }
  void Free(const ExtentAddr& extent) {
    MutexLock lock(&mutex_);
    freed_.insert(extent.start.node);
  }
  std::set<NodeId> freed() {
    MutexLock lock(&mutex_);
    return freed_;
  }
  void Answer(NodeId node) {
    MutexLock lock(&mutex_);
    answering_.insert(node);
  }
  int asked() {
    MutexLock lock(&mutex_);
    return asked_;
  }

  Mutex mutex_;
  int asked_ GUARDED_BY(mutex_) = 0;
  std::set<NodeId> answering_ GUARDED_BY(mutex_);
  std::set<NodeId> abandoned_ GUARDED_BY(mutex_);
  std::set<NodeId> freed_ GUARDED_BY(mutex_);
  TaskThreads threads_;
  SpaceQuarantine quarantine_{
      threads_.ticks(),
      {.end_jobs = [this](std::vector<JobEnd>* jobs) { EndJobs(jobs); },
       .may_still_write = [this](NodeId node) { return MayStillWrite(node); },
       .end_abandoned_writes = [this] { EndAbandonedWrites(); }},
      [this](const ExtentAddr& extent) { Free(extent); }};
};

TEST_F(SpaceQuarantineTest, WhatEndedIsFreeAtOnce) {
  quarantine_.Take({.job_id = 1, .open = {}}, {Extent(0, 0), Extent(1, 0)});
  EXPECT_EQ(freed(), (std::set<NodeId>{0, 1}));
  EXPECT_EQ(quarantine_.held_bytes(), 0u);
  EXPECT_EQ(asked(), 0);
}

TEST_F(SpaceQuarantineTest, EachNodeFreesItsOwn) {
  quarantine_.Take({.job_id = 1, .open = {1, 2, 3}}, {Extent(0, 0), Extent(1, 0), Extent(2, 0)});
  EXPECT_EQ(freed(), (std::set<NodeId>{0}));
  EXPECT_EQ(quarantine_.held_bytes(), 2 * 4096u);
  for (const NodeId node : {1, 2, 3}) EXPECT_TRUE(quarantine_.AwaitsEndOn(node));
  EXPECT_FALSE(quarantine_.AwaitsEndOn(0));
  // Silence, however often they are asked, frees nothing.
  ASSERT_TRUE(Eventually([&] { return asked() >= 3; }));
  EXPECT_EQ(freed(), (std::set<NodeId>{0}));
  Answer(2);
  ASSERT_TRUE(Eventually([&] { return !quarantine_.AwaitsEndOn(2); }));
  ASSERT_TRUE(Eventually([&] { return freed() == (std::set<NodeId>{0, 2}); }));
  EXPECT_EQ(quarantine_.held_bytes(), 4096u);
  quarantine_.Take({.job_id = 2, .open = {1}}, {Extent(1, 8192)});
  EXPECT_EQ(quarantine_.held_bytes(), 2 * 4096u);
  Answer(1);
  Answer(3);
  ASSERT_TRUE(Eventually([&] { return quarantine_.held_bytes() == 0; }));
  ASSERT_TRUE(Eventually([&] { return freed() == (std::set<NodeId>{0, 1, 2}); }));
  for (const NodeId node : {1, 2, 3}) EXPECT_FALSE(quarantine_.AwaitsEndOn(node));
}

TEST_F(SpaceQuarantineTest, WhatOthersHaveEndedIsFreeWhenItStops) {
  quarantine_.Stop();
  Abandon(1);
  Abandon(2);
  quarantine_.Take({}, {Extent(1, 0), Extent(2, 0)});
  EXPECT_TRUE(freed().empty());
  Answer(1);
  EndAbandonedWrites();
  quarantine_.Stop();
  EXPECT_EQ(freed(), (std::set<NodeId>{1}));
  EXPECT_EQ(quarantine_.held_bytes(), 4096u);
  EXPECT_EQ(asked(), 0);
}

TEST_F(SpaceQuarantineTest, WritesThatWereGivenUpHoldWhatNoJobHolds) {
  Abandon(1);
  Abandon(2);
  quarantine_.Take({}, {Extent(0, 0), Extent(1, 0)});
  quarantine_.Take({.job_id = 1, .open = {3}}, {Extent(2, 0), Extent(3, 0)});
  EXPECT_EQ(freed(), (std::set<NodeId>{0}));
  EXPECT_EQ(quarantine_.held_bytes(), 3 * 4096u);
  // No job runs on these two.
  EXPECT_FALSE(quarantine_.AwaitsEndOn(1));
  EXPECT_FALSE(quarantine_.AwaitsEndOn(2));
  Answer(3);
  ASSERT_TRUE(Eventually([&] { return freed() == (std::set<NodeId>{0, 3}); }));
  Answer(1);
  ASSERT_TRUE(Eventually([&] { return freed() == (std::set<NodeId>{0, 1, 3}); }));
  EXPECT_EQ(quarantine_.held_bytes(), 4096u);
  Answer(2);
  ASSERT_TRUE(Eventually([&] { return freed() == (std::set<NodeId>{0, 1, 2, 3}); }));
  EXPECT_EQ(quarantine_.held_bytes(), 0u);
}

TEST_F(SpaceQuarantineTest, WhatIsHeldAtTheEndStaysReserved) {
  quarantine_.Take({.job_id = 1, .open = {1}}, {Extent(1, 0)});
  quarantine_.Stop();
  const int before = asked();
  quarantine_.Take({.job_id = 2, .open = {1}}, {Extent(1, 4096)});
  EXPECT_EQ(quarantine_.held_bytes(), 2 * 4096u);
  quarantine_.Stop();
  EXPECT_EQ(asked(), before);
  EXPECT_TRUE(freed().empty());
}

}  // namespace
}  // namespace nacre::pool
