#include "table/index/point_index_layout.h"

#include <algorithm>
#include <bit>

namespace nacre {

bool PointIndexLayout::Assign(const Entries& entries, uint64_t bucket_count, bool give_up_some) {
  home_.bucket_count = bucket_count;
  SortByHome(entries);
  used_.resize(bucket_count);
  for (uint64_t bucket = 0; bucket < bucket_count; ++bucket) {
    used_[bucket] = static_cast<uint8_t>(
        std::min<uint32_t>(start_[bucket + 1] - start_[bucket], kPointIndexSlots));
  }
  seed_.assign(bucket_count, 0);
  moved_groups_.assign(bucket_count, 0);
  moves_.clear();

  // Those with most to move first, while there are most places to find.
  Crowd crowd;
  for (const uint32_t bucket : OverfullBuckets()) {
    Gather(bucket, &crowd);
    if (Relieve(entries, bucket, crowd)) continue;
    if (!give_up_some) return false;
    moved_groups_[bucket] = (1u << kGroups) - 1;
    seed_[bucket] = kNoSeed;
  }
  return true;
}

void PointIndexLayout::SortByHome(const Entries& entries) {
  // A counting sort; the homes are computed twice, which is cheaper than keeping them.
  start_.assign(home_.bucket_count + 1, 0);
  for (const auto& entry : entries) ++start_[home_.HomeBucket(entry.hash) + 1];
  for (uint64_t bucket = 0; bucket < home_.bucket_count; ++bucket) {
    start_[bucket + 1] += start_[bucket];
  }
  order_.resize(entries.size());
  group_.resize(entries.size());
  std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const uint32_t place = next[home_.HomeBucket(entries[i].hash)]++;
    order_[place] = i;
    group_[place] = static_cast<uint8_t>(Group(entries[i].hash));
  }
}

std::vector<uint32_t> PointIndexLayout::OverfullBuckets() const {
  std::vector<uint32_t> overfull;
  for (uint32_t bucket = 0; bucket < home_.bucket_count; ++bucket) {
    if (start_[bucket + 1] - start_[bucket] > kPointIndexSlots) overfull.push_back(bucket);
  }
  std::stable_sort(overfull.begin(), overfull.end(), [this](uint32_t a, uint32_t b) {
    return start_[a + 1] - start_[a] > start_[b + 1] - start_[b];
  });
  return overfull;
}

void PointIndexLayout::Gather(uint32_t bucket, Crowd* crowd) const {
  const uint32_t first = start_[bucket];
  const uint32_t last = start_[bucket + 1];
  crowd->excess = last - first - kPointIndexSlots;
  crowd->begin.fill(0);
  for (uint32_t i = first; i < last; ++i) ++crowd->begin[group_[i] + 1];
  for (uint32_t group = 0; group < kGroups; ++group) {
    crowd->begin[group + 1] += crowd->begin[group];
    crowd->by_size[group] = static_cast<uint8_t>(group);
  }
  crowd->entries.resize(last - first);
  auto next = crowd->begin;
  for (uint32_t i = first; i < last; ++i) crowd->entries[next[group_[i]]++] = order_[i];
  // Insertion: most sizes are 0 to 2, and this runs for every third bucket.
  for (uint32_t i = 1; i < kGroups; ++i) {
    const uint8_t group = crowd->by_size[i];
    uint32_t place = i;
    for (; place > 0 && crowd->size(crowd->by_size[place - 1]) < crowd->size(group); --place) {
      crowd->by_size[place] = crowd->by_size[place - 1];
    }
    crowd->by_size[place] = group;
  }
}

/// Moves as few groups as a short search can tell, because absent keys of a moved group cost a
/// second bucket.
bool PointIndexLayout::Relieve(const Entries& entries, uint32_t bucket, const Crowd& crowd) {
  // No seed can do with fewer groups than this.
  int least = 0;
  for (uint32_t moved = 0; moved < crowd.excess; ++least) moved += crowd.size(crowd.by_size[least]);

  constexpr uint32_t kSeedsForFewGroups = 3;
  const size_t kept = moves_.size();
  uint32_t best_seed = kNoSeed;
  int best_groups = kGroups + 1;
  for (uint32_t seed = 0; seed < kNoSeed; ++seed) {
    const uint32_t groups = TrySeed(entries, crowd, seed);
    UndoMoves(kept);
    if (groups == 0) continue;
    if (std::popcount(groups) < best_groups) {
      best_seed = seed;
      best_groups = std::popcount(groups);
    }
    if (best_groups == least || seed >= kSeedsForFewGroups) break;
  }
  if (best_seed == kNoSeed) return false;
  moved_groups_[bucket] = TrySeed(entries, crowd, best_seed);
  seed_[bucket] = static_cast<uint8_t>(best_seed);
  used_[bucket] = static_cast<uint8_t>(crowd.entries.size() - (moves_.size() - kept));
  return true;
}

/// Moves groups under `seed` until the excess is gone; the set of them, or 0 if it cannot be done
/// (and then some moves are to be undone).
uint32_t PointIndexLayout::TrySeed(const Entries& entries, const Crowd& crowd, uint32_t seed) {
  uint32_t groups = 0;
  uint32_t left = crowd.excess;
  for (uint32_t i = 0; i < kGroups && left > 0; ++i) {
    const uint32_t group = crowd.by_size[i];
    const uint32_t size = crowd.size(group);
    if (size == 0 || size > left || !TryGroup(entries, crowd, group, seed)) continue;
    groups |= 1u << group;
    left -= size;
  }
  // One that is larger than what is left makes room for others here.
  for (uint32_t i = kGroups; i-- > 0 && left > 0;) {
    const uint32_t group = crowd.by_size[i];
    if ((groups >> group & 1) != 0 || crowd.size(group) <= left) continue;
    if (!TryGroup(entries, crowd, group, seed)) continue;
    groups |= 1u << group;
    left = 0;
  }
  return left == 0 ? groups : 0;
}

/// Moves a whole group, or nothing.
bool PointIndexLayout::TryGroup(const Entries& entries, const Crowd& crowd, uint32_t group,
                                uint32_t seed) {
  const size_t kept = moves_.size();
  for (uint32_t i = crowd.begin[group]; i < crowd.begin[group + 1]; ++i) {
    const uint32_t entry = crowd.entries[i];
    const auto target = static_cast<uint32_t>(MovedBucket(home_, entries[entry].hash, seed));
    if (used_[target] == kPointIndexSlots) {  // As the overfull bucket itself is.
      UndoMoves(kept);
      return false;
    }
    ++used_[target];
    moves_.push_back({target, entry});
  }
  return true;
}

void PointIndexLayout::UndoMoves(size_t kept) {
  for (size_t i = kept; i < moves_.size(); ++i) --used_[moves_[i].bucket];
  moves_.resize(kept);
}

}  // namespace nacre
