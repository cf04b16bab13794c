// Goal: a database may be opened with more levels than it had, and with fewer if no table is below
// them, as with RocksDB: it goes on compacting, and so do a successor, followers, a checkpoint and
// a repeated opening.
// Method: processes as nodes; a database of two levels is opened with more; tables are compacted
// down to the deepest one, beside a follower that was opened before.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr size_t kLevelKeys = 3000;

class DBLevelsTest : public testing::Test {
 protected:
  DBLevelsTest() {
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_.pool_uri();
    options_.redundancy = "rep(2)";
    options_.create_missing_column_families = true;
    options_.target_file_size_base = 64 << 10;
    options_.max_bytes_for_level_base = 64 << 10;
    options_.max_bytes_for_level_multiplier = 2;
  }
  ~DBLevelsTest() override { CloseHandles(); }

  void CloseHandles() {
    for (ColumnFamilyHandle* handle : handles_) delete handle;
    handles_.clear();
  }
  std::vector<ColumnFamilyDescriptor> Families() const {
    return {{kDefaultColumnFamilyName, options_}, {"other", options_}};
  }
  Status Open(int num_levels, bool take_over = false) {
    CloseHandles();
    options_.num_levels = num_levels;
    options_.take_over = take_over;
    return DB::Open(options_, "db", Families(), &handles_, &db_);
  }
  void Close() {
    ASSERT_TRUE(IsOk(db_->Close()));
    CloseHandles();
    db_.reset();
  }
  static std::string Key(size_t i) { return "key" + std::to_string(i); }
  /// Through as many levels as there are.
  void WriteAll(uint64_t seed) {
    for (ColumnFamilyHandle* family : handles_) {
      for (size_t i = 0; i < kLevelKeys; ++i) {
        ASSERT_TRUE(IsOk(db_->Put({}, family, Key(i), TestValue(seed + i, 200))));
      }
      ASSERT_TRUE(IsOk(db_->Flush({}, family)));
    }
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  }
  static void Expect(DB* db, ColumnFamilyHandle* family, uint64_t seed) {
    std::string value;
    for (size_t i = 0; i < kLevelKeys; i += 13) {
      ASSERT_TRUE(IsOk(db->Get({}, family, Key(i), &value))) << Key(i);
      ASSERT_EQ(value, TestValue(seed + i, 200));
    }
  }
  void ExpectAll(uint64_t seed) {
    for (ColumnFamilyHandle* family : handles_) Expect(db_.get(), family, seed);
  }
  int Deepest() {
    std::vector<LiveTableMetaData> tables;
    db_->GetLiveTablesMetaData(&tables);
    int deepest = 0;
    for (const LiveTableMetaData& table : tables) deepest = std::max(deepest, table.level);
    return deepest;
  }

  MemnodeProcesses nodes_{3, MemnodeProcessOptions{.size = "64MiB", .slab_size = "1MiB"}};
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
};

TEST_F(DBLevelsTest, MoreThanItHadAreUsed) {
  ASSERT_TRUE(IsOk(Open(2)));
  ASSERT_NO_FATAL_FAILURE(WriteAll(1));
  EXPECT_EQ(Deepest(), 1);
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options_, "db", &follower)));
  Close();
  ASSERT_TRUE(IsOk(Open(7)));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(1));
  ASSERT_NO_FATAL_FAILURE(WriteAll(2));
  EXPECT_GT(Deepest(), 1);
  ASSERT_NO_FATAL_FAILURE(ExpectAll(2));
  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  ASSERT_NO_FATAL_FAILURE(Expect(follower.get(), nullptr, 2));
  // It is opened by force, and again with more.
  const std::unique_ptr<DB> old = std::move(db_);
  const std::vector<ColumnFamilyHandle*> old_handles = std::move(handles_);
  handles_.clear();
  ASSERT_TRUE(IsOk(Open(9, /*take_over=*/true)));
  ASSERT_NO_FATAL_FAILURE(WriteAll(3));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(3));
  for (ColumnFamilyHandle* handle : old_handles) delete handle;
  Close();
}

TEST_F(DBLevelsTest, FewerAreRefusedIfATableIsBelow) {
  ASSERT_TRUE(IsOk(Open(7)));
  Close();
  ASSERT_TRUE(IsOk(Open(3))) << "there is no table at all";
  ASSERT_NO_FATAL_FAILURE(WriteAll(1));
  const int deepest = Deepest();
  ASSERT_EQ(deepest, 2);
  Close();
  EXPECT_TRUE(IsFailure(Open(2), Status::Code::kInvalidArgument, "num_levels"));
  ASSERT_TRUE(IsOk(Open(20))) << "as many as there may be";
  ASSERT_NO_FATAL_FAILURE(WriteAll(2));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(2));
  Close();
}

TEST_F(DBLevelsTest, ARestoreMayHaveMore) {
  const TempFolder folder;
  ASSERT_TRUE(IsOk(Open(3)));
  ASSERT_NO_FATAL_FAILURE(WriteAll(1));
  std::unique_ptr<Checkpoint> checkpoint;
  ASSERT_TRUE(IsOk(Checkpoint::Create(db_.get(), &checkpoint)));
  ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(folder.File("checkpoint"), {}, nullptr)));
  Close();
  options_.num_levels = 6;
  Options options = options_;
  RestoreOptions restore;
  restore.families = {{"other", options_}};
  ASSERT_TRUE(IsOk(RestoreDB(options, "copy", folder.File("checkpoint"), restore)));
  options_.num_levels = 8;
  ASSERT_TRUE(IsOk(DB::Open(options_, "copy", Families(), &handles_, &db_)));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(1));
  ASSERT_NO_FATAL_FAILURE(WriteAll(2));
  ASSERT_NO_FATAL_FAILURE(ExpectAll(2));
  Close();
}

}  // namespace
}  // namespace nacre
