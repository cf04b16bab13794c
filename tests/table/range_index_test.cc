// Goal: the range index sends every seek to the interval that holds its answer, costs little, and
// survives any bytes.
// Method: random sorted entries cut at random into intervals, every seek against a linear search;
// random damage to encoded indexes.

#include "table/index/range_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Entry i is a record at offset (i + 1) << shift.
struct Indexed {
  std::vector<TestEntry> entries;
  std::vector<size_t> boundaries;  ///< Entries that start an interval, but the first.
  std::string section;
};

Indexed MakeIndexed(Random* random, const InternalKeyComparator& comparator, uint32_t shift) {
  Indexed made;
  const int key_bits = 1 + static_cast<int>(random->Uniform(9));
  const uint64_t alphabet = random->OneIn(2) ? 2 : 256;
  const std::string prefix(random->Skewed(8), 'p');
  uint64_t sequence = 1;
  for (size_t i = 1 + random->Skewed(9); i > 0; --i) {
    std::string key = prefix;
    for (uint64_t n = random->Skewed(key_bits); n > 0; --n) {
      key.push_back(static_cast<char>(random->Uniform(alphabet)));
    }
    for (uint64_t versions = 1 + random->Skewed(4); versions > 0; --versions) {
      made.entries.push_back({key, PackTag(sequence++, ValueType::kValue), ""});
    }
  }
  SortEntries(comparator, &made.entries);
  RangeIndexBuilder builder(shift);
  const uint64_t one_in = 1 + random->Uniform(5);
  for (size_t i = 1; i < made.entries.size(); ++i) {
    if (!random->OneIn(one_in)) continue;
    const TestEntry& before = made.entries[i - 1];
    const TestEntry& after = made.entries[i];
    const uint64_t offset = (i + 1) << shift;
    if (before.user_key == after.user_key) {
      builder.AddWithinKey(after.user_key, random->OneIn(2) ? after.tag : before.tag - 1, offset);
    } else {
      std::string separator = before.user_key;
      comparator.user_comparator()->FindShortestSeparator(&separator, after.user_key);
      builder.Add(separator, offset);
    }
    made.boundaries.push_back(i);
  }
  const size_t bytes = builder.Bytes();
  builder.Finish(&made.section);
  EXPECT_EQ(made.section.size(), bytes);
  return made;
}

uint64_t OffsetOf(size_t entry, uint32_t shift) { return entry == 0 ? 0 : (entry + 1) << shift; }

/// The interval that holds entry `i`, by the list of boundaries.
RecordInterval IntervalOf(const Indexed& made, size_t i, uint32_t shift, uint64_t records_bytes) {
  RecordInterval interval{0, records_bytes};
  for (const size_t boundary : made.boundaries) {
    if (boundary <= i) interval.begin = OffsetOf(boundary, shift);
    if (boundary > i) {
      interval.end = OffsetOf(boundary, shift);
      break;
    }
  }
  return interval;
}

TEST(RangeIndexTest, SeeksFindTheirInterval) {
  Random random(TestSeed(21));
  static const BackwardsComparator backwards;
  const Comparator* comparators[] = {BytewiseComparator(), ReverseBytewiseComparator(), &backwards};
  for (size_t round = 0; round < Scaled(1000); ++round) {
    const InternalKeyComparator comparator(comparators[random.Uniform(3)]);
    const auto shift = static_cast<uint32_t>(random.Uniform(8));
    const Indexed made = MakeIndexed(&random, comparator, shift);
    const uint64_t records_bytes = (made.entries.size() + 1) << shift;
    RangeIndex index;
    ASSERT_TRUE(index.Parse(made.section, comparator, shift, records_bytes));
    ASSERT_EQ(index.boundaries(), made.boundaries.size());

    for (int seek = 0; seek < 100; ++seek) {
      TestEntry target = made.entries[random.Uniform(made.entries.size())];
      if (random.OneIn(3)) target.tag = PackTag(random.Uniform(600), kValueTypeForSeek);
      if (random.OneIn(4)) target.user_key.push_back(static_cast<char>(random.Uniform(256)));
      if (random.OneIn(4)) target.user_key.resize(random.Uniform(target.user_key.size() + 1));
      const auto found = std::partition_point(
          made.entries.begin(), made.entries.end(), [&](const TestEntry& entry) {
            const int r = comparator.CompareUserKeys(entry.user_key, target.user_key);
            return r != 0 ? r < 0 : entry.tag > target.tag;
          });
      const auto at = static_cast<size_t>(found - made.entries.begin());
      const RecordInterval interval = index.Seek(target.user_key, target.tag);
      const uint64_t answer = at == made.entries.size() ? records_bytes : OffsetOf(at, shift);
      // The answer is in the interval, or right behind it.
      ASSERT_LE(interval.begin, answer);
      ASSERT_GE(interval.end, answer);
      // And it is one of the intervals, found by offset too.
      const RecordInterval same = index.Containing(interval.begin);
      ASSERT_EQ(same.begin, interval.begin);
      ASSERT_EQ(same.end, interval.end);
    }
    for (size_t i = 0; i < made.entries.size(); ++i) {
      const RecordInterval expected = IntervalOf(made, i, shift, records_bytes);
      const RecordInterval interval = index.Containing(OffsetOf(i, shift));
      ASSERT_EQ(interval.begin, expected.begin);
      ASSERT_EQ(interval.end, expected.end);
      // An entry that is there is found without a look at the next interval.
      const RecordInterval sought = index.Seek(made.entries[i].user_key, made.entries[i].tag);
      ASSERT_EQ(sought.begin, expected.begin);
    }
    // A key near an offset separates what lies on its sides, and is not far from it.
    for (size_t i = 0; i < made.entries.size(); ++i) {
      std::string key;
      const uint64_t offset = OffsetOf(i, shift);
      const bool found = index.KeyNear(offset, &key);
      ASSERT_EQ(found, !made.boundaries.empty() && OffsetOf(made.boundaries[0], shift) <= offset);
      if (!found) continue;
      ASSERT_LE(comparator.CompareUserKeys(key, made.entries[i].user_key), 0);
      const auto before =
          static_cast<size_t>(std::upper_bound(made.boundaries.begin(), made.boundaries.end(), i) -
                              made.boundaries.begin());
      const size_t restart = made.boundaries[(before - 1) / 16 * 16];
      ASSERT_GE(comparator.CompareUserKeys(key, made.entries[restart - 1].user_key), 0);
    }
    // Backwards, from every boundary and from the end.
    std::vector<uint64_t> boundaries;
    for (uint64_t limit = records_bytes; limit > 0; limit = index.Containing(limit - 1).begin) {
      index.BoundariesUpTo(limit, &boundaries);
      ASSERT_GE(boundaries.size(), 2u);
      ASSERT_EQ(boundaries.back(), limit);
      for (size_t i = boundaries.size() - 1; i > 0; --i) {
        const RecordInterval interval = index.Containing(boundaries[i] - 1);
        ASSERT_EQ(interval.begin, boundaries[i - 1]);
        ASSERT_EQ(interval.end, boundaries[i]);
      }
    }
  }
}

