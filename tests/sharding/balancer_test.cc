// Goal: shards without an owner get one and draining members are emptied, whatever else holds; the
// members' loads are evened out in few moves, after which there is rest; and what was split is not
// merged again, nor the reverse.
// Method: a model of a keyspace, in which what the balancer decides takes a round or a few; loads
// that are given, and loads, members and owners that are drawn at random.

#include "sharding/balance/balancer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sharding/balance/balance_options.h"
#include "tests/sharding/balanced_keyspace.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

using Keyspace = BalancedKeyspace;
using Decision = Keyspace::Decision;
using Kind = Keyspace::Kind;
using Decisions = Keyspace::Decisions;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSecond = Keyspace::kSecond;

/// Up to 6 members and 40 shards, with loads some of which are much larger than others.
Keyspace Draw(Random* random) {
  Keyspace keyspace({});
  const uint64_t members = 1 + random->Uniform(6);
  for (uint64_t i = 0; i < members; ++i) keyspace.members.push_back(static_cast<int64_t>(10 + i));
  const uint64_t shards = 1 + random->Uniform(40);
  const bool idle = random->OneIn(4);
  const uint64_t owners = 1 + random->Uniform(members);
  for (uint64_t i = 0; i < shards; ++i) {
    const int64_t owner = random->OneIn(10) ? static_cast<int64_t>(random->Uniform(10))
                                            : keyspace.members[random->Uniform(owners)];
    const double operations = idle ? 0 : static_cast<double>(random->Skewed(16));
    keyspace.Add(owner, operations, idle ? 0 : random->Skewed(31));
  }
  return keyspace;
}

TEST(BalancerTest, DefaultsAreFilledIn) {
  ShardMap::Balance balance = EffectiveBalance({});
  EXPECT_FALSE(balance.paused);
  EXPECT_EQ(balance.imbalance_percent, Balancer::kImbalancePercent);
  EXPECT_EQ(balance.split_bytes, Balancer::kSplitBytes);
  EXPECT_EQ(balance.split_operations_per_second, 0U);
  EXPECT_EQ(balance.merge_bytes, 0U);

  balance = EffectiveBalance({.paused = true,
                              .imbalance_percent = 5,
                              .split_bytes = 100,
                              .split_operations_per_second = 7,
                              .merge_bytes = 80});
  EXPECT_TRUE(balance.paused);
  EXPECT_EQ(balance.imbalance_percent, 5U);
  EXPECT_EQ(balance.split_bytes, 100U);
  EXPECT_EQ(balance.split_operations_per_second, 7U);
  EXPECT_EQ(balance.merge_bytes, 50U);
}

