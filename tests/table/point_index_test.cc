// Goal: a point index never misses a key that was added, and answers absent keys as rarely as its
// fingerprints promise, for any number of keys and under hash collisions.
// Method: random hashes against the list of what was added; the SIMD comparison against the scalar
// one; bounds on size and on false positives; absurd collisions.

#include "table/index/point_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "table/index/length_classes.h"
#include "table/index/point_index_layout.h"
#include "table/index/point_index_search.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

struct IndexKey {
  uint64_t hash;
  uint64_t offset;
  uint32_t length;
};

/// A section in memory of exact size, so that a sanitizer sees reads beyond it.
class BuiltIndex {
 public:
  BuiltIndex(const std::vector<IndexKey>& keys, uint32_t alignment_shift) {
    PointIndexBuilder builder(alignment_shift);
    for (const IndexKey& key : keys) builder.Add(key.hash, key.offset, key.length);
    builder.Finish(&section_);
    EXPECT_LE(section_.size(), PointIndexBuilder::BytesBound(keys.size()));
    EXPECT_TRUE(PointIndexShape::Parse(section_, &shape_));
    EXPECT_EQ(shape_.entries, keys.size());
    bucket_bytes_ = section_.size() - PointIndexShape::kTrailerBytes;
    buckets_ = std::make_unique<char[]>(bucket_bytes_);
    section_.copy(buckets_.get(), bucket_bytes_);
    index_ = PointIndex(shape_, buckets_.get());
  }

  int Lookup(uint64_t hash, RecordCandidate* candidates) const {
    const int count = index_.Lookup(hash, candidates);
    ExpectRemoteLookupAgrees(hash, count, candidates);
    return count;
  }
  bool Finds(const IndexKey& key) const {
    RecordCandidate candidates[kMaxCandidates];
    const int count = Lookup(key.hash, candidates);
    return count == kTooManyCandidates ||
           std::any_of(candidates, candidates + count, [&](const RecordCandidate& candidate) {
             return candidate.offset == key.offset && candidate.length >= key.length;
           });
  }
  const std::string& section() const { return section_; }
  const PointIndexShape& shape() const { return shape_; }

 private:
  void ExpectRemoteLookupAgrees(uint64_t hash, int count, const RecordCandidate* candidates) const {
    RecordCandidate remote[kMaxCandidates];
    uint64_t bucket = shape_.HomeBucket(hash);
    int remote_count = 0;
    for (bool home = true; bucket != PointIndex::kNoBucket; home = false) {
      ASSERT_LT(bucket, shape_.bucket_count);
      remote_count = PointIndex::LookupBucket(
          shape_, buckets_.get() + bucket * kPointIndexBucketBytes, home, hash, remote, &bucket);
    }
    ASSERT_EQ(remote_count, count);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(remote[i].offset, candidates[i].offset);
      ASSERT_EQ(remote[i].length, candidates[i].length);
    }
  }

  std::string section_;
  PointIndexShape shape_;
  size_t bucket_bytes_ = 0;
  std::unique_ptr<char[]> buckets_;
  PointIndex index_;
};

std::vector<IndexKey> RandomKeys(Random* random, size_t count, uint32_t shift,
                                 uint32_t length_max) {
  std::vector<IndexKey> keys;
  uint64_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<uint32_t>(1 + random->Uniform(length_max));
    keys.push_back({random->Next(), offset, length});
    offset += ((length >> shift) + 1) << shift;
  }
  return keys;
}

TEST(PointIndexTest, FindsEveryKey) {
  Random random(TestSeed(11));
  for (size_t round = 0; round < Scaled(400); ++round) {
    const size_t count = 1 + random.Skewed(13);
    const auto shift = static_cast<uint32_t>(random.Uniform(6));
    const auto keys = RandomKeys(&random, count, shift, 1000);
    const BuiltIndex index(keys, shift);
    for (const IndexKey& key : keys) ASSERT_TRUE(index.Finds(key)) << count << " keys";
    if (HasFatalFailure()) return;
  }
}

