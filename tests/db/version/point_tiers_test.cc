// Goal: filters come first, then point indexes of the tables that are used most, then those of
// upper levels; tables that are used alike keep what they have; and a plan looks only at tables of
// which it does not know that they are as they are to be. Method: tables of two levels, shares
// between nothing and all, and uses that differ or hardly do.

#include "db/version/point_tiers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/support/status_assert.h"
#include "tests/support/table/table_factory.h"

namespace nacre {
namespace {

constexpr size_t kTablesInLevel = 6;  ///< Tables in each level.

class PointTiersTest : public ::testing::Test {
 protected:
  PointTiersTest() {
    VersionEdit edit;
    for (int level = 1; level <= 2; ++level) {
      for (size_t i = 0; i < kTablesInLevel; ++i) {
        const auto table = factory_.MakeOfKeys({fmt::format("key{:03}", i)});
        tables_.push_back(table);
        edit.added.push_back({level, table});
      }
    }
    version_ = Version::Apply(Version(&factory_.comparator(), 7), edit);
    each_ = IndexExtraBytes(tables_[0]->meta());
    filters_ = tables_.size() * tables_[0]->meta().bloom.length;
  }

  void Apply(const TierChanges& changes) {
    for (const auto& table : changes.to_filters) {
      ASSERT_TRUE(IsOk(table->SetTier(PointTier::Kind::kBloom)));
    }
    for (const auto& table : changes.to_indexes) {
      ASSERT_TRUE(IsOk(table->SetTier(PointTier::Kind::kIndex)));
    }
  }
  /// Levels of the tables that have their point indexes.
  std::vector<size_t> Indexed() const {
    std::vector<size_t> count(2);
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (tables_[i]->tier()->kind() == PointTier::Kind::kIndex) ++count[i / kTablesInLevel];
    }
    return count;
  }
  /// With room for all filters and for so many point indexes in their places.
  TierChanges Plan(uint64_t indexes, const std::vector<TableUse>& uses = {}) const {
    return PlanPointTiers({version_}, filters_ + indexes * each_, uses);
  }
  /// So many samples of each table, in their order.
  std::vector<TableUse> Uses(const std::vector<double>& samples) const {
    std::vector<TableUse> uses;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] > 0) uses.push_back({tables_[i]->shared_meta(), samples[i]});
    }
    return uses;
  }
  /// Which tables have their point indexes.
  std::vector<size_t> IndexedTables() const {
    std::vector<size_t> indexed;
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (tables_[i]->tier()->kind() == PointTier::Kind::kIndex) indexed.push_back(i);
    }
    return indexed;
  }

  TableFactory factory_{BytewiseComparator()};
  TableList tables_;
  std::shared_ptr<const Version> version_;
  uint64_t filters_ = 0;
  uint64_t each_ = 0;
};

using Counts = std::vector<size_t>;

TEST_F(PointTiersTest, UpperLevelsFirst) {
  ASSERT_GT(filters_, 0u);
  ASSERT_GT(each_, 0u);
  for (const size_t share : {0, 4, 6, 9, 12, 3, 20}) {
    SCOPED_TRACE(share);
    ASSERT_NO_FATAL_FAILURE(Apply(Plan(share)));
    const size_t upper = std::min(share, kTablesInLevel);
    EXPECT_EQ(Indexed(), (Counts{upper, std::min(share - upper, kTablesInLevel)}));
    const TierChanges again = Plan(share);
    EXPECT_TRUE(again.to_filters.empty() && again.to_indexes.empty());
  }
}

