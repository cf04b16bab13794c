#include "table/index/point_index.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

#include "table/index/length_classes.h"
#include "table/index/point_index_layout.h"
#include "table/index/point_index_search.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr size_t kAddressesAt = 24;
constexpr size_t kAddressBytes = 3;
constexpr size_t kBucketMetaAt = 60;
static_assert(kAddressesAt == kPointIndexSlots * 2);
static_assert(kBucketMetaAt == kAddressesAt + kPointIndexSlots * kAddressBytes);
static_assert(kBucketMetaAt + 4 == kPointIndexBucketBytes);

// The bucket's last word.
constexpr uint32_t kUsedMask = 0xf;
constexpr int kSeedShift = 4;
constexpr uint32_t kSeedMask = 0xff;
constexpr int kGroupsShift = 12;
static_assert(kGroupsShift + PointIndexLayout::kGroups == 32);

// The trailer:
//
//     offset size
//          0    8  fixed64: buckets
//          8    8  fixed64: entries
//         16    8  fixed64: end of the last record that has an entry
//         24    4  fixed32: alignment shift
//         28    4  fixed32: magic
//         32   64  16 x fixed32: record length of each class
//         96   28  zero
//        124    4  fixed32: CRC32C of the 124 bytes before
constexpr size_t kTrailerMagicAt = 28;
constexpr size_t kTrailerClassesAt = 32;
constexpr size_t kTrailerCrcAt = 124;
constexpr uint32_t kTrailerMagic = 0x3158494e;  // "NIX1"
static_assert(kTrailerCrcAt + 4 == PointIndexShape::kTrailerBytes);
static_assert(kTrailerClassesAt + 4 * LengthClasses::kClasses <= kTrailerCrcAt);

/// Slots filled, in thousandths: tried in this order. The first serves large tables; in small ones
/// chance may want more room.
constexpr uint64_t kLoadPermille[] = {920, 900, 870, 840, 800};
constexpr size_t kAttempts = std::size(kLoadPermille);

uint64_t BucketsFor(size_t entries, size_t attempt) {
  const uint64_t per_1000_buckets = kPointIndexSlots * kLoadPermille[attempt];
  return std::max<uint64_t>((entries * 1000 + per_1000_buckets - 1) / per_1000_buckets, 1) +
         attempt;
}

/// Searches the one bucket that the key can be in.
int SearchBucket(const PointIndexShape& shape, const char* bucket, uint64_t hash,
                 RecordCandidate* candidates) {
  const uint32_t used =
      std::min<uint32_t>(DecodeFixed32(bucket + kBucketMetaAt) & kUsedMask, kPointIndexSlots);
  uint32_t matches =
      MatchFingerprints(bucket, PointIndexLayout::Fingerprint(hash)) & ((1u << used) - 1);
  int found = 0;
  for (; matches != 0; matches &= matches - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(matches));
    const uint32_t length_class = DecodeFixed16(bucket + 2 * slot) >> 12;
    // Four bytes are read for three: the last slot's fourth is in the bucket's last word.
    const uint64_t position =
        DecodeFixed32(bucket + kAddressesAt + kAddressBytes * slot) & 0xffffff;
    const uint64_t offset = position << shape.alignment_shift;
    if (offset >= shape.records_end) continue;  // Our builder did not write this.
    candidates[found++] = {
        offset, static_cast<uint32_t>(std::min<uint64_t>(shape.class_length[length_class],
                                                         shape.records_end - offset))};
  }
  return found;
}

int TooMany(RecordCandidate* candidates) {
  std::fill_n(candidates, kMaxCandidates, RecordCandidate());
  return kTooManyCandidates;
}

}  // namespace

void PointIndexBuilder::Add(uint64_t hash, uint64_t offset, uint32_t length) {
  assert(offset >> alignment_shift_ < (1 << 24));
  assert(offset % (uint64_t{1} << alignment_shift_) == 0);
  entries_.push_back({hash, static_cast<uint32_t>(offset >> alignment_shift_), length});
  records_end_ = std::max(records_end_, offset + length);
}

size_t PointIndexBuilder::BytesBound(size_t entries) {
  return BucketsFor(entries, kAttempts - 1) * kPointIndexBucketBytes +
         PointIndexShape::kTrailerBytes;
}