TEST(PointIndexTest, SizeAndFalsePositives) {
  Random random(TestSeed(12));
  const size_t count = 150'000;
  const auto keys = RandomKeys(&random, count, 3, 800);
  const BuiltIndex index(keys, 3);
  EXPECT_LE(static_cast<double>(index.section().size()) / static_cast<double>(count), 6.0);
  for (const IndexKey& key : keys) ASSERT_TRUE(index.Finds(key));

  const size_t probes = Scaled(400'000);
  uint64_t candidates_seen = 0;
  RecordCandidate candidates[kMaxCandidates];
  for (size_t i = 0; i < probes; ++i) {
    candidates_seen += static_cast<uint64_t>(index.Lookup(random.Next(), candidates));
  }
  // 0.27 % expected; five standard deviations are 0.04 % of 400,000 probes.
  EXPECT_LE(static_cast<double>(candidates_seen) / static_cast<double>(probes),
            probes >= 100'000 ? 0.0035 : 0.01);
}

TEST(PointIndexTest, SmallIndexesAreNotGivenUp) {
  // The fewer buckets, the fewer places for the keys of a full one.
  Random random(TestSeed(13));
  for (size_t round = 0; round < Scaled(20'000); ++round) {
    const auto keys = RandomKeys(&random, 1 + random.Uniform(120), 0, 10);
    const BuiltIndex index(keys, 0);
    RecordCandidate candidates[kMaxCandidates];
    for (const IndexKey& key : keys) {
      ASSERT_LT(index.Lookup(key.hash, candidates), kTooManyCandidates);
    }
  }
}

TEST(PointIndexTest, NothingIsLostUnderFullHashCollisions) {
  // An attacker who chooses the keys can make all 64 bits of many hashes equal.
  Random random(TestSeed(14));
  for (const size_t collisions : {2, 12, 13, 24, 200, 3000}) {
    auto keys = RandomKeys(&random, 5000, 0, 100);
    for (size_t i = 0; i < collisions; ++i) keys[i].hash = keys[0].hash;
    const BuiltIndex index(keys, 0);
    size_t given_up = 0;
    RecordCandidate candidates[kMaxCandidates];
    for (const IndexKey& key : keys) {
      ASSERT_TRUE(index.Finds(key)) << collisions;
      if (index.Lookup(key.hash, candidates) == kTooManyCandidates && key.hash != keys[0].hash) {
        ++given_up;
      }
    }
    // Those that share the bucket with the collisions, and no others.
    EXPECT_LE(given_up, 40u) << collisions;
    if (collisions == 2) {
      EXPECT_LT(index.Lookup(keys[0].hash, candidates), kTooManyCandidates);
    }
  }
}

TEST(PointIndexTest, HashesOfOneHomeBucket) {
  // All keys want one bucket; the others are nearly empty.
  Random random(TestSeed(15));
  auto keys = RandomKeys(&random, 400, 0, 100);
  for (IndexKey& key : keys) key.hash = key.hash >> 10 | uint64_t{1} << 63;
  const BuiltIndex index(keys, 0);
  for (const IndexKey& key : keys) ASSERT_TRUE(index.Finds(key));
}

TEST(PointIndexTest, SimdAgreesWithScalar) {
#if defined(__AVX2__) && defined(__BMI2__)
  Random random(TestSeed(16));
  for (size_t round = 0; round < Scaled(100'000); ++round) {
    char bucket[kPointIndexBucketBytes];
    for (char& byte : bucket) byte = static_cast<char>(random.Next());
    const auto fingerprint = static_cast<uint32_t>(random.Uniform(kFingerprintMask + 1));
    for (size_t slot = 0; slot < 12; ++slot) {
      if (!random.OneIn(4)) continue;
      EncodeFixed16(bucket + 2 * slot,
                    static_cast<uint16_t>(fingerprint | random.Uniform(16) << 12));
    }
    ASSERT_EQ(MatchFingerprintsSimd(bucket, fingerprint),
              MatchFingerprintsScalar(bucket, fingerprint));
  }
#else
  GTEST_SKIP() << "built without AVX2";
#endif
}

TEST(PointIndexTest, CandidatesStayWithinTheRecords) {
  // Over-reads of the length classes must not reach beyond the last record.
  Random random(TestSeed(17));
  for (size_t round = 0; round < Scaled(100); ++round) {
    const auto keys = RandomKeys(&random, 1 + random.Skewed(11), 2, 1 << random.Uniform(20));
    const uint64_t end = keys.back().offset + keys.back().length;
    const BuiltIndex index(keys, 2);
    RecordCandidate candidates[kMaxCandidates];
    for (const IndexKey& key : keys) {
      const int count = index.Lookup(key.hash, candidates);
      for (int i = 0; i < count; ++i) {
        ASSERT_LE(candidates[i].offset + candidates[i].length, end);
      }
    }
  }
}

TEST(PointIndexTest, MalformedTrailerIsSeen) {
  Random random(TestSeed(18));
  const auto keys = RandomKeys(&random, 100, 0, 100);
  std::string section = BuiltIndex(keys, 0).section();
  PointIndexShape shape;
  EXPECT_FALSE(PointIndexShape::Parse(Slice(), &shape));
  EXPECT_FALSE(PointIndexShape::Parse(Slice(section.data(), section.size() - 1), &shape));
  EXPECT_FALSE(PointIndexShape::Parse(
      Slice(section.data() + kPointIndexBucketBytes, section.size() - kPointIndexBucketBytes),
      &shape));
  const size_t trailer = section.size() - PointIndexShape::kTrailerBytes;
  EXPECT_TRUE(PointIndexShape::Parse(
      Slice(section.data() + trailer, PointIndexShape::kTrailerBytes), &shape));
  for (size_t i = trailer; i < section.size(); ++i) {
    section[i] = static_cast<char>(section[i] ^ 1 << random.Uniform(8));
    EXPECT_FALSE(PointIndexShape::Parse(section, &shape)) << i;
    section = BuiltIndex(keys, 0).section();
  }
}

TEST(LengthClassesTest, SixteenLengthsAreExact) {
  LengthClasses classes;
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t n = 0; n <= i; ++n) classes.Add(100 + 97 * i);
  }
  classes.Choose();
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(classes.lengths()[classes.ClassOf(100 + 97 * i)], 100 + 97 * i);
  }
}

TEST(LengthClassesTest, OneHugeRecordDoesNotDisturbSmallOnes) {
  LengthClasses classes;
  for (uint32_t length = 50; length < 550; ++length) classes.Add(length);
  classes.Add(100'000'000);
  classes.Choose();
  EXPECT_EQ(classes.lengths()[classes.ClassOf(100'000'000)], 100'000'000u);
  double over = 0;
  for (uint32_t length = 50; length < 550; ++length) {
    ASSERT_GE(classes.lengths()[classes.ClassOf(length)], length);
    over += classes.lengths()[classes.ClassOf(length)] - length;
  }
  EXPECT_LE(over / 500, 30);  // 500 lengths in 15 classes: about 17 bytes at best.
}

TEST(LengthClassesTest, ClassesHoldTheirLengths) {
  Random random(TestSeed(19));
  for (size_t round = 0; round < Scaled(500); ++round) {
    LengthClasses classes;
    std::vector<uint32_t> lengths;
    for (size_t i = 1 + random.Skewed(9); i > 0; --i) {
      lengths.push_back(static_cast<uint32_t>(random.Next() >> (32 + random.Uniform(32))));
      classes.Add(lengths.back());
    }
    classes.Choose();
    EXPECT_TRUE(std::is_sorted(classes.lengths().begin(), classes.lengths().end()));
    EXPECT_EQ(classes.lengths().back(), *std::max_element(lengths.begin(), lengths.end()));
    for (const uint32_t length : lengths) {
      ASSERT_LT(classes.ClassOf(length), LengthClasses::kClasses);
      ASSERT_GE(classes.lengths()[classes.ClassOf(length)], length);
    }
  }
}

}  // namespace
}  // namespace nacre
