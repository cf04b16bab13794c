// Goal: under a budget for indexes that is less than the range indexes of all tables take, what is
// counted stays within it, whatever is read, by however many threads, and all answers are right; an
// iterator that holds an index which had to go goes on.
// Method: a database on striped tables, whose indexes are copied, with a budget that is made of its
// tables' sizes; readers of all kinds beside a writer whose flushes and compactions bring and drop
// tables.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"

namespace nacre {
namespace {

class IndexBudgetTest : public RedundantDBTest {
 protected:
  static constexpr int kBudgetKeys = 1'000;

  /// Values that are so long that range indexes take more than filters.
  void FillLong(int writes) {
    for (int i = 0; i < writes; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(kBudgetKeys));
      const std::string value = TestValue(random_.Next(), 1'500 + random_.Uniform(1'000));
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
      model_[key] = value;
    }
  }
  /// Tables with filters, which are there only under some budget.
  void OpenWithTables() {
    options_.disable_auto_compactions = true;
    options_.index_memory_budget = SIZE_MAX - 1;
    ASSERT_NO_FATAL_FAILURE(RedundantDBTest::Open("rs(2,1)", 3));
    ASSERT_NO_FATAL_FAILURE(FillLong(3'000));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(FillLong(100));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    for (const TableMeta& table : StoredTables(db_.get(), pool_.get())) {
      filters_ += table.bloom.length;
      range_indexes_ += table.range_index.length;
      most_ = std::max(most_, table.range_index.length);
      ++tables_;
    }
    ASSERT_GE(tables_, 5u);
  }
  void ReopenWith(size_t budget) {
    db_.reset();
    options_.index_memory_budget = budget;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    ASSERT_TRUE(Eventually([this] {
      return GetTextProperty(db_.get(), "nacre.open.timeline").find("\nindexes ") !=
             std::string::npos;
    }));
  }
  uint64_t Used() { return GetNumber(db_.get(), "nacre.space.index-budget-used"); }

  uint64_t filters_ = 0;
  uint64_t range_indexes_ = 0;
  uint64_t most_ = 0;  ///< The largest size of a range index.
  size_t tables_ = 0;
};

TEST_F(IndexBudgetTest, AllReadsAreRightWithinTheBudget) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  const size_t budget = filters_ + range_indexes_ / 3;
  ASSERT_LT(budget, range_indexes_);
  ASSERT_NO_FATAL_FAILURE(ReopenWith(budget));
  EXPECT_LE(Used(), budget);
  const std::unique_ptr<Iterator> held = db_->NewIterator({});
  held->SeekToFirst();
  ASSERT_TRUE(held->Valid());
  for (int round = 0; round < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(Check());
    EXPECT_LE(Used(), budget);
    // Something is kept.
    EXPECT_GE(Used(), filters_ + most_);
  }
  const Range all("", "\xff");
  uint64_t size = 0;
  ASSERT_TRUE(IsOk(db_->GetApproximateSizes(&all, 1, &size)));
  EXPECT_GT(size, 0u);
  size_t keys = 0;
  for (; held->Valid(); held->Next()) {
    ASSERT_EQ(held->value().ToString(), model_[held->key().ToString()]);
    ++keys;
  }
  ASSERT_TRUE(IsOk(held->status()));
  EXPECT_EQ(keys, model_.size());
}

TEST_F(IndexBudgetTest, NoRoomForAnyRangeIndexIsNoFailure) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  for (const size_t budget : {size_t{0}, filters_}) {
    ASSERT_NO_FATAL_FAILURE(ReopenWith(budget));
    ASSERT_NO_FATAL_FAILURE(Check());
    EXPECT_EQ(Used(), filters_);
  }
}

TEST_F(IndexBudgetTest, ReadersBesideEvictionsAndCompactions) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  // Versions that are not current any more have filters, too, until the next one is made.
  const size_t budget = 5 * filters_;
  ASSERT_NO_FATAL_FAILURE(ReopenWith(budget));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> scanned{0};
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, seed = random_.Next()] {
      Random random(seed);
      while (!stop.load()) {
        const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
        iterator->Seek("key" + std::to_string(random.Uniform(kBudgetKeys)));
        std::string last;
        const bool forward = random.OneIn(2);
        for (int i = 0; i < 300 && iterator->Valid(); ++i) {
          const std::string key = iterator->key().ToString();
          ASSERT_TRUE(last.empty() || (forward ? last < key : key < last)) << last << " " << key;
          last = key;
          forward ? iterator->Next() : iterator->Prev();
          scanned.fetch_add(1);
        }
        ASSERT_TRUE(IsOk(iterator->status()));
        std::string value;
        const Status status =
            db_->Get({}, "key" + std::to_string(random.Uniform(kBudgetKeys)), &value);
        ASSERT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
      }
    });
  }
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(FillLong(100));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    if (round % 2 == 1) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    }
    // This holds once the tables that were compacted have no readers.
    EXPECT_TRUE(Eventually([&] { return Used() <= budget; }));
    const uint64_t before = scanned.load();
    EXPECT_TRUE(Eventually([&] { return scanned.load() > before + 2'000; }));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_LE(Used(), budget);
}

}  // namespace
}  // namespace nacre
