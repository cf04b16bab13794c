#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "table/index/point_index.h"

namespace nacre {

/// Decides where each key of a point index goes, before any byte is written. (Part of the
/// implementation of PointIndexBuilder; the functions of the hash are part of the format.)
class PointIndexLayout {
 public:
  static constexpr uint32_t kGroups = 20;
  /// Stands for a bucket whose moved keys found no place: only with absurd hash collisions.
  static constexpr uint32_t kNoSeed = 0xff;

  static uint32_t Fingerprint(uint64_t hash) { return hash & 0xfff; }
  static uint32_t Group(uint64_t hash) {
    return static_cast<uint32_t>(((hash >> 12 & 0xffff) * kGroups) >> 16);
  }
  /// The bucket of a moved key. Seeds give multipliers, not summands: sums would move all keys of a
  /// bucket alike, and in a small table some sets of keys would have no place under any of them.
  static uint64_t MovedBucket(const PointIndexShape& shape, uint64_t hash, uint32_t seed) {
    return shape.HomeBucket(hash * (0x9e3779b97f4a7c15 + seed * 0xd6e8feb86659fd92));
  }

  /// Assigns all entries to `bucket_count` buckets. False if some keys find no place, unless
  /// `give_up_some`: then their buckets get kNoSeed.
  bool Assign(const std::vector<PointIndexBuilder::Entry>& entries, uint64_t bucket_count,
              bool give_up_some);

  /// Calls `put(bucket, entry number)` for each entry that has a place, home keys of a bucket
  /// before those moved there.
  template <typename Put>
  void ForEach(Put put) const {
    for (uint64_t bucket = 0; bucket < home_.bucket_count; ++bucket) {
      for (uint32_t i = start_[bucket]; i < start_[bucket + 1]; ++i) {
        if ((moved_groups_[bucket] >> group_[i] & 1) == 0) put(bucket, order_[i]);
      }
    }
    for (const Move& move : moves_) put(move.bucket, move.entry);
  }
  uint32_t seed(uint64_t bucket) const { return seed_[bucket]; }
  uint32_t moved_groups(uint64_t bucket) const { return moved_groups_[bucket]; }

 private:
  struct Move {
    uint32_t bucket;
    uint32_t entry;
  };
  using Entries = std::vector<PointIndexBuilder::Entry>;

  /// The home keys of one overfull bucket, by group.
  struct Crowd {
    uint32_t excess;
    std::vector<uint32_t> entries;            ///< Entry numbers, those of a group together.
    std::array<uint32_t, kGroups + 1> begin;  ///< The begin of each group in `entries`.
    std::array<uint8_t, kGroups> by_size;     ///< Groups, the largest first.

    uint32_t size(uint32_t group) const { return begin[group + 1] - begin[group]; }
  };

  void SortByHome(const Entries& entries);
  std::vector<uint32_t> OverfullBuckets() const;
  void Gather(uint32_t bucket, Crowd* crowd) const;
  bool Relieve(const Entries& entries, uint32_t bucket, const Crowd& crowd);
  uint32_t TrySeed(const Entries& entries, const Crowd& crowd, uint32_t seed);
  bool TryGroup(const Entries& entries, const Crowd& crowd, uint32_t group, uint32_t seed);
  void UndoMoves(size_t kept);

  PointIndexShape home_;                ///< It only gives the bucket count.
  std::vector<uint32_t> start_;         ///< First place in order_ of each bucket, and the end.
  std::vector<uint32_t> order_;         ///< Entry numbers by home bucket.
  std::vector<uint8_t> group_;          ///< The group of order_[i].
  std::vector<uint8_t> used_;           ///< Slots taken or promised, by bucket.
  std::vector<uint8_t> seed_;           ///< Indexed by bucket.
  std::vector<uint32_t> moved_groups_;  ///< Indexed by bucket.
  std::vector<Move> moves_;
};

}  // namespace nacre
