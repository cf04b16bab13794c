// Goal: all tables are loaded, by one thread or several: first those that reads have met, then
// those of upper levels; what cannot be loaded is told of once and tried again.
// Method: unread tables of two levels on a node that is there, or is not; failures in the LOG tell
// the order.

#include "db/version/index_loader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/comparator.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/table_factory.h"
#include "util/mutex.h"

namespace nacre {
namespace {

constexpr size_t kTables = 10;  ///< Tables in each level.

class Lines final : public Logger {
 public:
  void Log(LogLevel, std::string_view message) override {
    MutexLock lock(&mutex_);
    lines_.emplace_back(message);
  }
  std::vector<std::string> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

class IndexLoaderTest : public ::testing::Test {
 protected:
  IndexLoaderTest() {
    VersionEdit edit;
    for (int level = 1; level <= 2; ++level) {
      for (size_t i = 0; i < kTables; ++i) {
        const std::string key = fmt::format("key{:03}", i);
        made_.push_back(factory_.MakeOfKeys({key}));
        tables_.push_back(factory_.OpenUnread(*made_.back()));
        edit.added.push_back({level, tables_.back()});
      }
    }
    version_ = Version::Apply(Version(&factory_.comparator(), 7), edit);
  }

  IndexLoader::Needs NeedsOf(size_t threads) {
    return {.name = "db",
            .log = &lines_,
            .tier = PointTier::Kind::kIndex,
            .threads = threads,
            .closing = &closing_,
            .tables = [this] { return VersionList{version_}; }};
  }
  bool AllLoaded() const {
    return std::all_of(tables_.begin(), tables_.end(),
                       [](const auto& table) { return table->loaded(); });
  }
  /// That the LOG tells of them in this order.
  void ExpectTold(const std::vector<size_t>& order) {
    const std::vector<std::string> lines = lines_.Take();
    ASSERT_EQ(lines.size(), order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const std::string table = fmt::format("table {} cannot", tables_[order[i]]->id());
      EXPECT_NE(lines[i].find(table), std::string::npos) << lines[i] << " is not of " << table;
    }
  }

  TableFactory factory_{BytewiseComparator()};
  std::vector<std::shared_ptr<TableHandle>> made_;  ///< The maker keeps them open.
  TableList tables_;
  std::shared_ptr<const Version> version_;
  std::atomic<bool> closing_{false};
  Lines lines_;
};

TEST_F(IndexLoaderTest, LoadsAllTables) {
  IndexLoader loader(NeedsOf(4));
  ASSERT_TRUE(IsOk(loader.PrepareLookups(*tables_[7])));
  EXPECT_FALSE(tables_[7]->loaded());
  EXPECT_EQ(loader.LoadAll(), IndexLoader::Result::kAllLoaded);
  EXPECT_TRUE(AllLoaded());
  EXPECT_EQ(loader.LoadAll(), IndexLoader::Result::kNothingToDo);
  EXPECT_TRUE(lines_.Take().empty());
}

TEST_F(IndexLoaderTest, WhatReadsHaveMetComesFirstThenUpperLevels) {
  factory_.LoseTables();
  IndexLoader loader(NeedsOf(1));
  EXPECT_FALSE(loader.PrepareLookups(*tables_[15]).ok());
  EXPECT_FALSE(loader.PrepareLookups(*tables_[3]).ok());
  EXPECT_EQ(loader.LoadAll(), IndexLoader::Result::kSomeFailed);
  std::vector<size_t> order = {15, 3};
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (i != 15 && i != 3) order.push_back(i);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectTold(order));
  EXPECT_EQ(loader.LoadAll(), IndexLoader::Result::kSomeFailed);
  EXPECT_TRUE(lines_.Take().empty()) << "told twice";
}

TEST_F(IndexLoaderTest, EndsEarlyWhenTheDatabaseIsClosed) {
  closing_.store(true);
  IndexLoader loader(NeedsOf(4));
  loader.LoadAll();
  EXPECT_FALSE(AllLoaded());
}

}  // namespace
}  // namespace nacre
