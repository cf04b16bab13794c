#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "nacre/slice.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What a transaction has done with a key.
struct TrackedKey {
  /// No other transaction has written the key between this and its lock or, without locks, may have
  /// written it since.
  SequenceNumber sequence = kMaxSequenceNumber;
  uint32_t writes = 0;
  uint32_t reads = 0;  ///< Got for update.
  bool exclusive = false;

  void Count(SequenceNumber since, bool read_only, bool now_exclusive) {
    sequence = std::min(sequence, since);
    ++(read_only ? reads : writes);
    exclusive |= now_exclusive;
  }
};

/// The keys of a transaction, or of what it did since a save point, by family. A method that throws
/// (a lack of memory) changes no counts.
/// Thread safety: none.
class KeyTracker {
 public:
  void Track(uint32_t family, const Slice& key, SequenceNumber sequence, bool read_only,
             bool exclusive) {
    Reserve(family, key)->Count(sequence, read_only, exclusive);
  }
  /// The key, with counts of zero if it was not tracked; stays where it is until it is removed.
  /// This lets a key be tracked in two places, or in none.
  TrackedKey* Reserve(uint32_t family, const Slice& key) {
    return &families_[family][key.ToString()];
  }

  enum class Untracked : uint8_t { kNotTracked, kCounted, kRemoved };
  /// Undoes one Track with `read_only`.
  Untracked UntrackRead(uint32_t family, const Slice& key);
  /// Undoes what `later`, which was tracked here too, counts of a key. Whether the key is gone.
  bool Subtract(uint32_t family, const std::string& key, const TrackedKey& later);
  /// Adds all of `later`.
  void Merge(const KeyTracker& later);

  /// Null if it is not tracked.
  const TrackedKey* Find(uint32_t family, const Slice& key) const;
  /// Calls `visit(family, key, tracked)` for each.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [family, keys] : families_) {
      for (const auto& [key, tracked] : keys) visit(family, key, tracked);
    }
  }
  size_t size() const;
  void Clear() { families_.clear(); }

 private:
  using Keys = std::unordered_map<std::string, TrackedKey>;
  std::unordered_map<uint32_t, Keys> families_;
};

}  // namespace nacre
