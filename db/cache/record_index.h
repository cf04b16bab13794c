#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "db/cache/record_ring.h"

namespace nacre {

/// Where the records of a cache are, by hash, and how often each was asked for: buckets of eight
/// words, each in one cache line.
///
///     | tag of the hash 17 | uses 2 | in the main ring 1 | position 44 |    0: free
///
/// Thread safety: Bucket, and what may be done with its words, may be called from many threads at
/// once, and while another one changes the index, which one at a time may do.
class RecordIndex {
 public:
  using Word = std::atomic<uint64_t>;
  static constexpr size_t kBucketWords = 8;
  static constexpr int kUsesMax = 3;

  /// `words` are zero, as many as whole buckets have, aligned to 64 bytes, and outlive this.
  RecordIndex(Word* words, size_t count)
      : words_(words), buckets_(static_cast<uint32_t>(count / kBucketWords)) {}

  std::span<Word> Bucket(uint64_t hash) {
    const uint64_t bucket = (hash & UINT32_MAX) * buckets_ >> 32;
    return {words_ + bucket * kBucketWords, kBucketWords};
  }

  static bool Matches(uint64_t word, uint64_t hash) {
    return word != 0 && word >> kTagShift == TagOf(hash);
  }
  static bool InMain(uint64_t word) { return (word & kMainBit) != 0; }
  static uint64_t PositionOf(uint64_t word) { return word & (kMainBit - 1); }
  /// Counts a use of what `word`, read from `slot`, leads to. It writes nothing once there have
  /// been kUsesMax, so what is hot stays in the caches of all processors.
  static void CountUse(Word* slot, uint64_t word) {
    if (UsesOf(word) == kUsesMax) return;
    slot->compare_exchange_strong(word, word + kOneUse, std::memory_order_relaxed);
  }

  /// Lets the hash lead to `position`. Of a full bucket, the entry that was used least goes.
  void Put(uint64_t hash, bool in_main, uint64_t position, int uses);
  /// How often what is at `position` was used, which the index then forgets; -1: it had no place
  /// here.
  int Remove(uint64_t hash, bool in_main, uint64_t position);

 private:
  static constexpr uint64_t kMainBit = uint64_t{1} << RecordRing::kPositionBits;
  static constexpr int kUsesShift = RecordRing::kPositionBits + 1;
  static constexpr uint64_t kOneUse = uint64_t{1} << kUsesShift;
  static constexpr int kTagShift = kUsesShift + 2;

  static uint64_t TagOf(uint64_t hash) { return hash << 8 >> kTagShift; }
  static int UsesOf(uint64_t word) { return static_cast<int>(word >> kUsesShift & kUsesMax); }

  Word* const words_;
  const uint32_t buckets_;
};

/// The hashes of records that were let go unused, as far back as the caller says: one that comes
/// again was let go too early.
///
/// Thread safety: none.
class GhostList {
 public:
  static constexpr size_t kBucketWords = 8;

  /// `words` are zero, as many as whole buckets have, and outlive this.
  GhostList(uint64_t* words, size_t count)
      : words_(words), buckets_(static_cast<uint32_t>(count / kBucketWords)) {}

  void Add(uint64_t hash);
  /// Whether the hash is among the latest `horizon` that were added. It is no more.
  bool Take(uint64_t hash, uint32_t horizon);

 private:
  std::span<uint64_t> Bucket(uint64_t hash) {
    const uint64_t bucket = (hash & UINT32_MAX) * buckets_ >> 32;
    return {words_ + bucket * kBucketWords, kBucketWords};
  }

  /// Each has half of the hash in the upper half, and its number among all that were added.
  uint64_t* const words_;
  const uint32_t buckets_;
  uint32_t added_ = 0;
};

}  // namespace nacre