void PointIndexBuilder::Finish(std::string* dst) const {
  PointIndexLayout layout;
  uint64_t bucket_count = 0;
  for (size_t attempt = 0; attempt < kAttempts; ++attempt) {
    bucket_count = BucketsFor(entries_.size(), attempt);
    if (layout.Assign(entries_, bucket_count, attempt == kAttempts - 1)) break;
  }
  LengthClasses classes;
  for (const Entry& entry : entries_) classes.Add(entry.length);
  classes.Choose();

  const size_t start = dst->size();
  dst->resize(start + bucket_count * kPointIndexBucketBytes + PointIndexShape::kTrailerBytes);
  char* const buckets = dst->data() + start;
  std::vector<uint8_t> used(bucket_count);
  layout.ForEach([&](uint64_t number, uint32_t entry_number) {
    const Entry& entry = entries_[entry_number];
    char* const bucket = buckets + number * kPointIndexBucketBytes;
    const size_t slot = used[number]++;
    EncodeFixed16(bucket + 2 * slot,
                  static_cast<uint16_t>(PointIndexLayout::Fingerprint(entry.hash) |
                                        classes.ClassOf(entry.length) << 12));
    std::memcpy(bucket + kAddressesAt + kAddressBytes * slot, &entry.position, kAddressBytes);
  });
  for (uint64_t number = 0; number < bucket_count; ++number) {
    EncodeFixed32(buckets + number * kPointIndexBucketBytes + kBucketMetaAt,
                  used[number] | layout.seed(number) << kSeedShift |
                      layout.moved_groups(number) << kGroupsShift);
  }

  char* const trailer = buckets + bucket_count * kPointIndexBucketBytes;
  EncodeFixed64(trailer, bucket_count);
  EncodeFixed64(trailer + 8, entries_.size());
  EncodeFixed64(trailer + 16, records_end_);
  EncodeFixed32(trailer + 24, alignment_shift_);
  EncodeFixed32(trailer + kTrailerMagicAt, kTrailerMagic);
  for (size_t i = 0; i < LengthClasses::kClasses; ++i) {
    EncodeFixed32(trailer + kTrailerClassesAt + 4 * i, classes.lengths()[i]);
  }
  EncodeFixed32(trailer + kTrailerCrcAt, Crc32c(trailer, kTrailerCrcAt));
}

bool PointIndexShape::Parse(const Slice& section, PointIndexShape* shape) {
  if (section.size() < kTrailerBytes) return false;
  const char* const trailer = section.end() - kTrailerBytes;
  if (DecodeFixed32(trailer + kTrailerMagicAt) != kTrailerMagic) return false;
  if (DecodeFixed32(trailer + kTrailerCrcAt) != Crc32c(trailer, kTrailerCrcAt)) return false;
  shape->bucket_count = DecodeFixed64(trailer);
  shape->entries = DecodeFixed64(trailer + 8);
  shape->records_end = DecodeFixed64(trailer + 16);
  shape->alignment_shift = DecodeFixed32(trailer + 24);
  for (size_t i = 0; i < LengthClasses::kClasses; ++i) {
    shape->class_length[i] = DecodeFixed32(trailer + kTrailerClassesAt + 4 * i);
  }
  if (shape->bucket_count == 0 || shape->bucket_count > UINT32_MAX) return false;
  if (shape->alignment_shift > 32) return false;
  return section.size() == kTrailerBytes || section.size() == shape->SectionBytes();
}

int PointIndex::LookupBucket(const PointIndexShape& shape, const char* bucket, bool home,
                             uint64_t hash, RecordCandidate* candidates, uint64_t* next) {
  *next = kNoBucket;
  if (home) {
    const uint32_t meta = DecodeFixed32(bucket + kBucketMetaAt);
    if ((meta >> (kGroupsShift + PointIndexLayout::Group(hash)) & 1) != 0) [[unlikely]] {
      const uint32_t seed = meta >> kSeedShift & kSeedMask;
      if (seed == PointIndexLayout::kNoSeed) return TooMany(candidates);
      *next = PointIndexLayout::MovedBucket(shape, hash, seed);
      return 0;
    }
  }
  return SearchBucket(shape, bucket, hash, candidates);
}

int PointIndex::Lookup(uint64_t hash, RecordCandidate* candidates) const {
  const uint64_t home = shape_.HomeBucket(hash);
  uint64_t next = kNoBucket;
  const int found =
      LookupBucket(shape_, buckets_ + home * kPointIndexBucketBytes, true, hash, candidates, &next);
  if (next == kNoBucket) [[likely]]
    return found;
  return SearchBucket(shape_, buckets_ + next * kPointIndexBucketBytes, hash, candidates);
}

}  // namespace nacre