TEST(BalancerTest, ShardsWithoutAnOwnerGetOneAtOnceAndNothingElseMoves) {
  Keyspace keyspace({12, 14, 16});
  keyspace.balance.paused = true;
  keyspace.draining = {16};
  keyspace.Add(12, 5000);
  for (int i = 0; i < 6; ++i) keyspace.Add(14, 10);
  keyspace.Add(17, 3000);
  keyspace.Add(0, 10);
  const Decisions decisions = keyspace.Step();
  ASSERT_EQ(decisions.size(), 2U);
  for (const Decision& decision : decisions) {
    EXPECT_EQ(decision.kind, Kind::kAssign);
    EXPECT_EQ(decision.member, 14);  // It has more shards, but less to do.
  }
  EXPECT_EQ(decisions[0].shard, 7U);
  EXPECT_EQ(decisions[0].reason, "member 17 is gone");
  EXPECT_EQ(decisions[1].shard, 8U);
  EXPECT_EQ(decisions[1].reason, "it has no owner");
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, NewShardsAreSpreadInEqualNumbers) {
  Keyspace keyspace({1, 2, 3});
  for (int i = 0; i < 12; ++i) keyspace.Add(0, 0);
  for (auto& shard : keyspace.shards) shard.load.known = false;
  EXPECT_EQ(keyspace.Step().size(), 12U);
  for (const int64_t member : keyspace.members) EXPECT_EQ(keyspace.ShardsOf(member), 4);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, ShardsOfADeadMemberAreSpreadByWhatTheyDidLast) {
  Keyspace keyspace({1, 2, 3});
  keyspace.Add(1, 10'000);
  keyspace.Add(2, 10'000);
  for (int i = 0; i < 4; ++i) keyspace.Add(3, 5000);
  keyspace.Add(3, 20'000);
  EXPECT_TRUE(keyspace.Step().empty());
  keyspace.members = {1, 2};
  for (auto& shard : keyspace.shards) shard.load.known = shard.owner != 3;
  EXPECT_EQ(keyspace.Step().size(), 5U);
  // The one that did as much as the other four is alone.
  EXPECT_EQ(keyspace.ShardsOf(keyspace.At(6).owner), 2);
}

TEST(BalancerTest, WhereAllDrainAnyMemberServes) {
  Keyspace keyspace({1, 2});
  keyspace.draining = {1, 2};
  for (int i = 0; i < 8; ++i) keyspace.Add(i == 0 ? 7 : 1, 0);
  const Decisions decisions = keyspace.Step();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].member, 2);
  // None is better than the other.
  EXPECT_TRUE(keyspace.StepUntilAny().empty());

  keyspace.members.clear();
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, DrainingMembersAreEmptiedAFewShardsAtATime) {
  Keyspace keyspace({17, 18, 19});
  keyspace.balance.paused = true;
  keyspace.draining = {3, 17};
  for (int i = 0; i < 9; ++i) keyspace.Add(17, 100);
  keyspace.Add(18, 300);
  int rounds = 0;
  for (; rounds < 100 && keyspace.ShardsOf(17) > 0; ++rounds) {
    const Decisions decisions = keyspace.Step(2);
    for (const Decision& decision : decisions) {
      EXPECT_EQ(decision.kind, Kind::kMove);
      EXPECT_EQ(decision.reason, "member 17 is draining");
    }
    const auto busy = std::ranges::count_if(
        keyspace.shards, [](const auto& shard) { return shard.busy_rounds > 0; });
    EXPECT_LE(busy, 2);
  }
  EXPECT_GT(rounds, 9);
  EXPECT_EQ(keyspace.ShardsOf(18), 4);
  EXPECT_EQ(keyspace.ShardsOf(19), 6);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, AMoveFromADrainingMemberIsNotDecidedTwiceWhileItIsUnderWay) {
  Keyspace keyspace({1, 2});
  keyspace.draining = {1};
  for (int i = 0; i < 3; ++i) keyspace.Add(1, 0);
  keyspace.At(0).busy_rounds = 1;
  const Decisions decisions = keyspace.Decide();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].shard, 1U);
  keyspace.At(0).busy_rounds = keyspace.At(1).busy_rounds = 1;
  EXPECT_TRUE(keyspace.Decide().empty());
  // What could not be moved is tried again.
  EXPECT_EQ(keyspace.Decide().size(), 2U);
}

TEST(BalancerTest, LoadsAreEvenedOutByTheMoveThatDoesMost) {
  Keyspace keyspace({12, 13, 14});
  for (const int operations : {4000, 2600, 1500}) keyspace.Add(12, operations);
  keyspace.Add(13, 500);
  keyspace.Add(14, 400);
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kMove);
  EXPECT_EQ(decisions[0].shard, 0U);
  EXPECT_EQ(decisions[0].member, 14);
  EXPECT_EQ(decisions[0].reason,
            "member 12 does 8,100 of 9,000 operations a second, its share is 3,000");
}

TEST(BalancerTest, BytesAreLoadToo) {
  Keyspace keyspace({12, 13});
  for (int i = 0; i < 4; ++i) keyspace.Add(12, 0, 512 * kMiB);
  for (int i = 0; i < 4; ++i) keyspace.Add(13, 0, 2 * kMiB);
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].reason, "member 12 has 2.0 GiB of 2.0 GiB, its share is 1.0 GiB");
}

TEST(BalancerTest, WhatIsToleratedStays) {
  Keyspace keyspace({1, 2});
  for (int i = 0; i < 20; ++i) keyspace.Add(i < 11 ? 1 : 2, 0);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.balance.imbalance_percent = 15;
  EXPECT_EQ(keyspace.StepUntilAny().size(), 1U);
}

TEST(BalancerTest, WhatIsTooLargeToMoveDoesNotKeepOthersFromMoving) {
  Keyspace keyspace({1, 2, 3});
  keyspace.Add(1, 50'000);
  for (int i = 0; i < 4; ++i) keyspace.Add(2, 9000);
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].shard, 1U);
  EXPECT_EQ(decisions[0].member, 3);
}

