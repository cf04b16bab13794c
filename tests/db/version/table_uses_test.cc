// Goal: the samples are in proportion to the lookups, what is older counts less and is forgotten in
// the end, and what is kept stays bounded if it is never collected.
// Method: lookups in a few tables, some of them from many threads.

#include "db/version/table_uses.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace nacre {
namespace {

constexpr uint64_t kPeriod = TableUses::kSamplesInPeriod * TableUses::kLookupsInSample;

std::shared_ptr<const TableMeta> TableOfId(uint64_t id) {
  auto meta = std::make_shared<TableMeta>();
  meta->id = id;
  return meta;
}

std::map<uint64_t, double> ById(const std::vector<TableUse>& uses) {
  std::map<uint64_t, double> result;
  for (const TableUse& use : uses) result[use.table->id] = use.lookups;
  return result;
}

TEST(TableUsesTest, SamplesAreInProportionToLookups) {
  TableUses uses;
  const auto often = TableOfId(1);
  const auto seldom = TableOfId(2);
  uint64_t lookups = 0;
  // The other one is looked at in each eighth lookup: a pattern that divides the samples' distance.
  for (; !uses.period_ended(); ++lookups) uses.Note(lookups % 8 == 0 ? seldom : often);
  EXPECT_NEAR(static_cast<double>(lookups), static_cast<double>(kPeriod), kPeriod * 0.2);
  const auto found = ById(uses.Collect());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(1) / found.at(2), 7, 2);
}

TEST(TableUsesTest, OlderOnesCountHalfAndAreForgotten) {
  TableUses uses;
  const auto table = TableOfId(1);
  const auto once = TableOfId(2);
  const auto end_period = [&] {
    while (!uses.period_ended()) uses.Note(table);
  };
  for (uint32_t i = 0; i < 40 * TableUses::kLookupsInSample; ++i) uses.Note(once);
  end_period();
  const auto first = ById(uses.Collect());
  EXPECT_FALSE(uses.period_ended());
  EXPECT_GT(first.at(2), 10);
  // Until the next period has ended nothing ages.
  EXPECT_EQ(ById(uses.Collect()), ById(uses.Collect()));
  end_period();
  EXPECT_DOUBLE_EQ(ById(uses.Collect()).at(2), first.at(2) / 2);
  for (int i = 0; i < 8; ++i) {
    end_period();
    uses.Collect();
  }
  EXPECT_EQ(ById(uses.Collect()).size(), 1u);
}

TEST(TableUsesTest, ThreadsNoteAtTheSameTimeAndNothingGrowsWithoutBound) {
  TableUses uses;
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&uses, t] {
      for (uint64_t i = 0; i < 2 * kPeriod; ++i) uses.Note(TableOfId(i * kThreads + t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(uses.period_ended());
  EXPECT_EQ(uses.Collect().size(), 2 * TableUses::kSamplesInPeriod);
}

}  // namespace
}  // namespace nacre
