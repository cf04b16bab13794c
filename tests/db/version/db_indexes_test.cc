// Goal: a database that was opened again answers rightly before its tables' indexes are loaded,
// whatever is asked first; tables whose indexes cannot be loaded fail the reads that need them,
// which is few of those of single keys, are told of, and are loaded as soon as they can be.
// Method: databases on embedded nodes are reopened and read at once, by several threads beside the
// one that loads; index bytes are damaged in the nodes' memory, and mended.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nacre/logger.h"
#include "table/index/point_index.h"
#include "tests/support/redundant_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "util/mutex.h"

namespace nacre {
namespace {

/// Counts the errors.
class ErrorCounter : public Logger {
 public:
  void Log(LogLevel level, std::string_view message) override {
    MutexLock lock(&mutex_);
    if (level == LogLevel::kError) errors_.emplace_back(message);
  }
  size_t CountOf(const std::string& what) {
    MutexLock lock(&mutex_);
    size_t count = 0;
    for (const std::string& error : errors_) count += error.find(what) != std::string::npos;
    return count;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> errors_ GUARDED_BY(mutex_);
};

enum class Tier { kIndex, kBuckets };

class IndexesTest : public RedundantDBTest, public testing::WithParamInterface<Tier> {
 protected:
  /// Tables of several levels, each of which can be lost with a byte.
  void OpenWithTables() {
    options_.disable_auto_compactions = true;
    if (GetParam() == Tier::kBuckets) options_.index_memory_budget = 0;
    ASSERT_NO_FATAL_FAILURE(RedundantDBTest::Open("none", 2));
    ASSERT_NO_FATAL_FAILURE(Fill(5000));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Fill(1000));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Fill(500));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    tables_ = StoredTables(db_.get(), pool_.get());
    ASSERT_GT(tables_.size(), 4u);
  }
  void Reopen() {
    db_.reset();
    options_.info_log = log_;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }
  bool AllLoaded() {
    return GetNumber(db_.get(), "nacre.num-unloaded-tables") == 0 &&
           GetTextProperty(db_.get(), "nacre.open.timeline").find("\nindexes ") !=
               std::string::npos;
  }
  /// A byte of each table's range index, and in every other table one of what reads of single
  /// buckets need as well; the second time all is whole again.
  void FlipIndexes() {
    for (size_t i = 0; i < tables_.size(); ++i) {
      const TableMeta& table = tables_[i];
      FlipByte(table, table.range_index.offset);
      if (i % 2 == 1) {
        const TableSection& index = table.point_index;
        FlipByte(table, index.offset + index.length - PointIndexShape::kTrailerBytes);
      }
    }
  }
  void FlipByte(const TableMeta& table, uint64_t offset) {
    *StoredByte(pool_.get(), table, 0, static_cast<int64_t>(offset)) ^= 0x55;
  }
  void ExpectCorruption(const Status& s) {
    EXPECT_TRUE(IsFailure(s, Status::Code::kCorruption, "table "));
  }

  const std::shared_ptr<ErrorCounter> log_ = std::make_shared<ErrorCounter>();
  std::vector<TableMeta> tables_;
};

INSTANTIATE_TEST_SUITE_P(Tiers, IndexesTest, testing::Values(Tier::kIndex, Tier::kBuckets),
                         [](const auto& test) {
                           return test.param == Tier::kIndex ? "Index" : "Buckets";
                         });

TEST_P(IndexesTest, WhateverIsAskedFirstIsAnswered) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(Reopen());
    if (round % 4 == 1) {
      const Range all("", "\xff");
      uint64_t size = 0;
      ASSERT_TRUE(IsOk(db_->GetApproximateSizes(&all, 1, &size)));
      EXPECT_GT(size, 0u);
    }
    if (round % 4 == 2) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      ASSERT_NO_FATAL_FAILURE(Fill(300));
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([this] {
        for (const auto& [key, value] : model_) {
          PinnableSlice found;
          ASSERT_TRUE(IsOk(db_->Get({}, key, &found)));
          ASSERT_TRUE(found == Slice(value));
        }
      });
    }
    if (round % 4 == 3) {
      ASSERT_NO_FATAL_FAILURE(Check());
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_TRUE(Eventually([&] { return AllLoaded(); }));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  EXPECT_EQ(log_->CountOf("indexes"), 0u);
}

TEST_P(IndexesTest, WhatCannotBeLoadedFailsItsReadsAndIsToldOfAndLoadedLater) {
  ASSERT_NO_FATAL_FAILURE(OpenWithTables());
  db_.reset();
  FlipIndexes();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  // Where a bucket leads to a record, that is proof enough.
  std::vector<std::string> failed;
  for (const auto& [key, value] : model_) {
    PinnableSlice found;
    const Status status = db_->Get({}, key, &found);
    if (!status.ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectCorruption(status));
      failed.push_back(key);
    } else {
      ASSERT_TRUE(found == Slice(value));
    }
  }
  ASSERT_FALSE(failed.empty());
  EXPECT_LT(failed.size(), model_.size());
  const std::string& key = failed.front();
  const Slice keys[] = {key, failed.back()};
  PinnableSlice values[2];
  Status statuses[2];
  db_->MultiGet({}, 2, keys, values, statuses);
  for (const Status& status : statuses) ExpectCorruption(status);
  {
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    iterator->Seek(key);
    EXPECT_FALSE(iterator->Valid());
    ExpectCorruption(iterator->status());
  }
  const Range middle("key3", "key6");
  uint64_t size = 0;
  ExpectCorruption(db_->GetApproximateSizes(&middle, 1, &size));
  // Where there is no room for range indexes, they are not loaded before they are needed.
  const size_t unloaded = GetParam() == Tier::kIndex ? tables_.size() : tables_.size() / 2;
  EXPECT_TRUE(Eventually([&] { return log_->CountOf("indexes") == unloaded; }));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-unloaded-tables"), unloaded);
  EXPECT_FALSE(AllLoaded());
  // What needs no table goes on.
  ASSERT_NO_FATAL_FAILURE(Fill(100));

  FlipIndexes();
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_TRUE(Eventually([&] { return AllLoaded(); }));
  EXPECT_EQ(log_->CountOf("indexes"), unloaded);  // Once for each.
}

}  // namespace
}  // namespace nacre
