#include "sharding/balance/balancer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <utility>

#include "sharding/balance/balance_options.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre {
namespace {

using Decision = Balancer::Decision;
using Kind = Decision::Kind;

/// What is more is no figure, but a fault of the member that says so.
constexpr double kOperationsMax = 1e15;
/// A move is worth it that evens out two members by one in so many of the tolerated imbalance.
constexpr double kWorth = 3;

/// 8,100.
std::string Grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Bytes(double bytes) {
  return FormatBytes(static_cast<uint64_t>(std::clamp(bytes, 0.0, 1e19)));
}

ShardLoad LoadOf(const Balancer::Round& round, uint32_t shard) {
  const auto found = round.loads.find(shard);
  ShardLoad load = found == round.loads.end() ? ShardLoad() : found->second;
  load.known =
      load.known && load.operations_per_second >= 0 && load.operations_per_second <= kOperationsMax;
  return load;
}

/// What a shard, a member or a keyspace has.
struct Amounts {
  double operations = 0;
  double bytes = 0;
  double shards = 0;

  void Add(const Amounts& other) {
    operations += other.operations;
    bytes += other.bytes;
    shards += other.shards;
  }
};

/// What each of the amounts weighs.
struct Weights {
  double of_operation;
  double of_byte;
  double of_shard;

  explicit Weights(const Amounts& all)
      : of_operation(0.5 / std::max(all.operations, Balancer::kIdleOperationsPerSecond)),
        of_byte(0.5 / std::max(all.bytes, Balancer::kIdleBytes)),
        of_shard(Balancer::kCountShare / all.shards) {}
  double Of(const Amounts& amounts) const {
    return amounts.operations * of_operation + amounts.bytes * of_byte + amounts.shards * of_shard;
  }
};

/// A living member.
struct Place {
  int64_t member;
  bool draining;
  bool known = true;  ///< The loads of all of its shards are.
  Amounts has{};
  double weight = 0;
};

/// Why `place` should have less, by what it has most too much of.
std::string ReasonOf(const Place& place, const Amounts& all, size_t places,
                     const Weights& weights) {
  const auto of = static_cast<double>(places);
  const double operations = (place.has.operations - all.operations / of) * weights.of_operation;
  const double bytes = (place.has.bytes - all.bytes / of) * weights.of_byte;
  const double shards = (place.has.shards - all.shards / of) * weights.of_shard;
  if (operations >= bytes && operations >= shards) {
    return fmt::format("member {} does {} of {} operations a second, its share is {}", place.member,
                       Grouped(place.has.operations), Grouped(all.operations),
                       Grouped(all.operations / of));
  }
  if (bytes >= shards) {
    return fmt::format("member {} has {} of {}, its share is {}", place.member,
                       Bytes(place.has.bytes), Bytes(all.bytes), Bytes(all.bytes / of));
  }
  return fmt::format("member {} has {:.0f} of {:.0f} shards, its share is {:.1f}", place.member,
                     place.has.shards, all.shards, all.shards / of);
}

/// Why the shard is too large, or too hot; empty if it is neither. `*excess`: how many times.
std::string SplitReason(const ShardLoad& load, const ShardMap::Balance& balance, double* excess) {
  const double by_bytes =
      static_cast<double>(load.bytes) / static_cast<double>(balance.split_bytes);
  const auto hot = static_cast<double>(balance.split_operations_per_second);
  const bool may_be_hot = hot > 0 && load.bytes >= Balancer::kHotSplitBytes;
  const double by_operations = may_be_hot ? load.operations_per_second / hot : 0;
  *excess = std::max(by_bytes, by_operations);
  if (*excess <= 1) return "";
  return by_bytes >= by_operations ? fmt::format("it has {}, more than {}", FormatBytes(load.bytes),
                                                 FormatBytes(balance.split_bytes))
                                   : fmt::format("it does {} operations a second, more than {}",
                                                 Grouped(load.operations_per_second), Grouped(hot));
}

/// Why the neighbours should be one; empty if they should not.
std::string MergeReason(const ShardLoad& left, const ShardLoad& right,
                        const ShardMap::Balance& balance) {
  const double cold =
      balance.split_operations_per_second == 0
          ? Balancer::kColdOperationsPerSecond
          : static_cast<double>(balance.split_operations_per_second) * Balancer::kColdPercent / 100;
  const bool small =
      left.bytes < balance.merge_bytes && right.bytes < balance.merge_bytes - left.bytes;
  if (!left.known || !right.known || !small || left.operations_per_second >= cold ||
      right.operations_per_second >= cold) {
    return "";
  }
  return fmt::format("they have {} together, less than {}, and do {} operations a second",
                     FormatBytes(left.bytes + right.bytes), FormatBytes(balance.merge_bytes),
                     Grouped(left.operations_per_second + right.operations_per_second));
}

}  // namespace

