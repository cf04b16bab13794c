// Goal: what is kept of a log beyond its use goes from its old end, never from the middle, and not
// before its readers have it, but for what is beyond the bound; a copy that is lost takes no other
// with it. Method: segments of 10 bytes with two copies.

#include "db/wal/kept_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace nacre {
namespace {

constexpr uint64_t kBytes = 10;

LogSegment Segment(uint64_t number, NodeId first = 0, NodeId second = 1) {
  LogSegment segment;
  segment.number = number;
  for (const NodeId node : {first, second}) {
    segment.copies.push_back({.start = {.offset = number * 100, .node = node}, .length = kBytes});
  }
  return segment;
}

std::vector<uint64_t> Numbers(const std::vector<LogSegment>& segments) {
  std::vector<uint64_t> numbers;
  for (const LogSegment& segment : segments) numbers.push_back(segment.number);
  return numbers;
}

/// Segments 1 to `count`; each has the sequences up to ten times its number.
KeptLog KeptSegments(uint64_t count) {
  KeptLog kept;
  for (uint64_t number = 1; number <= count; ++number) kept.Add(Segment(number), 10 * number);
  return kept;
}

using List = std::vector<uint64_t>;

TEST(KeptLogTest, NothingStaysWithoutLimits) {
  KeptLog kept = KeptSegments(3);
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.needed = kMaxSequenceNumber})), List({1, 2, 3}));
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptLogTest, TheLatestBytesStay) {
  KeptLog kept = KeptSegments(5);
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.bytes = 25, .needed = kMaxSequenceNumber})),
            List({1, 2, 3}));
  EXPECT_EQ(kept.bytes(), 20u);
}

TEST(KeptLogTest, WhatReadersNeedStaysUpToTheBound) {
  KeptLog kept = KeptSegments(5);
  // A reader has all up to 20: what has later ones stays.
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.readers_bytes = 1000, .needed = 20})), List({1, 2}));
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.readers_bytes = 1000, .needed = 29})), List());
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.readers_bytes = 20, .needed = 29})), List({3}));
  EXPECT_EQ(Numbers(kept.TakeUnneeded({.readers_bytes = 20, .needed = kMaxSequenceNumber})),
            List({4, 5}));
}

TEST(KeptLogTest, AllButTheNewestAreMarkedOnce) {
  KeptLog kept = KeptSegments(3);
  EXPECT_EQ(Numbers(kept.Unrecorded()), List({1, 2}));
  EXPECT_TRUE(kept.Unrecorded().front().kept);
  EXPECT_TRUE(kept.Recorded().empty());
  EXPECT_TRUE(kept.Unrecorded().empty());
  kept.Add(Segment(4), 40);
  EXPECT_EQ(Numbers(kept.Unrecorded()), List({3}));
  kept.Recorded();
  // One that the manifest has already is not written once more.
  KeptLog next;
  LogSegment known = Segment(1);
  known.kept = true;
  next.Add(known, 10);
  next.Add(Segment(2), 20);
  EXPECT_TRUE(next.Unrecorded().empty());
}

TEST(KeptLogTest, ACopyThatIsLeftIsFreedOnceThatIsRecorded) {
  KeptLog kept;
  kept.Add(Segment(1, 0, 1), 10);
  kept.Add(Segment(2, 1, 2), 20);
  kept.Recorded();
  EXPECT_TRUE(kept.LeaveNodes([](NodeId node) { return node == 0; }).empty());
  const std::vector<LogSegment> changed = kept.Unrecorded();
  ASSERT_EQ(Numbers(changed), List({1}));
  ASSERT_EQ(changed[0].copies.size(), 1u);
  EXPECT_EQ(changed[0].copies[0].start.node, 1u);
  const std::vector<ExtentAddr> freed = kept.Recorded();
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(freed[0].start.node, 0u);
  EXPECT_TRUE(kept.Recorded().empty());
  EXPECT_EQ(kept.bytes(), 2 * kBytes);
}

TEST(KeptLogTest, NoRecoveryDependsOnTheNewestOnceACopyIsLost) {
  KeptLog kept;
  kept.Add(Segment(1, 0, 1), 10);
  EXPECT_TRUE(kept.Unrecorded().empty());
  EXPECT_TRUE(kept.LeaveNodes([](NodeId node) { return node == 1; }).empty());
  const std::vector<LogSegment> changed = kept.Unrecorded();
  ASSERT_EQ(Numbers(changed), List({1}));
  EXPECT_TRUE(changed[0].kept);
  EXPECT_EQ(changed[0].copies.size(), 1u);
}

TEST(KeptLogTest, OneWithoutCopiesGoesWithAllBeforeIt) {
  KeptLog kept;
  kept.Add(Segment(1, 0, 1), 10);
  kept.Add(Segment(2, 2, 3), 20);
  kept.Add(Segment(3, 0, 1), 30);
  EXPECT_EQ(Numbers(kept.LeaveNodes([](NodeId node) { return node >= 2; })), List({1, 2}));
  EXPECT_TRUE(kept.contains(3));
  EXPECT_EQ(kept.bytes(), kBytes);
}

}  // namespace
}  // namespace nacre