TEST(RangeIndexTest, CostsLittleForKeysOfDbBench) {
  // 20-byte keys, the first eight a big-endian number, with values of 400 bytes.
  RangeIndexBuilder builder(3);
  std::string last;
  uint64_t offset = 0;
  uint64_t interval_begin = 0;
  constexpr uint64_t kKeys = 100'000;
  for (uint64_t i = 0; i < kKeys; ++i) {
    std::string key(20, '0');
    for (int byte = 0; byte < 8; ++byte) {
      key[static_cast<size_t>(byte)] = static_cast<char>(i * 7 >> (56 - 8 * byte));
    }
    if (offset - interval_begin >= 2048) {
      BytewiseComparator()->FindShortestSeparator(&last, key);
      builder.Add(last, offset);
      interval_begin = offset;
    }
    last = key;
    offset += 432;
  }
  EXPECT_LE(static_cast<double>(builder.Bytes()) / kKeys, 2.0);
}

TEST(RangeIndexTest, DamageNeverReachesBeyondTheSection) {
  Random random(TestSeed(22));
  size_t accepted = 0;
  for (size_t round = 0; round < Scaled(5000); ++round) {
    const InternalKeyComparator comparator(BytewiseComparator());
    const Indexed made = MakeIndexed(&random, comparator, 0);
    const uint64_t records_bytes = made.entries.size() + 1;
    std::string damaged = made.section;
    for (uint64_t i = 1 + random.Uniform(3); i > 0; --i) {
      damaged[random.Uniform(damaged.size())] = static_cast<char>(random.Next());
    }
    if (random.OneIn(4)) damaged.resize(random.Uniform(damaged.size() + 1));
    // Memory of exact size, so that a sanitizer sees reads beyond it.
    const auto memory = std::make_unique<char[]>(damaged.size());
    damaged.copy(memory.get(), damaged.size());
    RangeIndex index;
    if (!index.Parse(Slice(memory.get(), damaged.size()), comparator, 0, records_bytes)) continue;
    ++accepted;
    for (const TestEntry& entry : made.entries) {
      const RecordInterval interval = index.Seek(entry.user_key, entry.tag);
      ASSERT_LT(interval.begin, interval.end);
      ASSERT_LE(interval.end, records_bytes);
    }
    for (uint64_t offset = 0; offset < records_bytes; ++offset) {
      const RecordInterval interval = index.Containing(offset);
      ASSERT_LE(interval.begin, offset);
      ASSERT_GT(interval.end, offset);
    }
    std::vector<uint64_t> boundaries;
    for (uint64_t limit = 1; limit <= records_bytes; ++limit) {
      index.BoundariesUpTo(limit, &boundaries);
      ASSERT_EQ(boundaries.back(), limit);
      ASSERT_TRUE(std::is_sorted(boundaries.begin(), boundaries.end()));
      ASSERT_LT(boundaries[boundaries.size() - 2], limit);
    }
  }
  EXPECT_GT(accepted, 0u) << "the test damages too much to be of use";
}

}  // namespace
}  // namespace nacre