/// What there is in one round: the shards by what they have, and the members by what they own.
class Balancer::Scene {
 public:
  /// A shard whose load is not known has what it had when it was, or else what others have on
  /// average.
  Scene(const Round& round, const std::map<uint32_t, Memory>& memory, ShardLoad Memory::*load)
      : amounts_(AmountsOf(round.map, memory, load)), weights_(Sum(amounts_)) {
    for (const int64_t member : round.members) {
      places_.push_back({.member = member, .draining = round.map.IsDraining(member)});
    }
    const auto& shards = round.map.shards();
    for (size_t i = 0; i < shards.size(); ++i) {
      Place* const owner = Find(shards[i].owner);
      if (owner == nullptr) continue;
      Give(i, owner);
      owner->known = owner->known && LoadOf(round, shards[i].id).known;
    }
  }

  double WeightOf(size_t shard) const { return weights_.Of(amounts_[shard]); }
  const Weights& weights() const { return weights_; }
  const std::vector<Place>& places() const { return places_; }
  const Place* Find(int64_t member) const {
    const auto found = std::ranges::find(places_, member, &Place::member);
    return found == places_.end() ? nullptr : &*found;
  }
  Place* Find(int64_t member) {
    const auto found = std::ranges::find(places_, member, &Place::member);
    return found == places_.end() ? nullptr : &*found;
  }
  /// The member that has least of those that are not draining; null if all are.
  Place* Least() {
    Place* least = nullptr;
    for (Place& place : places_) {
      if (!place.draining && (least == nullptr || place.weight < least->weight)) least = &place;
    }
    return least;
  }
  void Give(size_t shard, Place* place) {
    place->has.Add(amounts_[shard]);
    place->weight = weights_.Of(place->has);
  }

  std::vector<Decision> Assign(const Round& round);
  /// Moves shards from members that are draining; `moves` more may be under way.
  std::vector<Decision> Drain(const Round& round, size_t moves);

 private:
  static Amounts Sum(const std::vector<Amounts>& amounts) {
    Amounts sum;
    for (const Amounts& some : amounts) sum.Add(some);
    return sum;
  }
  static std::vector<Amounts> AmountsOf(const ShardMap& map,
                                        const std::map<uint32_t, Memory>& memory,
                                        ShardLoad Memory::*load_of);

  const std::vector<Amounts> amounts_;  ///< By index of the shard.
  const Weights weights_;
  std::vector<Place> places_;  ///< By the ids of the members.
};

std::vector<Amounts> Balancer::Scene::AmountsOf(const ShardMap& map,
                                                const std::map<uint32_t, Memory>& memory,
                                                ShardLoad Memory::*load_of) {
  Amounts known;
  for (const auto& [id, of] : memory) {
    const ShardLoad& load = of.*load_of;
    if (!load.known) continue;
    known.Add({load.operations_per_second, static_cast<double>(load.bytes), 1});
  }
  const double count = std::max(known.shards, 1.0);
  std::vector<Amounts> amounts;
  amounts.reserve(map.size());
  for (const ShardMap::Shard& shard : map.shards()) {
    const ShardLoad& load = memory.at(shard.id).*load_of;
    amounts.push_back(load.known
                          ? Amounts{load.operations_per_second, static_cast<double>(load.bytes), 1}
                          : Amounts{known.operations / count, known.bytes / count, 1});
  }
  return amounts;
}

/// Which members' loads can be evened out, and what a move does for it.
class Balancer::Evenness {
 public:
  Evenness(const Scene& scene, uint32_t imbalance_percent) : scene_(scene) {
    for (const Place& place : scene.places()) {
      if (place.draining || !place.known) continue;
      places_.push_back(&place);
      all_.Add(place.has);
    }
    if (places_.empty()) return;
    tolerated_ =
        scene.weights().Of(all_) / static_cast<double>(places_.size()) * imbalance_percent / 100;
    std::ranges::stable_sort(places_, std::greater<>(), &Place::weight);
  }

