// Goal: a plan has each table that has lost a fragment or has damage, or has one on a node that is
// to be left, once and whenever it is asked for; and a database needs lost nodes when a table has
// lost more than it has parity.
// Method: tables of which there is nothing but their placement, more than a chunk of a level has,
// planned again after each change; that nothing was found is forgotten when damage is reported.

#include "db/redundancy/repair_planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/table/table_factory.h"

namespace nacre {
namespace {

constexpr size_t kTablesInAll = 2 * SortedLevel::kChunkTablesMax;
constexpr size_t kNodes = 8;

class RepairPlannerTest : public ::testing::Test {
 protected:
  RepairPlannerTest() {
    VersionEdit edit;
    for (size_t i = 0; i < kTablesInAll; ++i) {
      TableMeta meta;
      meta.placement.redundancy = {.kind = RedundancyKind::kErasureCoded, .data = 2, .parity = 1};
      meta.placement.chunk_size = meta.chunk_size = 4096;
      for (size_t fragment = 0; fragment < 3; ++fragment) {
        ExtentAddr& extent = meta.placement.fragments.emplace_back();
        // The tables of one half, which fill a chunk or more, are on one half of the nodes.
        extent.start.node = fragment + (i < kTablesInAll / 2 ? 0 : kNodes / 2);
        extent.length = 8192;
      }
      AppendInternalKey(&meta.smallest, fmt::format("{:05}a", i), PackTag(7, ValueType::kValue));
      AppendInternalKey(&meta.largest, fmt::format("{:05}b", i), PackTag(7, ValueType::kValue));
      meta.entries = meta.user_keys = 10;
      meta.user_bytes = meta.records.length = 8000;
      meta.size = 8192;
      tables_.push_back(factory_.MakeUnread(std::move(meta)));
      edit.added.push_back({1, tables_.back()});
    }
    version_ = Version::Apply(Version(&factory_.comparator(), 7), edit);
  }

  std::vector<RepairItem> Plan() const {
    return PlanRepair({version_}, nodes_, factory_.damage_reports());
  }

  TableFactory factory_{BytewiseComparator()};
  TableList tables_;
  std::shared_ptr<const Version> version_;
  NodeStates nodes_{.alive = std::vector<bool>(kNodes, true),
                    .draining = std::vector<bool>(kNodes, false)};
};

TEST_F(RepairPlannerTest, DamageIsFoundAlsoAfterNoneWas) {
  ASSERT_GE(version_->chunks(1).size(), 2u);
  for (const size_t damaged : {size_t{3}, kTablesInAll - 1, size_t{4}}) {
    const size_t before = Plan().size();
    tables_[damaged]->ReportDamage(FragmentSet{2});
    for (int again = 0; again < 2; ++again) {
      const std::vector<RepairItem> items = Plan();
      ASSERT_EQ(items.size(), before + 1);
      EXPECT_TRUE(std::any_of(items.begin(), items.end(), [&](const RepairItem& item) {
        return item.table == tables_[damaged] && item.wanted == FragmentSet{2};
      }));
    }
  }
}

TEST_F(RepairPlannerTest, ATableThatMovesToAnotherChunkTakesItsDamageAlong) {
  EXPECT_TRUE(Plan().empty());
  tables_[5]->ReportDamage(FragmentSet{1});
  VersionEdit edit;
  edit.removed.push_back(tables_[5]);
  edit.added.push_back({2, tables_[5]});
  version_ = Version::Apply(*version_, edit);
  const std::vector<RepairItem> items = Plan();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].table, tables_[5]);
  EXPECT_EQ(items[0].level, 2);
}

TEST_F(RepairPlannerTest, NodesThatAreLostOrToBeLeft) {
  EXPECT_TRUE(Plan().empty());
  nodes_.alive[1] = false;
  EXPECT_EQ(Plan().size(), kTablesInAll / 2);
  EXPECT_EQ(Plan()[0].wanted, FragmentSet{2});
  EXPECT_EQ(Plan()[0].spare, 0);
  nodes_.draining[kNodes / 2] = true;
  EXPECT_EQ(Plan().size(), kTablesInAll);
  nodes_.alive[1] = true;
  nodes_.draining[kNodes / 2] = false;
  EXPECT_TRUE(Plan().empty());
}

TEST_F(RepairPlannerTest, WhatIsOnNodesInMaintenanceIsAwaitedUnlessMoreIsLost) {
  nodes_.maintenance.assign(kNodes, false);
  nodes_.maintenance[1] = true;
  EXPECT_TRUE(Plan().empty());
  nodes_.alive[1] = false;
  EXPECT_TRUE(Plan().empty());
  // The other half of the tables.
  nodes_.alive[kNodes / 2] = false;
  EXPECT_EQ(Plan().size(), kTablesInAll / 2);
  nodes_.alive[kNodes / 2] = true;
  // Damage to what is left is more, too, and what is awaited is made anew with it.
  tables_[3]->ReportDamage(FragmentSet{1});
  ASSERT_EQ(Plan().size(), 1u);
  EXPECT_EQ(Plan()[0].table, tables_[3]);
  EXPECT_EQ(Plan()[0].wanted, FragmentSet{3});
  // One that is to be left besides is left.
  nodes_.draining[2] = true;
  EXPECT_EQ(Plan().size(), kTablesInAll / 2);
  nodes_.draining[2] = false;
  nodes_.maintenance[1] = false;
  EXPECT_EQ(Plan().size(), kTablesInAll / 2) << "its time is up";
}

TEST_F(RepairPlannerTest, LostNodesAreNeededForWhatCannotBeReadWithoutThem) {
  EXPECT_FALSE(NeedsLostNodes({version_}, nodes_));
  nodes_.alive[0] = false;
  nodes_.alive[kNodes / 2] = false;
  EXPECT_FALSE(NeedsLostNodes({version_}, nodes_));
  nodes_.alive[kNodes / 2 + 2] = false;
  EXPECT_TRUE(NeedsLostNodes({version_}, nodes_));
}

}  // namespace
}  // namespace nacre
