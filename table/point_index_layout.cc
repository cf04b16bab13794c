#include "table/point_index_layout.h"

#include <cassert>

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
  constexpr uint32_t kVariants = 8;
  for (const uint32_t bucket : OverfullBuckets()) {
    const uint32_t count = start_[bucket + 1] - start_[bucket];
    bool placed = false;
    for (uint32_t variant = 0; variant < kVariants && !placed; ++variant) {
      placed = MoveGroups(entries, bucket, ChooseGroups(bucket, count - kPointIndexSlots, variant));
    }
    if (placed) continue;
    if (!give_up_some) return false;
    moved_groups_[bucket] = ChooseGroups(bucket, count - kPointIndexSlots, 0);
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

/// The set of groups to move so that `excess` keys, or as few more as possible, leave `bucket`.
/// Large groups first, because each group that is moved sends absent keys to a second bucket.
/// `variant` varies the choice among groups of one size.
uint32_t PointIndexLayout::ChooseGroups(uint32_t bucket, uint32_t excess, uint32_t variant) const {
  std::array<uint32_t, kGroups> size{};
  for (uint32_t i = start_[bucket]; i < start_[bucket + 1]; ++i) ++size[group_[i]];
  const uint32_t first = variant * 7 % kGroups;

  uint32_t chosen = 0;
  while (excess > 0) {
    // The largest group that is not too large, else the smallest one there is.
    uint32_t best = kGroups;
    for (uint32_t i = 0; i < kGroups; ++i) {
      const uint32_t group = (first + i) % kGroups;
      if (size[group] == 0 || (chosen >> group & 1) != 0) continue;
      if (best == kGroups) {
        best = group;
      } else if (size[best] > excess ? size[group] < size[best]
                                     : size[group] <= excess && size[group] > size[best]) {
        best = group;
      }
    }
    assert(best < kGroups);
    chosen |= 1u << best;
    excess -= std::min(excess, size[best]);
  }
  return chosen;
}

/// Looks for a seed that sends all keys of `groups` to buckets with room.
bool PointIndexLayout::MoveGroups(const Entries& entries, uint32_t bucket, uint32_t groups) {
  const uint8_t used_before = used_[bucket];
  uint32_t staying = 0;
  std::vector<uint32_t> leaving;
  for (uint32_t i = start_[bucket]; i < start_[bucket + 1]; ++i) {
    if ((groups >> group_[i] & 1) == 0) {
      ++staying;
    } else {
      leaving.push_back(order_[i]);
    }
  }
  used_[bucket] = static_cast<uint8_t>(staying);
  for (uint32_t seed = 0; seed < kNoSeed; ++seed) {
    attempt_.clear();
    for (const uint32_t entry : leaving) {
      const auto target = static_cast<uint32_t>(MovedBucket(home_, entries[entry].hash, seed));
      if (used_[target] == kPointIndexSlots) break;
      ++used_[target];
      attempt_.push_back({target, entry});
    }
    if (attempt_.size() == leaving.size()) {
      moves_.insert(moves_.end(), attempt_.begin(), attempt_.end());
      seed_[bucket] = static_cast<uint8_t>(seed);
      moved_groups_[bucket] = groups;
      return true;
    }
    for (const Move& move : attempt_) --used_[move.bucket];
  }
  used_[bucket] = used_before;
  return false;
}

}  // namespace nacre