  /// Those with most first; of equals the one with the lowest id.
  const std::vector<const Place*>& places() const { return places_; }
  /// The first by its id of those that have least.
  const Place& least() const {
    return **std::ranges::min_element(
        places_, {}, [](const Place* place) { return std::pair(place->weight, place->member); });
  }
  /// By how much the two members' loads come nearer if the shard is moved; 0 if that is not worth
  /// it.
  double Gain(int64_t from, int64_t to, size_t shard) const {
    const double gap = scene_.Find(from)->weight - scene_.Find(to)->weight;
    const double gain = gap - std::abs(gap - 2 * scene_.WeightOf(shard));
    return gap > tolerated_ && gain >= tolerated_ / kWorth ? gain : 0;
  }
  std::string ReasonOf(const Place& place) const {
    return nacre::ReasonOf(place, all_, places_.size(), scene_.weights());
  }

 private:
  const Scene& scene_;
  std::vector<const Place*> places_;
  Amounts all_;
  double tolerated_ = 0;
};

std::vector<Decision> Balancer::Scene::Assign(const Round& round) {
  const auto& shards = round.map.shards();
  std::vector<size_t> alone;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (Find(shards[i].owner) == nullptr) alone.push_back(i);
  }
  if (!alone.empty() && Least() == nullptr) {
    // A shard had better have an owner for a while than none.
    for (Place& place : places_) place.draining = false;
  }
  // The large ones first, since the small ones then fill the gaps.
  std::ranges::stable_sort(alone, std::greater<>(), [&](size_t i) { return WeightOf(i); });
  std::vector<Decision> decisions;
  for (const size_t i : alone) {
    Place* const least = Least();
    decisions.push_back({.kind = Kind::kAssign,
                         .shard = shards[i].id,
                         .member = least->member,
                         .reason = shards[i].owner == 0
                                       ? "it has no owner"
                                       : fmt::format("member {} is gone", shards[i].owner)});
    Give(i, least);
  }
  return decisions;
}

std::vector<Decision> Balancer::Scene::Drain(const Round& round, size_t moves) {
  std::vector<Decision> decisions;
  const auto& shards = round.map.shards();
  for (size_t i = 0; i < shards.size() && decisions.size() < moves; ++i) {
    const Place* const owner = Find(shards[i].owner);
    Place* const least = Least();
    if (owner == nullptr || !owner->draining || least == nullptr ||
        round.under_way.contains(shards[i].id)) {
      continue;
    }
    decisions.push_back({.kind = Kind::kMove,
                         .shard = shards[i].id,
                         .member = least->member,
                         .reason = fmt::format("member {} is draining", owner->member)});
    Give(i, least);
  }
  return decisions;
}

std::vector<Decision> Balancer::Decide(const Round& round) {
  assert(std::ranges::is_sorted(round.members));
  Remember(round);
  if (round.members.empty()) return {};
  Scene scene(round, memory_, &Memory::average);
  std::vector<Decision> decisions = scene.Assign(round);
  const size_t busy = std::min(round.under_way.size(), kMovesAtOnce);
  for (Decision& move : scene.Drain(round, kMovesAtOnce - busy)) {
    decisions.push_back(std::move(move));
  }
  if (decisions.empty() && round.under_way.empty() && !round.map.balance().paused) {
    // All look each time, since each has to see in consecutive rounds what it acts upon.
    std::optional<Decision> decision = Split(round);
    std::optional<Decision> merge = Merge(round, scene);
    std::optional<Decision> move = Even(round, scene);
    if (!decision) decision = std::move(merge);
    if (!decision) decision = std::move(move);
    if (decision) decisions.push_back(*std::move(decision));
  }
  // What was seen before something changes is no news of what is then.
  seen_ = decisions.empty() ? std::move(sees_) : std::map<Sight, uint64_t>();
  sees_.clear();
  for (const Decision& decision : decisions) {
    // A merged pair is remembered by the one that vanishes, as the other may have more neighbours.
    const uint32_t shard = decision.kind == Kind::kMerge ? decision.other : decision.shard;
    memory_.at(shard).decided_nanos[static_cast<size_t>(decision.kind)] = round.now_nanos;
  }
  return decisions;
}

void Balancer::Remember(const Round& round) {
  std::map<uint32_t, Memory> memory;
  for (const ShardMap::Shard& shard : round.map.shards()) {
    Memory& of = memory[shard.id];
    const auto found = memory_.find(shard.id);
    if (found != memory_.end()) of = found->second;
    // It rests from when it was moved, which may have taken a while, or have been asked for.
    const bool was_moved = found != memory_.end() && of.owner != shard.owner;
    if (was_moved) of.decided_nanos[static_cast<size_t>(Kind::kMove)] = round.now_nanos;
    of.owner = shard.owner;
    const ShardLoad load = LoadOf(round, shard.id);
    if (!load.known) continue;
    const double before = of.average.operations_per_second;
    const double passed = static_cast<double>(round.now_nanos - of.known_nanos);
    const double fades =
        of.load.known ? std::exp(-passed / static_cast<double>(Nanos(kAveragedOver))) : 0;
    of.load = of.average = load;
    of.average.operations_per_second += (before - load.operations_per_second) * fades;
    of.known_nanos = round.now_nanos;
  }
  memory_ = std::move(memory);
}

