#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"

namespace nacre {

/// Static hash table from user-key hash to the first (newest) record of that key: 64-byte
/// buckets, one cache line a lookup for nine keys in ten and nearly all absent keys, two for the
/// others.
///
/// A bucket (little-endian; docs/formats.md):
///
///     offset size
///          0   24  12 x fixed16: fingerprint, 12 bits; above it, length class, 4 bits
///         24   36  12 x 24 bits: record offset in units of 1 << alignment_shift bytes
///         60    4  fixed32: slots used, 4 bits; seed, 8 bits; moved groups, 20 bits
///
/// Keys at home in a bucket fall into 20 groups by bits of their hash. When there are too many of
/// them, whole groups are moved, each key to a bucket that its hash and the seed give; the bit of
/// the group says so. So every lookup searches exactly one bucket, and false positives stay those
/// of one bucket's fingerprints.
///
/// The section ends with a trailer: counts, the 16 record lengths of the classes, alignment shift.
inline constexpr size_t kPointIndexBucketBytes = 64;
inline constexpr int kPointIndexSlots = 12;

/// A place where a record may be: `length` bytes at `offset` hold the whole record if its key is
/// the one that was asked for. It is trivial, so that room for many costs nothing.
struct RecordCandidate {
  uint64_t offset;
  uint32_t length;
};

/// Room that the candidates of a lookup take.
inline constexpr int kMaxCandidates = 16;
/// Returned by a lookup instead of a number of candidates: the key may be in the table, but the
/// index cannot say where, so it takes an iterator. This happens only for keys with an absurd
/// number of full 64-bit hash collisions. (The candidates then have length 0.)
inline constexpr int kTooManyCandidates = kMaxCandidates;
static_assert(kTooManyCandidates > kPointIndexSlots);

class PointIndexBuilder {
 public:
  /// `alignment_shift`: every offset is a multiple of 1 << shift and below 1 << (24 + shift).
  explicit PointIndexBuilder(uint32_t alignment_shift) : alignment_shift_(alignment_shift) {}

  /// One entry per distinct user key, its newest record. Any order of hashes.
  void Add(uint64_t hash, uint64_t offset, uint32_t length);
  size_t entries() const { return entries_.size(); }
  uint64_t hash(size_t i) const { return entries_[i].hash; }
  /// Upper bound of what Finish appends for `entries` entries.
  static size_t BytesBound(size_t entries);
  void Finish(std::string* dst) const;

 private:
  friend class PointIndexLayout;
  struct Entry {
    uint64_t hash;
    uint32_t position;  ///< Offset >> alignment_shift_.
    uint32_t length;
  };

  uint32_t alignment_shift_;
  uint64_t records_end_ = 0;
  std::vector<Entry> entries_;
};

/// The few numbers that turn a hash into a bucket's place and a bucket's slot into an address:
/// enough to look up a bucket that was read from the remote index.
struct PointIndexShape {
  uint64_t bucket_count = 0;
  uint64_t entries = 0;
  uint64_t records_end = 0;  ///< No candidate reaches beyond.
  uint32_t alignment_shift = 0;
  uint32_t class_length[16] = {};

  /// Decodes the trailer at the end of `section`, which may be the trailer alone. False if it is
  /// malformed or does not match the section's size.
  static bool Parse(const Slice& section, PointIndexShape* shape);
  /// Trailer bytes at the end of the section.
  static constexpr size_t kTrailerBytes = 128;

  /// Bytes of the whole section.
  uint64_t SectionBytes() const { return bucket_count * kPointIndexBucketBytes + kTrailerBytes; }
  uint64_t HomeBucket(uint64_t hash) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * bucket_count) >> 64);
  }
};

/// Looks hashes up in `buckets`, which views the buckets of a section (trailer apart). Best at a
/// multiple of 64. Safe on any bytes.
class PointIndex {
 public:
  PointIndex() = default;
  PointIndex(const PointIndexShape& shape, const char* buckets)
      : shape_(shape), buckets_(buckets) {}

  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(buckets_ + shape_.HomeBucket(hash) * kPointIndexBucketBytes);
  }
  /// Fills `candidates` (room for kMaxCandidates) and returns how many; 0: the key is not there;
  /// or kTooManyCandidates.
  int Lookup(uint64_t hash, RecordCandidate* candidates) const;

  static constexpr uint64_t kNoBucket = UINT64_MAX;
  /// Searches one bucket for a remote lookup. First `bucket` is the home bucket (64 bytes that were
  /// read at shape.HomeBucket(hash)) and `home` is true. If `*next` is not kNoBucket afterwards,
  /// the answer is in that bucket instead: read it, and call again with `home` false. Returns as
  /// Lookup.
  static int LookupBucket(const PointIndexShape& shape, const char* bucket, bool home,
                          uint64_t hash, RecordCandidate* candidates, uint64_t* next);

  const PointIndexShape& shape() const { return shape_; }

 private:
  PointIndexShape shape_;
  const char* buckets_ = nullptr;
};

}  // namespace nacre
