// Goal: the runs of a MemTable's range tombstones hide at each moment exactly what was added,
// whatever the keys begin with, in whatever order the ranges come and however they overlap; there
// are few of them, and their memory is not the square of what was added.
// Method: random ranges beside brute force, asked after each addition.

#include "db/memtable/range_tombstone_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

class RangeTombstoneListTest : public testing::TestWithParam<const Comparator*> {};

TEST_P(RangeTombstoneListTest, HidesWhatWasAdded) {
  const Comparator& order = *GetParam();
  Random random(TestSeed(8110));
  for (int round = 0; round < 40; ++round) {
    // Keys that share nothing, or all, or all but what other rounds of additions have.
    const std::vector<std::string> starts =
        round % 3 == 0   ? std::vector<std::string>{"", "a", "b"}
        : round % 3 == 1 ? std::vector<std::string>{"a common prefix/"}
                         : std::vector<std::string>{"a common prefix/", "a common prefix/10"};
    const auto key = [&] {
      return starts[random.Uniform(starts.size())] + std::to_string(100 + random.Uniform(120));
    };
    RangeTombstoneList list(&order);
    EXPECT_EQ(nullptr, list.runs());
    std::vector<RangeTombstone> added;
    for (SequenceNumber sequence = 1; sequence < 150; ++sequence) {
      std::string begin = key();
      std::string end = key();
      if (order.Compare(begin, end) > 0) begin.swap(end);
      if (order.Compare(begin, end) == 0) continue;
      if (random.OneIn(2)) end = begin + "5";  // Short.
      if (order.Compare(begin, end) >= 0) continue;
      list.Add(sequence, begin, end);
      added.push_back({begin, end, sequence});
      ASSERT_LE(list.runs()->All().size(), 5U);
      for (int i = 0; i < 20; ++i) {
        const std::string asked = random.OneIn(3) ? key() + "3" : key();
        const SequenceNumber snapshot =
            random.OneIn(2) ? kMaxSequenceNumber : random.Uniform(sequence + 2);
        SequenceNumber expected = 0;
        for (const RangeTombstone& t : added) {
          const bool covers = order.Compare(t.begin, asked) <= 0 && order.Compare(asked, t.end) < 0;
          if (covers && t.sequence <= snapshot) expected = std::max(expected, t.sequence);
        }
        ASSERT_EQ(expected, list.runs()->Covering(asked, snapshot)) << asked << " " << snapshot;
        const SequenceNumber than = random.Uniform(sequence + 2);
        ASSERT_EQ(expected > than ? expected : 0, list.runs()->Covering(asked, snapshot, than))
            << asked << " at " << snapshot << ", newer than " << than;
      }
    }
  }
}

TEST_P(RangeTombstoneListTest, ManyThatOverlapTakeLittleMoreThanManyThatDoNot) {
  const Comparator& order = *GetParam();
  const auto bytes = [&](bool nested) {
    RangeTombstoneList list(&order);
    for (uint64_t n = 0; n < 3000; ++n) {
      std::string begin = std::to_string(100'000 + 10 * n);
      std::string end = std::to_string(nested ? 900'000 - n : 100'005 + 10 * n);
      if (order.Compare(begin, end) > 0) begin.swap(end);
      list.Add(n + 1, begin, end);
    }
    return list.MemoryUsage();
  };
  EXPECT_LT(bytes(true), 5 * bytes(false));
}

INSTANTIATE_TEST_SUITE_P(Orders, RangeTombstoneListTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator()),
                         [](const auto& it) { return it.index == 0 ? "Bytewise" : "Reverse"; });

}  // namespace
}  // namespace nacre