TEST(BalancerTest, AMemberThatJoinsGetsShards) {
  Keyspace keyspace({1});
  for (int i = 0; i < 9; ++i) keyspace.Add(1, 0);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.members = {1, 2};
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].reason, "member 1 has 9 of 9 shards, its share is 4.5");
  while (!keyspace.StepUntilAny().empty()) {
  }
  EXPECT_EQ(keyspace.ShardsOf(2), 4);
  keyspace.members = {1, 2, 3};
  while (!keyspace.StepUntilAny().empty()) {
  }
  for (const int64_t member : keyspace.members) EXPECT_EQ(keyspace.ShardsOf(member), 3);
  EXPECT_EQ(keyspace.Changes(), 4 + 3);
}

TEST(BalancerTest, OneMoveAtATime) {
  Keyspace keyspace({1, 2});
  for (int i = 0; i < 8; ++i) keyspace.Add(1, 1000);
  ASSERT_EQ(keyspace.StepUntilAny().size(), 1U);
  keyspace.At(0).busy_rounds = 100;
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, BurstsMoveNothing) {
  Keyspace keyspace({1, 2});
  for (int i = 0; i < 8; ++i) keyspace.Add(1 + i % 2, 1000);
  for (int round = 0; round < 100; ++round) {
    // Each is over before the next round, or begins in the other member.
    const uint32_t shard = round % 8;
    const double before = keyspace.At(shard).load.operations_per_second;
    keyspace.At(shard).load.operations_per_second = 9000;
    EXPECT_TRUE(keyspace.Step().empty());
    keyspace.At(shard).load.operations_per_second = before;
    if (round % 3 == 0) {
      EXPECT_TRUE(keyspace.Step().empty());
    }
  }
  for (int round = 0; round < 100; ++round) {
    // Smaller ones may last a little longer.
    keyspace.At(0).load.operations_per_second = round % 20 < 2 ? 3000 : 1000;
    EXPECT_TRUE(keyspace.Step().empty());
  }
  // Nor do rounds that follow one another faster than loads are measured.
  keyspace.At(0).load.operations_per_second = keyspace.At(2).load.operations_per_second = 9000;
  EXPECT_TRUE(keyspace.Step().empty());
  for (int i = 0; i < 4; ++i) {
    keyspace.now_nanos -= Keyspace::kRound - kSecond / 4;
    EXPECT_TRUE(keyspace.Step().empty());
  }
  EXPECT_EQ(keyspace.StepUntilAny(5).size(), 1U);
}

TEST(BalancerTest, AShardThatWasMovedRests) {
  Keyspace keyspace({1, 2});
  for (const int operations : {5000, 3000, 3000}) keyspace.Add(1, operations);
  ASSERT_EQ(keyspace.StepUntilAny().size(), 1U);
  ASSERT_EQ(keyspace.At(0).owner, 2);
  const uint64_t moved_nanos = keyspace.now_nanos;
  // Now it should go back, and the other one of its member would make no difference.
  keyspace.At(1).load.operations_per_second = 4900;
  keyspace.At(2).load.operations_per_second = 0;
  keyspace.Add(2, 12'000);
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].shard, 0U);
  EXPECT_GE(keyspace.now_nanos - moved_nanos, 30 * kSecond);

  // So does one that was moved by request.
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.At(0).owner = 2;
  const uint64_t asked_nanos = keyspace.now_nanos;
  EXPECT_EQ(keyspace.StepUntilAny().at(0).shard, 0U);
  EXPECT_GE(keyspace.now_nanos - asked_nanos, 30 * kSecond);

  // No rest keeps it from leaving a member that drains.
  keyspace.draining = {1};
  EXPECT_EQ(keyspace.Step().at(0).shard, 0U);
}

TEST(BalancerTest, PausedIsPaused) {
  Keyspace keyspace({1, 2});
  keyspace.balance = {.paused = true, .split_bytes = 100 * kMiB, .merge_bytes = 40 * kMiB};
  for (int i = 0; i < 8; ++i) keyspace.Add(1, 1);
  keyspace.Add(1, 9000, 200 * kMiB);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.balance.paused = false;
  EXPECT_FALSE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, AMemberThatDoesNotAnswerIsLeftAlone) {
  Keyspace keyspace({1, 2, 3});
  keyspace.balance = {.split_bytes = 100 * kMiB, .merge_bytes = 40 * kMiB};
  keyspace.Add(1, 0, 300 * kMiB);
  for (int i = 0; i < 8; ++i) keyspace.Add(1, 3000);
  for (int i = 0; i < 8; ++i) keyspace.Add(2, 2000, 20 * kMiB);
  for (int i = 0; i < 2; ++i) keyspace.Add(3, 0, kMiB);
  for (auto& shard : keyspace.shards) shard.load.known = shard.owner == 2;
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  // One that answers not for all is no better.
  keyspace.At(18).load.known = true;
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.At(17).load.known = true;
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kMerge);
  EXPECT_EQ(keyspace.StepUntilAny().at(0).member, 3);
  // What cannot be is not known.
  for (const double operations : {std::nan(""), -1.0, HUGE_VAL, 1e300}) {
    keyspace.At(0).load = {.bytes = 300 * kMiB, .operations_per_second = operations, .known = true};
    keyspace.StepUntilAny();
    EXPECT_EQ(keyspace.counts[Kind::kSplit], 0);
  }
}

