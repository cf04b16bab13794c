#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"

namespace nacre {

/// Static hash table from user-key hash to the first (newest) record of that key: 64-byte
/// buckets, one cache line a lookup.
///
/// A bucket (all little-endian; drawn in docs/formats.md): 12 x 16 bits, each 12 bits of
/// fingerprint and 4 bits of length class; 12 x 24 bits of record address in units of
/// 1 << alignment_shift bytes; then 4 bytes that tell how many slots are used, and which
/// fingerprints of keys at home here were pushed on to following buckets. The section ends with a
/// header-like trailer: bucket count, the 16 record lengths of the classes, alignment shift.
inline constexpr size_t kPointIndexBucketBytes = 64;

/// Where a record may be: `length` bytes at `offset` hold the whole record if its key is the one
/// that was asked for.
struct RecordCandidate {
  uint64_t offset = 0;
  uint32_t length = 0;
};

class PointIndexBuilder {
 public:
  /// One entry per distinct user key, its newest record. Any order of hashes; offsets ascend.
  void Add(uint64_t hash, uint64_t offset, uint32_t length);
  size_t entries() const { return entries_.size(); }
  /// Upper bound of what Finish appends for `entries` entries.
  static size_t BytesBound(size_t entries);
  /// `alignment_shift`: every offset is a multiple of 1 << shift and below 1 << (24 + shift).
  void Finish(uint32_t alignment_shift, std::string* dst) const;

 private:
  struct Entry {
    uint64_t hash;
    uint32_t position;
    uint32_t length;
  };
  std::vector<Entry> entries_;
};

/// The few numbers that turn a hash into a bucket's place and a bucket's slot into an address:
/// enough to look up a bucket that was read from the remote index.
struct PointIndexShape {
  uint64_t bucket_count = 0;
  uint32_t alignment_shift = 0;
  uint32_t class_length[16] = {};

  /// From the trailer at the end of the section. False if malformed.
  static bool Parse(const Slice& section, PointIndexShape* shape);
  /// Trailer bytes at the end of the section.
  static constexpr size_t kTrailerBytes = 128;

  uint64_t HomeBucket(uint64_t hash) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * bucket_count) >> 64);
  }
};

/// Looks hashes up in `buckets`, which views the buckets of a section (trailer apart).
/// Most candidates one lookup can give; more than a few are vanishingly rare.
inline constexpr int kMaxCandidates = 16;

class PointIndex {
 public:
  PointIndex() = default;
  PointIndex(const PointIndexShape& shape, const char* buckets)
      : shape_(shape), buckets_(buckets) {}

  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(buckets_ + shape_.HomeBucket(hash) * kPointIndexBucketBytes);
  }
  /// Fills `candidates` (room for kMaxCandidates) and returns how many; 0: the key is not there.
  int Lookup(uint64_t hash, RecordCandidate* candidates) const;

  /// For a remote lookup: searches one bucket in `bucket` (64 bytes), which is `distance` buckets
  /// after home. `*more` tells whether the next bucket must be searched too.
  static int LookupBucket(const PointIndexShape& shape, const char* bucket, int distance,
                          uint64_t hash, RecordCandidate* candidates, bool* more);

  const PointIndexShape& shape() const { return shape_; }

 private:
  PointIndexShape shape_;
  const char* buckets_ = nullptr;
};

}  // namespace nacre
