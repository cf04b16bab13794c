// Goal: a version finds the right tables: the one of a level that may hold a key, those that
// overlap a range, and the ranges below that a compaction must not forget.
// Method: levels of real tables over random boundaries (keys that share their first 8 bytes, that
// end in zeros, that are empty), every answer against a search through all tables.

#include "db/version/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/table_factory.h"
#include "util/random.h"

namespace nacre {
namespace {

class VersionTest : public testing::TestWithParam<const Comparator*> {
 protected:
  VersionTest() : factory_(GetParam()), comparator_(factory_.comparator()) {}

  bool Less(const std::string& a, const std::string& b) const {
    return comparator_.CompareUserKeys(a, b) < 0;
  }

  static std::string RandomKey(Random* random) {
    static constexpr char kBytes[] = {'\0', '\x01', 'a', '\x7f', '\x80', '\xff'};
    std::string key;
    switch (random->Uniform(3)) {
      case 0:
        key = "same_8_b";
        break;
      case 1:
        key = "other";
        break;
      default:
        break;
    }
    for (uint64_t n = random->Uniform(5); n > 0; --n) key += kBytes[random->Uniform(6)];
    return key;
  }

  /// Ascending, each once.
  std::vector<std::string> RandomKeys(Random* random, size_t count) {
    const auto less = [this](const std::string& a, const std::string& b) { return Less(a, b); };
    std::set<std::string, decltype(less)> keys(less);
    for (size_t i = 0; i < count; ++i) keys.insert(RandomKey(random));
    return {keys.begin(), keys.end()};
  }

  /// Disjoint tables over `keys`, of one to three keys each, with gaps between some.
  TableList TablesOver(Random* random, const std::vector<std::string>& keys) {
    TableList tables;
    for (size_t i = 0; i < keys.size();) {
      const size_t n = std::min<size_t>(1 + random->Uniform(3), keys.size() - i);
      if (!random->OneIn(4)) {
        tables.push_back(factory_.MakeOfKeys({keys.begin() + static_cast<ptrdiff_t>(i),
                                              keys.begin() + static_cast<ptrdiff_t>(i + n)}));
      }
      i += n;
    }
    return tables;
  }

  static VersionEdit Adding(int level, const TableList& tables) {
    VersionEdit edit;
    for (const auto& table : tables) edit.added.push_back({level, table});
    return edit;
  }