TEST(BalancerTest, LargeShardsAreSplitOneAtATime) {
  Keyspace keyspace({1});
  keyspace.Add(1, 0, Balancer::kSplitBytes);
  keyspace.Add(1, 1e9, 3 * Balancer::kSplitBytes);
  keyspace.Add(1, 0, Balancer::kSplitBytes + kMiB);
  EXPECT_TRUE(keyspace.Step().empty());
  Decisions decisions = keyspace.Step(1);
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kSplit);
  EXPECT_EQ(decisions[0].shard, 1U);
  EXPECT_EQ(decisions[0].reason, "it has 12.0 GiB, more than 4.0 GiB");
  EXPECT_TRUE(keyspace.Step().empty());
  decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].shard, 3U);
  // Its other half was split a short time ago.
  EXPECT_EQ(keyspace.StepUntilAny().at(0).shard, 2U);
  EXPECT_EQ(keyspace.StepUntilAny().at(0).shard, 1U);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, WhatCannotBeDoneIsSeldomTried) {
  for (const Kind kind : {Kind::kSplit, Kind::kMerge, Kind::kMove}) {
    Keyspace keyspace({1, 2});
    keyspace.balance.merge_bytes = 30 * kMiB;
    keyspace.Add(1, 0, kind == Kind::kSplit ? 2 * Balancer::kSplitBytes : 0);
    if (kind != Kind::kSplit) keyspace.Add(kind == Kind::kMerge ? 1 : 2, 0);
    if (kind == Kind::kMerge) keyspace.Add(2, 0, 40 * kMiB);
    size_t tried = 0;
    for (int i = 0; i < 300; ++i) {
      for (const Decision& decision : keyspace.Decide()) {
        EXPECT_EQ(decision.kind, kind);
        ++tried;
      }
    }
    EXPECT_GE(tried, 18U);
    EXPECT_LE(tried, 20U);
  }
}

TEST(BalancerTest, HotShardsAreSplitUntilTheyAreSmall) {
  Keyspace keyspace({1});
  keyspace.balance.split_operations_per_second = 10'000;
  keyspace.skew = 1;  // All goes to one key.
  keyspace.Add(1, 10'001, 4 * kMiB);
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kSplit);
  EXPECT_EQ(decisions[0].reason, "it does 10,001 operations a second, more than 10,000");
  while (!keyspace.StepUntilAny().empty()) {
  }
  EXPECT_EQ(keyspace.counts[Kind::kSplit], 3);
}

TEST(BalancerTest, SmallColdNeighboursAreMerged) {
  Keyspace keyspace({1});
  keyspace.Add(1, 9, 10 * kMiB);
  keyspace.Add(1, 9, 10 * kMiB);
  keyspace.Add(1, 10, 10 * kMiB);  // It is not cold.
  keyspace.Add(1, 0, 25 * kMiB);   // This is too large.
  keyspace.Add(1, 0, 10 * kMiB);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.balance.merge_bytes = 30 * kMiB;
  const Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kMerge);
  EXPECT_EQ(decisions[0].shard, 0U);
  EXPECT_EQ(decisions[0].other, 1U);
  EXPECT_EQ(decisions[0].reason,
            "they have 20.0 MiB together, less than 30.0 MiB, and do 18 operations a second");
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
  keyspace.balance.split_operations_per_second = 2000;
  EXPECT_TRUE(keyspace.StepUntilAny().empty());  // Now 20 is too many, but 18 and 10 are 30 MiB.
  keyspace.At(2).load.bytes -= 1;
  EXPECT_EQ(keyspace.StepUntilAny().at(0).other, 2U);
}

