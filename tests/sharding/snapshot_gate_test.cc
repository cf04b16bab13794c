// Goal: a batch and a snapshot wait for each other, but for a batch that was found prepared, which
// would wait in a circle: the snapshot fails instead.
// Method: batches and snapshots of one gate, one of which waits in a thread of its own.

#include "sharding/snapshots/snapshot_gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "util/clock.h"

namespace nacre {
namespace {

using std::chrono::seconds;

class SnapshotGateTest : public testing::Test {
 protected:
  /// Returns once a snapshot has closed the gate.
  void AwaitClosed() {
    while (!gate_.Enter("probe", AtOnce()).IsTimedOut()) {
      gate_.Leave("probe");
      std::this_thread::yield();
    }
  }

  static Deadline Soon() { return Deadline::After(Clock::System(), seconds(20)); }
  static Deadline AtOnce() { return Deadline::After(Clock::System(), seconds(0)); }

  SnapshotGate gate_;
  SnapshotGate::Token token_ = 0;
};

TEST_F(SnapshotGateTest, ABatchWaitsForASnapshot) {
  ASSERT_TRUE(gate_.Close(Soon(), &token_).ok());
  EXPECT_TRUE(gate_.Enter("batch", AtOnce()).IsTimedOut());
  gate_.Open(token_);
  EXPECT_TRUE(gate_.Enter("batch", AtOnce()).ok());
  EXPECT_FALSE(gate_.empty());
  gate_.Leave("batch");
  EXPECT_TRUE(gate_.empty());
}

TEST_F(SnapshotGateTest, ABatchThatWasFoundPreparedDoesNotWaitAndTheSnapshotFails) {
  ASSERT_TRUE(gate_.Close(Soon(), &token_).ok());
  ASSERT_TRUE(gate_.Stop(token_));
  gate_.EnterAtOnce("batch");
  EXPECT_FALSE(gate_.IsStopped(token_));
  EXPECT_FALSE(gate_.taking());
  EXPECT_FALSE(gate_.Stop(token_));
  SnapshotGate::Token next = 0;
  EXPECT_TRUE(gate_.Close(AtOnce(), &next).IsTimedOut());  // It waits for the batch.
  gate_.Leave("batch");
  EXPECT_TRUE(gate_.Close(AtOnce(), &next).ok());
}

TEST_F(SnapshotGateTest, ASnapshotThatWaitsForABatchFailsForOneThatWasFoundPrepared) {
  ASSERT_TRUE(gate_.Enter("first", Soon()).ok());
  Status closed;
  std::thread snapshot([&] { closed = gate_.Close(Soon(), &token_); });
  AwaitClosed();
  gate_.EnterAtOnce("found");
  snapshot.join();
  EXPECT_TRUE(closed.IsAborted()) << closed.ToString();
}

TEST_F(SnapshotGateTest, AnotherPartOfABatchThatASnapshotWaitsForDoesNotEndIt) {
  ASSERT_TRUE(gate_.Enter("batch", Soon()).ok());
  Status closed;
  std::thread snapshot([&] { closed = gate_.Close(Soon(), &token_); });
  AwaitClosed();
  gate_.EnterAtOnce("batch");
  gate_.Leave("batch");
  EXPECT_FALSE(gate_.empty());
  gate_.Leave("batch");
  snapshot.join();
  EXPECT_TRUE(closed.ok()) << closed.ToString();
}

}  // namespace
}  // namespace nacre