  TableFactory factory_;
  const InternalKeyComparator& comparator_;
};

const BackwardsComparator kBackwardsOrder;

INSTANTIATE_TEST_SUITE_P(Orders, VersionTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator(),
                                         &kBackwardsOrder));

TEST_P(VersionTest, FindsTheFirstTableWhoseRangeHoldsTheKey) {
  Random random(TestSeed(31));
  for (size_t round = Scaled(30); round > 0; --round) {
    TableList tables = TablesOver(&random, RandomKeys(&random, random.Uniform(60)));
    const SortedLevel level(&comparator_, tables);
    for (int i = 0; i < 300; ++i) {
      const std::string key = RandomKey(&random);
      size_t expected = 0;
      while (expected < tables.size() &&
             Less(tables[expected]->meta().largest_user_key().ToString(), key)) {
        ++expected;
      }
      const bool held = expected < tables.size() &&
                        !Less(key, tables[expected]->meta().smallest_user_key().ToString());
      ASSERT_EQ(level.Find(key), held ? tables[expected].get() : nullptr)
          << Slice(key).ToString(true);
    }
  }
}

TEST_P(VersionTest, KnowsWhichTablesOfLevel0HoldAKey) {
  Random random(TestSeed(33));
  const Version empty(&comparator_, 7);
  for (size_t round = Scaled(10); round > 0; --round) {
    TableList tables;
    for (int i = 0; i < 5; ++i) {
      tables.push_back(factory_.MakeOfKeys(RandomKeys(&random, 1 + random.Uniform(3))));
    }
    const auto version = Version::Apply(empty, Adding(0, tables));
    for (int i = 0; i < 300; ++i) {
      const std::string key = RandomKey(&random);
      for (size_t j = 0; j < tables.size(); ++j) {
        const TableMeta& meta = version->level0()[j]->meta();
        ASSERT_EQ(version->Level0Holds(j, key), !Less(key, meta.smallest_user_key().ToString()) &&
                                                    !Less(meta.largest_user_key().ToString(), key))
            << Slice(key).ToString(true);
      }
    }
  }
}

TEST_P(VersionTest, FindsTheFirstOfTablesThatShareAKey) {
  // Versions of one key that do not fit one table go on in the next one: the newest come first.
  std::vector<TestEntry> newer = {{"k", PackTag(9, ValueType::kValue), ""}};
  std::vector<TestEntry> older = {{"k", PackTag(5, ValueType::kValue), ""},
                                  {"k", PackTag(4, ValueType::kDeletion), ""}};
  const TableList tables = {factory_.Make(newer), factory_.Make(older)};
  const SortedLevel level(&comparator_, tables);
  EXPECT_EQ(level.Find("k"), tables[0].get());
}

TEST_P(VersionTest, EmptyVersion) {
  const Version version(&comparator_, 7);
  EXPECT_EQ(version.num_levels(), 7);
  EXPECT_EQ(version.depth(), 0);
  for (int level = 0; level < 7; ++level) {
    EXPECT_TRUE(version.tables(level).empty());
    EXPECT_EQ(version.LevelBytes(level), 0u);
    EXPECT_TRUE(version.Overlapping(level, nullptr, nullptr).empty());
  }
  EXPECT_EQ(version.sorted_level(3).Find("x"), nullptr);
  EXPECT_TRUE(version.DeeperRanges(-1, nullptr, nullptr).empty());
}

TEST_P(VersionTest, OverlappingAndDeeperRanges) {
  Random random(TestSeed(32));
  for (size_t round = Scaled(20); round > 0; --round) {
    constexpr int kLevels = 4;
    auto version = std::make_shared<const Version>(&comparator_, kLevels);
    for (int level = 0; level < kLevels; ++level) {
      if (random.OneIn(4)) continue;
      const TableList tables = TablesOver(&random, RandomKeys(&random, random.Uniform(40)));
      version = Version::Apply(*version, Adding(level, tables));
    }
    for (int i = 0; i < 100; ++i) {
      std::string low = RandomKey(&random);
      std::string high = RandomKey(&random);
      if (Less(high, low)) std::swap(low, high);
      const Slice low_slice(low);
      const Slice high_slice(high);
      const Slice* begin = random.OneIn(4) ? nullptr : &low_slice;
      const Slice* end = random.OneIn(4) ? nullptr : &high_slice;
      const auto overlaps = [&](const TableMeta& meta) {
        return (begin == nullptr || !Less(meta.largest_user_key().ToString(), low)) &&
               (end == nullptr || !Less(high, meta.smallest_user_key().ToString()));
      };
      for (int level = 0; level < kLevels; ++level) {
        TableList expected;
        for (const auto& table : version->tables(level)) {
          if (overlaps(table->meta())) expected.push_back(table);
        }
        ASSERT_EQ(version->Overlapping(level, begin, end), expected);
      }

      const int above = static_cast<int>(random.Uniform(kLevels + 1)) - 1;
      const std::vector<KeyRange> ranges = version->DeeperRanges(above, begin, end);
      for (size_t r = 0; r < ranges.size(); ++r) {
        ASSERT_FALSE(Less(ranges[r].largest, ranges[r].smallest));
        if (r > 0) {
          ASSERT_TRUE(Less(ranges[r - 1].largest, ranges[r].smallest));
        }
      }
      // A key is in a range exactly when a deeper table that overlaps spans it.
      for (int k = 0; k < 30; ++k) {
        const std::string key = RandomKey(&random);
        const auto spans = [&](const std::string& smallest, const std::string& largest) {
          return !Less(key, smallest) && !Less(largest, key);
        };
        bool expected = false;
        for (int level = above + 1; level < kLevels; ++level) {
          for (const auto& table : version->tables(level)) {
            const TableMeta& meta = table->meta();
            expected |= overlaps(meta) && spans(meta.smallest_user_key().ToString(),
                                                meta.largest_user_key().ToString());
          }
        }
        const bool found = std::any_of(ranges.begin(), ranges.end(), [&](const KeyRange& range) {
          return spans(range.smallest, range.largest);
        });
        ASSERT_EQ(found, expected) << Slice(key).ToString(true) << " below level " << above;
      }
    }
  }
}

TEST_P(VersionTest, AppliesEdits) {
  const TableList old = {factory_.MakeOfKeys({"a", "c"}), factory_.MakeOfKeys({"b"}),
                         factory_.MakeOfKeys({"d", "e"})};
  const Version empty(&comparator_, 5);
  auto version = Version::Apply(empty, Adding(0, old));
  EXPECT_EQ(version->depth(), 1);
  ASSERT_EQ(version->level0().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(version->level0()[i], old[2 - i]) << "newest first";
  EXPECT_EQ(version->LevelBytes(0), old[0]->size() + old[1]->size() + old[2]->size());

  // A compaction: two tables become two of level 2; the base stays as it was.
  VersionEdit compaction;
  compaction.removed = {old[0], old[1]};
  const auto merged = factory_.MakeOfKeys({"a", "b", "c"});
  compaction.added.push_back({2, merged});
  const auto after = Version::Apply(*version, compaction);
  EXPECT_EQ(after->depth(), 3);
  EXPECT_EQ(after->level0(), TableList{old[2]});
  EXPECT_EQ(after->tables(2).ToList(), TableList{merged});
  EXPECT_EQ(version->level0().size(), 3u);

  // A move: taken out and put in by one edit.
  VersionEdit move;
  move.removed = {merged};
  move.added.push_back({4, merged});
  const auto moved = Version::Apply(*after, move);
  EXPECT_EQ(moved->depth(), 5);
  EXPECT_TRUE(moved->tables(2).empty());
  EXPECT_EQ(moved->tables(4).ToList(), TableList{merged});

  // Levels below 0 are sorted by key, in whatever order the tables come.
  const TableList sorted = GetParam()->Compare("a", "b") < 0
                               ? TableList{factory_.MakeOfKeys({"x1"}), factory_.MakeOfKeys({"x2"}),
                                           factory_.MakeOfKeys({"x3"})}
                               : TableList{factory_.MakeOfKeys({"x3"}), factory_.MakeOfKeys({"x2"}),
                                           factory_.MakeOfKeys({"x1"})};
  const auto added = Version::Apply(*moved, Adding(1, {sorted[2], sorted[0], sorted[1]}));
  EXPECT_EQ(added->tables(1).ToList(), sorted);
}

TEST_P(VersionTest, TableLivesAsLongAsAVersionHoldsIt) {
  auto table = factory_.MakeOfKeys({"a"}, 1000);
  const uint64_t used = factory_.used_bytes();
  EXPECT_GT(used, 1000u);
  auto version = Version::Apply(Version(&comparator_, 3), Adding(1, {table}));
  VersionEdit drop;
  drop.removed = {table};
  const auto after = Version::Apply(*version, drop);
  table->MarkDropped();
  table.reset();
  drop.removed.clear();
  EXPECT_EQ(factory_.used_bytes(), used) << "an older version still reads the table";
  version.reset();
  EXPECT_EQ(factory_.used_bytes(), 0u);
}

TEST_P(VersionTest, UserKeyRange) {
  const auto ordered = GetParam()->Compare("a1", "b2") < 0;
  const TableList tables = {factory_.MakeOfKeys({"c3", "d4"}), factory_.MakeOfKeys({"a1", "b2"}),
                            factory_.MakeOfKeys({"b2", "e5"})};
  const auto [smallest, largest] = UserKeyRange(comparator_, tables);
  EXPECT_EQ(smallest.ToString(), ordered ? "a1" : "e5");
  EXPECT_EQ(largest.ToString(), ordered ? "e5" : "a1");
}

}  // namespace
}  // namespace nacre
