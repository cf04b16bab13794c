#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sharding/balance/balance_options.h"
#include "sharding/balance/balancer.h"
#include "sharding/shard_map.pb.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {

/// A keyspace, its members, and the balancer of the one that leads.
class BalancedKeyspace {
 public:
  using Decision = Balancer::Decision;
  using Kind = Decision::Kind;
  using Decisions = std::vector<Decision>;

  static constexpr uint64_t kSecond = 1'000'000'000;
  static constexpr uint64_t kRound = 2 * kSecond;
  /// Rounds that are longer than any rest.
  static constexpr int kLong = 40;

  struct Shard {
    uint32_t id;
    int64_t owner;
    ShardLoad load{};
    int busy_rounds = 0;  ///< It is under way for so many more.
  };

  explicit BalancedKeyspace(std::vector<int64_t> members_then) : members(std::move(members_then)) {}

  void Add(int64_t owner, double operations, uint64_t bytes = 0) {
    shards.push_back(
        {.id = next_id++,
         .owner = owner,
         .load = {.bytes = bytes, .operations_per_second = operations, .known = true}});
  }
  Shard& At(uint32_t id) { return *std::ranges::find(shards, id, &Shard::id); }

  ShardMap Map() const {
    ShardMap map;
    EXPECT_TRUE(IsOk(ShardMap::Make(BytewiseComparator(), {}, &map)));
    sharding::Map message;
    EXPECT_TRUE(message.ParseFromString(map.Serialize()));
    message.clear_shards();
    for (size_t i = 0; i < shards.size(); ++i) {
      sharding::Shard* const added = message.add_shards();
      added->set_id(shards[i].id);
      if (i > 0) added->set_begin({static_cast<char>(i >> 8), static_cast<char>(i)});
      added->set_owner(shards[i].owner);
    }
    EXPECT_TRUE(IsOk(ShardMap::Parse(message.SerializeAsString(), BytewiseComparator(), &map)));
    for (const int64_t member : draining) map.SetDraining(member, true);
    map.SetBalance(balance);
    return map;
  }

  /// One round; time goes on, but nothing that was decided is done.
  Decisions Decide() {
    std::map<uint32_t, ShardLoad> loads;
    std::set<uint32_t> under_way;
    for (Shard& shard : shards) {
      if (shard.busy_rounds == 0) {
        loads[shard.id] = shard.load;
      } else {
        under_way.insert(shard.id);
        --shard.busy_rounds;
      }
    }
    now_nanos += kRound;
    return balancer.Decide({.map = Map(),
                            .members = members,
                            .loads = loads,
                            .under_way = under_way,
                            .now_nanos = now_nanos});
  }

  void Apply(const Decision& decision, int busy_rounds) {
    Shard& shard = At(decision.shard);
    const auto next = shards.begin() + (&shard - shards.data()) + 1;
    ++counts[decision.kind];
    shard.busy_rounds = busy_rounds;
    EXPECT_FALSE(decision.reason.empty());
    switch (decision.kind) {
      case Kind::kAssign:
      case Kind::kMove:
        EXPECT_NE(shard.owner, decision.member);
        EXPECT_TRUE(std::ranges::binary_search(members, decision.member));
        shard.owner = decision.member;
        return;
      case Kind::kSplit: {
        shard.load.bytes /= 2;
        shard.load.operations_per_second *= skew;
        Shard half = shard;
        half.id = next_id++;
        half.load.operations_per_second *= (1 - skew) / skew;
        shards.insert(next, half);
        return;
      }
      case Kind::kMerge:
        ASSERT_EQ(next->id, decision.other);
        EXPECT_EQ(next->owner, shard.owner);
        shard.load.bytes += next->load.bytes;
        shard.load.operations_per_second += next->load.operations_per_second;
        shards.erase(next);
        return;
    }
  }
  /// One round, whose decisions are carried out, which takes `busy_rounds` more.
  Decisions Step(int busy_rounds = 0) {
    Decisions decisions = Decide();
    for (const Decision& decision : decisions) Apply(decision, busy_rounds);
    return decisions;
  }
  /// Rounds until one decides something, but not more than `rounds`.
  Decisions StepUntilAny(int rounds = kLong) {
    Decisions decisions;
    for (int i = 0; i < rounds && decisions.empty(); ++i) decisions = Step();
    return decisions;
  }
  /// Rounds until nothing was decided for a long time; false if that does not happen soon.
  bool Settle(Random* random, int rounds) {
    int quiet = 0;
    while (quiet < kLong && --rounds > 0) {
      const bool decided = !Step(static_cast<int>(random->Uniform(3))).empty();
      quiet = decided ? 0 : quiet + 1;
    }
    return quiet == kLong;
  }

  int ShardsOf(int64_t member) const {
    return static_cast<int>(std::ranges::count(shards, member, &Shard::owner));
  }
  int Changes() const {
    int sum = 0;
    for (const auto& [kind, count] : counts) sum += count;
    return sum;
  }

  std::vector<int64_t> members;
  std::vector<int64_t> draining{};
  ShardMap::Balance balance{};
  std::vector<Shard> shards{};
  double skew = 0.5;  ///< So much of the operations stays with the left half.
  Balancer balancer{};
  uint64_t now_nanos = kSecond;
  uint32_t next_id = 0;
  std::map<Kind, int> counts{};
};

/// The weights of a keyspace as the header has them, computed anew.
struct WeighedKeyspace {
  explicit WeighedKeyspace(const BalancedKeyspace& keyspace) {
    double operations = 0;
    double bytes = 0;
    for (const auto& shard : keyspace.shards) {
      operations += shard.load.operations_per_second;
      bytes += static_cast<double>(shard.load.bytes);
    }
    operations = std::max(operations, Balancer::kIdleOperationsPerSecond);
    bytes = std::max(bytes, Balancer::kIdleBytes);
    for (const int64_t member : keyspace.members) of_member[member] = 0;
    for (const auto& shard : keyspace.shards) {
      const double weight = 0.5 * shard.load.operations_per_second / operations +
                            0.5 * static_cast<double>(shard.load.bytes) / bytes +
                            Balancer::kCountShare / static_cast<double>(keyspace.shards.size());
      of_shard[shard.id] = weight;
      of_member[shard.owner] += weight;
      sum += weight;
    }
  }
  std::map<uint32_t, double> of_shard;
  std::map<int64_t, double> of_member;
  double sum = 0;
};

/// No move of one shard would even out two members that differ by more than is tolerated.
inline void ExpectEven(const BalancedKeyspace& keyspace, const std::string& which) {
  const WeighedKeyspace weighed(keyspace);
  const double tolerated = weighed.sum / static_cast<double>(keyspace.members.size()) *
                           EffectiveBalance(keyspace.balance).imbalance_percent / 100;
  for (const auto& shard : keyspace.shards) {
    for (const auto& [member, weight] : weighed.of_member) {
      const double gap = weighed.of_member.at(shard.owner) - weight;
      const double gap_then = std::abs(gap - 2 * weighed.of_shard.at(shard.id));
      EXPECT_FALSE(gap > tolerated * 1.0001 && gap - gap_then > tolerated / 3 * 1.0001)
          << which << ": shard " << shard.id << " should go from member " << shard.owner << " to "
          << member << ": " << gap << ", " << gap_then << ", " << tolerated;
    }
  }
}

}  // namespace nacre