std::optional<Decision> Balancer::Split(const Round& round) {
  const ShardMap::Balance balance = EffectiveBalance(round.map.balance());
  std::optional<Decision> decision;
  double most = 0;
  for (const ShardMap::Shard& shard : round.map.shards()) {
    const ShardLoad load = LoadOf(round, shard.id);
    double excess = 0;
    if (!load.known || WasDecided(shard.id, Kind::kSplit, round.now_nanos)) continue;
    std::string reason = SplitReason(load, balance, &excess);
    if (reason.empty() || !Lasts({Kind::kSplit, shard.id}, round.now_nanos)) continue;
    if (excess <= most) continue;
    most = excess;
    decision = {.kind = Kind::kSplit, .shard = shard.id, .reason = std::move(reason)};
  }
  return decision;
}

std::optional<Decision> Balancer::Merge(const Round& round, const Scene& scene) {
  const ShardMap::Balance balance = EffectiveBalance(round.map.balance());
  const auto& shards = round.map.shards();
  std::optional<Decision> decision;
  for (size_t i = 0; i + 1 < shards.size(); ++i) {
    const ShardMap::Shard& left = shards[i];
    const ShardMap::Shard& right = shards[i + 1];
    std::string reason = MergeReason(LoadOf(round, left.id), LoadOf(round, right.id), balance);
    const bool is_merge = left.owner == right.owner;
    const bool waits = is_merge
                           ? WasDecided(right.id, Kind::kMerge, round.now_nanos)
                           : Rests(right.id, round.now_nanos) || scene.Find(left.owner)->draining;
    if (reason.empty() || waits || !Lasts({Kind::kMerge, left.id, right.id}, round.now_nanos)) {
      continue;
    }
    if (is_merge) {
      return Decision{
          .kind = Kind::kMerge, .shard = left.id, .other = right.id, .reason = std::move(reason)};
    }
    if (decision) continue;
    decision = {.kind = Kind::kMove,
                .shard = right.id,
                .member = left.owner,
                .reason = fmt::format("shard {} is to be merged with it: {}", left.id, reason)};
  }
  return decision;
}

std::optional<Decision> Balancer::Even(const Round& round, const Scene& scene) {
  const uint32_t percent = EffectiveBalance(round.map.balance()).imbalance_percent;
  const Scene scene_now(round, memory_, &Memory::load);
  const Evenness now(scene_now, percent);
  const Evenness average(scene, percent);
  if (average.places().size() < 2) return std::nullopt;
  const int64_t to = average.least().member;
  const auto& shards = round.map.shards();
  std::optional<Decision> decision;
  for (const Place* const from : average.places()) {
    size_t best = 0;
    double most = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
      if (shards[i].owner != from->member || Rests(shards[i].id, round.now_nanos)) continue;
      const double gain = average.Gain(from->member, to, i);
      if (gain <= most) continue;
      best = i;
      most = gain;
    }
    // A burst leaves its mark on the average, and is over; or it goes on, and is none on average.
    if (most == 0 || now.Gain(from->member, to, best) == 0) continue;
    if (!Lasts({Kind::kMove, from->member}, round.now_nanos) || decision) continue;
    decision = {.kind = Kind::kMove,
                .shard = shards[best].id,
                .member = to,
                .reason = average.ReasonOf(*from)};
  }
  return decision;
}

bool Balancer::Lasts(const Sight& sight, uint64_t now_nanos) {
  const auto found = seen_.find(sight);
  const uint64_t since = found == seen_.end() ? now_nanos : found->second;
  sees_[sight] = since;
  return now_nanos - since >= Nanos(kSeenFor);
}

bool Balancer::WasDecided(uint32_t shard, Kind kind, uint64_t now_nanos) const {
  const std::optional<uint64_t>& at = memory_.at(shard).decided_nanos[static_cast<size_t>(kind)];
  return at && now_nanos - *at < Nanos(kRest);
}

bool Balancer::Rests(uint32_t shard, uint64_t now_nanos) const {
  return WasDecided(shard, Kind::kMove, now_nanos) || WasDecided(shard, Kind::kAssign, now_nanos);
}

}  // namespace nacre
