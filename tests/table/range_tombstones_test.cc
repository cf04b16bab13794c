// Goal: fragmented range tombstones hide exactly what the ranges themselves hide, for each key and
// each snapshot, also joined from parts, encoded and decoded, or asked key after key; damaged
// sections are found out or say something harmless.
// Method: random ranges over few keys against brute force; iterators over vectors; every truncation
// of a section, and random bytes.

#include "table/ranges/range_tombstones.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "table/iterator/covered_iterator.h"
#include "table/ranges/range_cover.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {
namespace {

std::string PrefixedKey(uint64_t n) { return "common prefix/" + std::to_string(100 + n); }

std::vector<RangeTombstone> RandomTombstones(Random* random) {
  std::vector<RangeTombstone> tombstones;
  for (uint64_t left = random->Uniform(12); left > 0; --left) {
    const uint64_t begin = random->Uniform(40);
    tombstones.push_back(
        {PrefixedKey(begin), PrefixedKey(random->Uniform(40)), 1 + random->Uniform(30)});
  }
  return tombstones;
}

SequenceNumber Covering(const Comparator& order, const std::vector<RangeTombstone>& tombstones,
                        const std::string& key, SequenceNumber snapshot) {
  SequenceNumber newest = 0;
  for (const RangeTombstone& t : tombstones) {
    const bool covers = order.Compare(t.begin, key) <= 0 && order.Compare(key, t.end) < 0;
    if (covers && t.sequence <= snapshot) newest = std::max(newest, t.sequence);
  }
  return newest;
}

/// Keys that differ early or late, or by zeros at their ends only.
std::string KeyLike(const std::string& common, Random* random) {
  std::string key = common;
  for (uint64_t left = random->Uniform(20); left > 0; --left) {
    const char bytes[] = {'\0', '\1', 'a', '\xff'};
    key += bytes[random->Uniform(random->OneIn(2) ? 1 : 4)];
  }
  return key;
}

class RangeTombstonesTest : public testing::TestWithParam<const Comparator*> {};

TEST_P(RangeTombstonesTest, FindsKeysAmongAnyNumberOfFragments) {
  const Comparator& order = *GetParam();
  const auto less = [&](const std::string& a, const std::string& b) {
    return order.Compare(a, b) < 0;
  };
  Random random(TestSeed(8101));
  for (int round = 0; round < 60; ++round) {
    const std::string common(random.Uniform(20), 'p');
    // Around the sizes at which the search looks at one more block, or level of them.
    const uint64_t sizes[] = {1, 2, 31, 32, 33, 64, 65, 200, 1023, 1024, 1025, 1500};
    const size_t wanted = 2 * sizes[random.Uniform(std::size(sizes))];
    std::vector<std::string> edges;
    for (size_t i = 0; i < 4 * wanted + 50; ++i) edges.push_back(KeyLike(common, &random));
    std::sort(edges.begin(), edges.end(), less);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    edges.resize(std::min(edges.size() / 2 * 2, wanted));
    std::vector<RangeTombstone> tombstones;
    for (size_t i = 0; i + 1 < edges.size(); i += 2) {
      tombstones.push_back({edges[i], edges[i + 1], 1 + i});
    }
    const RangeTombstones fragments(&order, tombstones);
    ASSERT_EQ(tombstones.size(), fragments.fragments().size());
    for (int i = 0; i < 500; ++i) {
      const std::string key = random.OneIn(4)   ? edges[random.Uniform(edges.size())]
                              : random.OneIn(8) ? KeyLike("", &random)
                                                : KeyLike(common, &random);
      const auto behind = static_cast<size_t>(
          std::upper_bound(edges.begin(), edges.end(), key, less) - edges.begin());
      // Behind an odd number of edges it is within a range.
      const SequenceNumber expected = behind % 2 == 1 ? behind : 0;
      ASSERT_EQ(expected, fragments.Covering(key, kMaxSequenceNumber)) << i;
    }
  }
}

TEST_P(RangeTombstonesTest, HidesWhatTheRangesHide) {
  const Comparator& order = *GetParam();
  Random random(TestSeed(8100));
  for (int round = 0; round < 400; ++round) {
    std::vector<RangeTombstone> first = RandomTombstones(&random);
    const std::vector<RangeTombstone> second = RandomTombstones(&random);
    const RangeTombstones a(&order, first);
    const RangeTombstones b(&order, second);
    const RangeTombstones joined = RangeTombstones::Merge(&order, {&a, &b});
    first.insert(first.end(), second.begin(), second.end());
    std::string section;
    RangeTombstones::Encode(joined.Listed(), &section);
    std::unique_ptr<const RangeTombstones> decoded;
    ASSERT_TRUE(IsOk(RangeTombstones::Decode(section, &order, &decoded)));
    for (const SequenceNumber snapshot :
         {SequenceNumber{0}, 1 + random.Uniform(30), kMaxSequenceNumber}) {
      RangeCover cover(InternalKeyComparator(&order), snapshot);
      cover.Add(&a);
      cover.Add(&b);
      for (int i = 0; i < 60; ++i) {
        std::string key = PrefixedKey(random.Uniform(41));
        if (random.OneIn(3)) key += "x";
        const SequenceNumber expected = Covering(order, first, key, snapshot);
        ASSERT_EQ(expected, joined.Covering(key, snapshot)) << key;
        ASSERT_EQ(expected, decoded->Covering(key, snapshot)) << key;
        ASSERT_EQ(expected, cover.Of(key)) << key;
        ASSERT_TRUE(!cover.begin().has_value() || order.Compare(*cover.begin(), key) <= 0);
        ASSERT_TRUE(!cover.end().has_value() || order.Compare(key, *cover.end()) < 0);
      }
    }
  }
}

TEST_P(RangeTombstonesTest, ManyThatOverlapHideWhatTheRangesHide) {
  const Comparator& order = *GetParam();
  Random random(TestSeed(8103));
  for (int round = 0; round < 20; ++round) {
    const uint64_t keys = 1 + random.Uniform(400);
    // Sequences that are few, or all different; ranges that are short, or nearly all of the keys.
    const uint64_t sequences = random.OneIn(2) ? 5 : 1'000'000;
    const uint64_t longest = random.OneIn(2) ? keys : 1 + keys / 20;
    std::vector<RangeTombstone> tombstones;
    for (uint64_t left = random.Uniform(300); left > 0; --left) {
      uint64_t begin = random.Uniform(keys);
      uint64_t end = begin + random.Uniform(longest + 1);
      if (order.Compare(PrefixedKey(begin), PrefixedKey(end)) > 0) std::swap(begin, end);
      tombstones.push_back({PrefixedKey(begin), PrefixedKey(end), 1 + random.Uniform(sequences)});
    }
    std::vector<RangeTombstone> halves[2];
    for (const RangeTombstone& t : tombstones) halves[random.Uniform(2)].push_back(t);
    const RangeTombstones whole(&order, tombstones);
    const RangeTombstones a(&order, halves[0]);
    const RangeTombstones b(&order, halves[1]);
    const RangeTombstones joined = RangeTombstones::Merge(&order, {&a, &b});
    const RangeTombstones again(&order, joined.Tombstones());
    // What was cut and joined is what it was before.
    ASSERT_EQ(whole.fragments().size(), joined.fragments().size());
    ASSERT_EQ(whole.fragments().size(), again.fragments().size());
    for (int i = 0; i < 300; ++i) {
      const std::string key = PrefixedKey(random.Uniform(2 * keys));
      const SequenceNumber snapshot =
          random.OneIn(4) ? kMaxSequenceNumber : random.Uniform(sequences + 2);
      const SequenceNumber expected = Covering(order, tombstones, key, snapshot);
      ASSERT_EQ(expected, whole.Covering(key, snapshot)) << key << " at " << snapshot;
      ASSERT_EQ(expected, joined.Covering(key, snapshot)) << key << " at " << snapshot;
      ASSERT_EQ(expected, again.Covering(key, snapshot)) << key << " at " << snapshot;
    }
    for (const RangeTombstones::ListedFragment& fragment : joined.Listed()) {
      std::vector<SequenceNumber> expected;
      for (const RangeTombstone& t : tombstones) {
        const bool covers =
            order.Compare(t.begin, fragment.begin) <= 0 && order.Compare(fragment.begin, t.end) < 0;
        if (covers) expected.push_back(t.sequence);
      }
      std::sort(expected.begin(), expected.end(), std::greater<SequenceNumber>());
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      ASSERT_EQ(expected, fragment.sequences) << fragment.begin;
    }
    std::string section;
    RangeTombstones::Encode(joined.Listed(), &section);
    ASSERT_LE(section.size(), joined.EncodedBytesMax(tombstones.size()));
  }
}

TEST_P(RangeTombstonesTest, TheMemoryOfManyThatOverlapIsNotTheirSquare) {
  const Comparator& order = *GetParam();
  const auto nested = [&](uint64_t count) {
    std::vector<RangeTombstone> tombstones;
    for (uint64_t n = 0; n < count; ++n) {
      std::string begin = std::to_string(100'000 + n);
      std::string end = std::to_string(900'000 - n);
      if (order.Compare(begin, end) > 0) begin.swap(end);
      tombstones.push_back({begin, end, n + 1});
    }
    return RangeTombstones(&order, tombstones).MemoryUsage();
  };
  // Sixteen times as many; a logarithm that grows by less than twice.
  EXPECT_LT(nested(4096), 32 * nested(256));
}

TEST_P(RangeTombstonesTest, IteratorsPassOverWhatIsCovered) {
  const Comparator& order = *GetParam();
  const InternalKeyComparator comparator(&order);
  Random random(TestSeed(8101));
  for (int round = 0; round < 300; ++round) {
    const std::vector<RangeTombstone> tombstones = RandomTombstones(&random);
    const RangeTombstones fragments(&order, tombstones);
    const RangeTombstones more(&order, RandomTombstones(&random));
    const SequenceNumber snapshot = random.OneIn(2) ? kMaxSequenceNumber : random.Uniform(40);
    RangeCover cover(comparator, snapshot);
    cover.Add(&fragments);
    cover.Add(&more);
    std::vector<TestEntry> all;
    for (uint64_t n = 0; n < 41; ++n) {
      if (random.OneIn(3)) continue;
      for (SequenceNumber sequence = 1 + random.Uniform(3); sequence > 0; --sequence) {
        all.push_back({PrefixedKey(n), PackTag(sequence, ValueType::kValue), "v"});
      }
    }
    std::stable_sort(all.begin(), all.end(), [&](const TestEntry& a, const TestEntry& b) {
      const int r = order.Compare(a.user_key, b.user_key);
      return r != 0 ? r < 0 : a.tag > b.tag;
    });
    std::vector<TestEntry> kept;
    for (const TestEntry& entry : all) {
      if (Covering(order, tombstones, entry.user_key, snapshot) == 0 &&
          more.Covering(entry.user_key, snapshot) == 0) {
        kept.push_back(entry);
      }
    }
    const auto iterator =
        NewUncoveredIterator(comparator, std::make_unique<VectorIterator>(comparator, all), cover);
    const auto expect = [&](size_t i) {
      ASSERT_EQ(i < kept.size(), iterator->Valid());
      if (i >= kept.size()) return;
      ASSERT_EQ(kept[i].user_key, iterator->user_key().ToString());
      ASSERT_EQ(kept[i].tag, iterator->tag());
    };
    iterator->SeekToFirst();
    for (size_t i = 0; i < kept.size(); ++i, iterator->Next()) ASSERT_NO_FATAL_FAILURE(expect(i));
    ASSERT_NO_FATAL_FAILURE(expect(kept.size()));
    iterator->SeekToLast();
    for (size_t i = kept.size(); i-- > 0; iterator->Prev()) ASSERT_NO_FATAL_FAILURE(expect(i));
    ASSERT_FALSE(iterator->Valid());
  }
}

TEST_P(RangeTombstonesTest, MalformedSectionsAreFoundOut) {
  const Comparator& order = *GetParam();
  Random random(TestSeed(8102));
  std::vector<RangeTombstone> tombstones;
  for (uint64_t i = 0; i < 10; ++i) {
    tombstones.push_back({PrefixedKey(3 * i), PrefixedKey(3 * i + 5), 10 + i});
    tombstones.push_back({PrefixedKey(3 * i + 5), PrefixedKey(3 * i), 10 + i});
  }
  std::string section;
  RangeTombstones::Encode(RangeTombstones(&order, tombstones).Listed(), &section);
  std::unique_ptr<const RangeTombstones> decoded;
  size_t whole = 0;
  for (size_t size = 0; size < section.size(); ++size) {
    whole += RangeTombstones::Decode(section.substr(0, size), &order, &decoded).ok() ? 1 : 0;
  }
  EXPECT_EQ(RangeTombstones(&order, tombstones).fragments().size(), whole);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = section;
    bad[random.Uniform(bad.size())] = static_cast<char>(random.Next());
    bad.resize(random.Uniform(bad.size() + 1));
    bad.shrink_to_fit();
    if (!RangeTombstones::Decode(bad, &order, &decoded).ok()) continue;
    for (const auto& fragment : decoded->Listed()) {
      ASSERT_LT(order.Compare(fragment.begin, fragment.end), 0);
      ASSERT_FALSE(fragment.sequences.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, RangeTombstonesTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator()),
                         [](const auto& it) { return it.index == 0 ? "Bytewise" : "Reverse"; });

}  // namespace
}  // namespace nacre
