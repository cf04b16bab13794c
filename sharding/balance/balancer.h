#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sharding/shard_map.h"

namespace nacre {

/// What a shard holds and does, as its owner says.
struct ShardLoad {
  uint64_t bytes = 0;
  double operations_per_second = 0;
  bool known = false;  ///< Its owner has answered.
};

/// Decides which member should own which shard of a keyspace, and which shards are split and
/// merged. The member that leads asks once in a while, and carries out what is decided.
///
/// In the order of urgency: shards without a living owner get one; draining members are emptied;
/// and if nothing of this was to do, nothing is under way and the keyspace is not paused, one shard
/// is split, or one pair merged, or one shard moved to even out the members' loads.
///
/// A member's load is the sum of the weights of its shards. A shard's weight is half its part of
/// all operations, half its part of all bytes, and a small constant, by which idle shards are
/// spread in equal numbers.
///
/// Why it comes to rest. A move evens out two members by a part of the tolerated imbalance, so the
/// sum of the squares of the members' loads falls by a least amount. A shard that is split has more
/// than twice the bytes of one that a merge makes. What one round alone has seen is not acted upon,
/// and a shard that was moved rests.
///
/// What it remembers is only for calm: the next leader begins with a new one.
///
/// Thread safety: none.
class Balancer {
 public:
  // ---- What a number of ShardMap::Balance means that is 0. ----
  static constexpr uint32_t kImbalancePercent = 30;
  static constexpr uint64_t kSplitBytes = uint64_t{4} << 30;
  /// No shard is split since it is hot.
  static constexpr uint64_t kSplitOperationsPerSecond = 0;
  /// No shards are merged.
  static constexpr uint64_t kMergeBytes = 0;

  /// So many shards leave draining members at a time.
  static constexpr size_t kMovesAtOnce = 2;
  /// A shard that got its owner less than so long ago is not moved again, save from a draining
  /// member; nor is one split, or a pair merged, that was to be less than so long ago.
  static constexpr std::chrono::seconds kRest{30};
  /// What is wrong is mended when consecutive rounds have seen it, the first and the last so far
  /// apart: longer than the loads are measured apart, so that two measurements say so.
  static constexpr std::chrono::milliseconds kSeenFor{1500};
  /// Loads are evened out if they are uneven both now and on average, in which the operations of
  /// so long ago count a third.
  static constexpr std::chrono::seconds kAveragedOver{10};
  /// The weights of all shards are 1 by their loads, and so much by their number.
  static constexpr double kCountShare = 0.1;
  /// The weight of operations, and of bytes, is as if the keyspace had so many at least: the little
  /// that an idle keyspace does and has moves no shards.
  static constexpr double kIdleOperationsPerSecond = 1000;
  static constexpr double kIdleBytes = 64 << 20;
  /// A hot shard that is smaller is not split: it is a few keys that are hot, and splitting would
  /// go on without end.
  static constexpr uint64_t kHotSplitBytes = 1 << 20;
  /// A shard is cold, and may be merged, that does less than this percentage of what has a shard
  /// split, or less than so many operations if no number of them has.
  static constexpr double kColdPercent = 1;
  static constexpr double kColdOperationsPerSecond = 10;

  struct Round {
    const ShardMap& map;
    const std::vector<int64_t>& members;         ///< Those that live, ascending.
    const std::map<uint32_t, ShardLoad>& loads;  ///< By the shards' ids; one may lack.
    const std::set<uint32_t>& under_way;         ///< Shards being moved, split or merged.
    uint64_t now_nanos;
  };

  struct Decision {
    enum class Kind {
      kAssign,  ///< It has no living owner, and gets one.
      kMove,
      kSplit,
      kMerge,  ///< Both have the same owner.
    };
    Kind kind = Kind::kAssign;
    uint32_t shard = 0;
    uint32_t other = 0;  ///< Merge: the right-hand neighbour.
    int64_t member = 0;  ///< Assign and move: the one that gets it.
    std::string reason;  ///< A sentence for the log, with the figures that led to it.
  };

  /// What is to be done now. What was decided before and is neither in the map nor under way is
  /// decided again, some of it only after a rest.
  std::vector<Decision> Decide(const Round& round);

 private:
  class Scene;
  class Evenness;
  /// What has to be seen in consecutive rounds: two shards, or one, or a member.
  struct Sight {
    Decision::Kind kind;
    int64_t first = 0;
    int64_t second = 0;
    auto operator<=>(const Sight&) const = default;
  };
  struct Memory {
    int64_t owner = 0;    ///< The one that it had in the last round.
    ShardLoad load{};     ///< As it was known last.
    ShardLoad average{};  ///< The same with operations on average.
    uint64_t known_nanos = 0;
    std::array<std::optional<uint64_t>, 4> decided_nanos{};  ///< By kind of decision.
  };

  void Remember(const Round& round);
  std::optional<Decision> Split(const Round& round);
  std::optional<Decision> Merge(const Round& round, const Scene& scene);
  std::optional<Decision> Even(const Round& round, const Scene& scene);
  /// Whether this and earlier rounds have seen it, for long enough.
  bool Lasts(const Sight& sight, uint64_t now_nanos);
  bool WasDecided(uint32_t shard, Decision::Kind kind, uint64_t now_nanos) const;
  /// It got its owner a short time ago.
  bool Rests(uint32_t shard, uint64_t now_nanos) const;

  std::map<uint32_t, Memory> memory_;  ///< By the ids of the map's shards.
  std::map<Sight, uint64_t> seen_;     ///< Since when the rounds until the last one saw it.
  std::map<Sight, uint64_t> sees_;     ///< The same of the present round.
};

}  // namespace nacre