TEST_F(PointTiersTest, TheMostUsedFirst) {
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(3)));
  EXPECT_EQ(IndexedTables(), (Counts{0, 1, 2}));
  const auto uses = Uses({0, 0, 50, 0, 0, 0, 0, 900, 0, 400, 20, 0});
  for (int round = 0; round < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(Apply(Plan(3, uses)));
    EXPECT_EQ(IndexedTables(), (Counts{2, 7, 9}));
  }
  const TierChanges again = Plan(3, uses);
  EXPECT_TRUE(again.to_filters.empty() && again.to_indexes.empty());
  // What room is left goes to upper levels.
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(6, uses)));
  EXPECT_EQ(IndexedTables(), (Counts{0, 1, 2, 7, 9, 10}));
  // With room for all there is nothing to decide.
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(tables_.size(), uses)));
  EXPECT_EQ(IndexedTables().size(), tables_.size());
}

TEST_F(PointTiersTest, TablesUsedAlikeKeepWhatTheyHave) {
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(6)));
  const auto before = IndexedTables();
  for (const auto& samples :
       {std::vector<double>{100, 90, 110, 95, 105, 100, 115, 120, 100, 112, 90, 108},
        std::vector<double>{2, 4, 3, 0, 5, 3, 9, 8, 4, 3, 10, 6},
        std::vector<double>{0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8}}) {
    ASSERT_NO_FATAL_FAILURE(Apply(Plan(6, Uses(samples))));
    EXPECT_EQ(IndexedTables(), before);
  }
}

TEST_F(PointTiersTest, TablesThatAreGoneDoNotCount) {
  TableFactory other{BytewiseComparator()};
  const std::vector<TableUse> gone{{other.MakeOfKeys({"key000"})->shared_meta(), 1e6}};
  auto uses = Uses({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 50});
  uses.insert(uses.begin(), gone.begin(), gone.end());
  VersionEdit edit;
  edit.removed.push_back(tables_[0]);
  version_ = Version::Apply(*version_, edit);
  uses.push_back({tables_[0]->shared_meta(), 1e6});
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(2, uses)));
  EXPECT_EQ(IndexedTables(), (Counts{0, 1, 11})) << "the first one keeps what it had when it went";
}

TEST_F(PointTiersTest, WhatIsKnownIsNotLookedAtAgain) {
  ASSERT_NO_FATAL_FAILURE(Apply(Plan(kTablesInLevel)));
  Plan(kTablesInLevel);  // Finds that it is so.
  const TableChunk& upper = *version_->chunks(1)[0];
  const TableChunk& lower = *version_->chunks(2)[0];
  EXPECT_TRUE(upper.IsKnownToHave(PointTier::Kind::kIndex));
  EXPECT_TRUE(lower.IsKnownToHave(PointTier::Kind::kBloom));
  ASSERT_NO_FATAL_FAILURE(Apply(PlanPointTiers({version_}, 0)));
  EXPECT_EQ(Indexed(), (Counts{0, 0}));
  PlanPointTiers({version_}, 0);
  EXPECT_TRUE(upper.IsKnownToHave(PointTier::Kind::kBloom));
}

TEST_F(PointTiersTest, UnloadedTablesAreLeftAlone) {
  VersionEdit edit;
  std::vector<std::shared_ptr<TableHandle>> unread;
  for (size_t i = 0; i < kTablesInLevel; ++i) {
    unread.push_back(factory_.OpenUnread(*tables_[i]));
    edit.added.push_back({1, unread.back()});
  }
  version_ = Version::Apply(Version(&factory_.comparator(), 7), edit);
  for (int round = 0; round < 2; ++round) {
    const TierChanges changes = PlanPointTiers({version_}, UINT64_MAX);
    EXPECT_TRUE(changes.to_filters.empty() && changes.to_indexes.empty());
    EXPECT_FALSE(version_->chunks(1)[0]->IsKnownToHave(PointTier::Kind::kIndex));
  }
  for (const auto& table : unread) ASSERT_TRUE(IsOk(table->Load(PointTier::Kind::kBloom)));
  EXPECT_EQ(PlanPointTiers({version_}, UINT64_MAX).to_indexes.size(), kTablesInLevel);
}

}  // namespace
}  // namespace nacre
