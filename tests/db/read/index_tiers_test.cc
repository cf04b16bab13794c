// Goal: under a budget that has no room for all point indexes, the tables that are read get theirs,
// and when other tables are read these do. Method: a database of tables side by side, of whose keys
// a few are read again and again, and the number of reads of nodes that a Get takes.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/perf_context.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class IndexTiersTest : public testing::Test {
 protected:
  static constexpr int kKeys = 40'000;
  static constexpr int kPart = kKeys / 10;

  void SetUp() override { SetPerfLevel(PerfLevel::kEnableCount); }
  void TearDown() override { SetPerfLevel(PerfLevel::kDisable); }

  static std::string Key(int i) { return "key" + std::to_string(100000 + i); }

  void Open(size_t budget) {
    db_.reset();
    options_ = SmallTableOptions(nodes_.pool());
    options_.disable_auto_compactions = true;
    options_.index_memory_budget = budget;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  /// Reads all keys of one part; returns how many reads of nodes that took.
  uint64_t ReadPart(int first) {
    const uint64_t before = get_perf_context()->remote_read_count;
    std::string value;
    for (int i = first; i < first + kPart; ++i) {
      EXPECT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
    }
    return get_perf_context()->remote_read_count - before;
  }

  TestNodes nodes_{NodeKind::kEmbedded, TestPoolOptions{.map = false}};
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(IndexTiersTest, IndexesFollowTheUse) {
  ASSERT_NO_FATAL_FAILURE(Open(size_t{1} << 30));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, Key(i), TestValue(static_cast<uint64_t>(i), 200))));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const uint64_t all = GetNumber(db_.get(), "nacre.space.index-budget-used");
  ASSERT_NO_FATAL_FAILURE(Open(all / 2));
  // Until a Get takes one read where it took two, but for the tables at the ends of the part.
  for (const int first : {kKeys - kPart, 0, kKeys / 2}) {
    EXPECT_TRUE(Eventually([&] { return ReadPart(first) < kPart * 5 / 4; })) << first;
  }
  const uint64_t elsewhere = ReadPart(0) + ReadPart(kKeys / 4) + ReadPart(kKeys - kPart);
  EXPECT_GT(elsewhere, uint64_t{kPart} * 3) << "nothing is left out: the budget does not count";
}

}  // namespace
}  // namespace nacre