TEST(BalancerTest, NeighboursMeetBeforeTheyAreMerged) {
  Keyspace keyspace({1, 2});
  keyspace.balance.merge_bytes = 30 * kMiB;
  keyspace.Add(1, 0, 10 * kMiB);
  keyspace.Add(2, 0, 10 * kMiB);
  Decisions decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kMove);
  EXPECT_EQ(decisions[0].shard, 1U);
  EXPECT_EQ(decisions[0].member, 1);
  decisions = keyspace.StepUntilAny();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Kind::kMerge);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, NeighboursDoNotMeetInAMemberThatDrains) {
  Keyspace keyspace({1, 2});
  keyspace.balance.merge_bytes = 30 * kMiB;
  keyspace.draining = {1, 2};
  keyspace.Add(1, 0);
  keyspace.Add(2, 0);
  EXPECT_TRUE(keyspace.StepUntilAny().empty());
}

TEST(BalancerTest, WhatIsSplitIsNotMerged) {
  for (const uint64_t merge_bytes : {uint64_t{1} << 40, 49 * kMiB}) {
    Keyspace keyspace({1, 2});
    keyspace.balance = {.split_bytes = 100 * kMiB, .merge_bytes = merge_bytes};
    keyspace.Add(1, 0, 101 * kMiB);
    keyspace.Add(2, 0, 98 * kMiB);
    for (int i = 0; i < 400; ++i) keyspace.Step();
    EXPECT_EQ(keyspace.counts[Kind::kSplit], 1);
    EXPECT_EQ(keyspace.counts[Kind::kMerge], 0);
  }
}

/// Loads that stay as they are: from any state the last decision comes soon.
TEST(BalancerTest, LoadsThatStayComeToRest) {
  const uint64_t seed = TestSeed(9001);
  for (uint64_t i = 0; i < 300; ++i) {
    Random random(seed + i);
    Keyspace keyspace = Draw(&random);
    const std::string which = "seed " + std::to_string(seed + i);
    ASSERT_TRUE(keyspace.Settle(&random, 1000)) << which;
    ExpectEven(keyspace, which);
    const auto shards = static_cast<int>(keyspace.shards.size());
    EXPECT_LE(keyspace.counts[Kind::kMove], shards) << which;

    // A member dies, and another one drains.
    if (keyspace.members.size() < 3) continue;
    keyspace.counts.clear();
    keyspace.members.erase(keyspace.members.begin() + 1);
    keyspace.draining = {keyspace.members[0]};
    ASSERT_TRUE(keyspace.Settle(&random, 1000)) << which;
    EXPECT_EQ(keyspace.ShardsOf(keyspace.members[0]), 0);
    keyspace.members.erase(keyspace.members.begin());
    ExpectEven(keyspace, which);
    EXPECT_LE(keyspace.counts[Kind::kMove], 2 * shards) << which;
  }
}

/// Splits, merges and moves at a time do not cause one another for ever.
TEST(BalancerTest, SplitsAndMergesComeToRest) {
  const uint64_t seed = TestSeed(9002);
  for (uint64_t i = 0; i < 100; ++i) {
    Random random(seed + i);
    Keyspace keyspace = Draw(&random);
    keyspace.skew = 0.1 + 0.8 * random.NextDouble();
    keyspace.balance.split_bytes = (128 + random.Uniform(512)) * kMiB;
    keyspace.balance.merge_bytes = random.Uniform(512) * kMiB;
    if (random.OneIn(2)) keyspace.balance.split_operations_per_second = 2000 + random.Skewed(16);
    const std::string which = "seed " + std::to_string(seed + i);
    ASSERT_TRUE(keyspace.Settle(&random, 20'000)) << which;
    ExpectEven(keyspace, which);
    std::map<Kind, int> counts = keyspace.counts;
    EXPECT_LE(counts[Kind::kMove], 2 * (40 + counts[Kind::kSplit] + counts[Kind::kMerge])) << which;
  }
}

/// Loads that are a little different each time: moves are few, though there may always be one more.
TEST(BalancerTest, LoadsThatFlutterMoveLittle) {
  const uint64_t seed = TestSeed(9003);
  for (uint64_t i = 0; i < 100; ++i) {
    Random random(seed + i);
    Keyspace keyspace = Draw(&random);
    keyspace.balance.split_bytes = uint64_t{1} << 40;
    const std::vector<Keyspace::Shard> drawn = keyspace.shards;
    for (int round = 0; round < 1000; ++round) {
      for (size_t j = 0; j < drawn.size(); ++j) {
        keyspace.shards[j].load.operations_per_second =
            drawn[j].load.operations_per_second * (0.8 + 0.4 * random.NextDouble());
      }
      keyspace.Step(static_cast<int>(random.Uniform(3)));
    }
    EXPECT_LE(keyspace.Changes(), 2 * static_cast<int>(drawn.size())) << "seed " << seed + i;
  }
}

}  // namespace
}  // namespace nacre
