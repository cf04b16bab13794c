// Goal: what a shard would refuse is refused before any of a batch takes place, and what was left
// by a batch or by other databases keeps no keyspace from being opened.
// Method: keyspaces over an embedded pool; batches whose last part is wrong; entries and databases
// written by hand that a crash, or an application, could have left.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "nacre/merge_operator.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "transactions/below.h"
#include "transactions/prepared_store.h"

namespace nacre {
namespace {

class ShardedRefusalsTest : public testing::Test {
 protected:
  ShardedRefusalsTest() : pool_(OpenTestPool({})) {
    options_.pool = pool_;
    options_.create_if_missing = true;
    options_.boundaries = {"m"};
  }

  Status TryOpen() {
    db_.reset();
    return ShardedDB::Open(options_, "keys", &db_);
  }
  void Open() { ASSERT_TRUE(IsOk(TryOpen())); }
  std::string Get(const Slice& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
  /// The batch takes place nowhere, and its keys can be used.
  void ExpectRefused(WriteBatch* batch, Status::Code code) {
    const Status status = db_->Write({}, batch);
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_EQ(Get("a"), "before");
    EXPECT_EQ(Get("z"), "before");
    EXPECT_TRUE(IsOk(db_->Put({}, "a", "before")));
    EXPECT_TRUE(IsOk(db_->Put({}, "z", "before")));
    EXPECT_TRUE(IsOk(TryOpen()));
    EXPECT_EQ(Get("a"), "before");
  }
  Options OfShard() const {
    Options options = options_;
    options.create_if_missing = true;
    return options;
  }

  std::shared_ptr<Pool> pool_;
  ShardedOptions options_;
  std::unique_ptr<ShardedDB> db_;
};

TEST_F(ShardedRefusalsTest, ABatchWhoseLastPartIsWrongTakesPlaceNowhere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "before")));
  ASSERT_TRUE(IsOk(db_->Put({}, "z", "before")));

  WriteBatch merge;
  ASSERT_TRUE(IsOk(merge.Put("a", "after")));
  ASSERT_TRUE(IsOk(merge.Merge("z", "x")));  // There is no operator.
  ExpectRefused(&merge, Status::Code::kNotSupported);

  WriteBatch range;
  ASSERT_TRUE(IsOk(range.Put("a", "after")));
  ASSERT_TRUE(IsOk(range.DeleteRange("z", std::string(2 << 20, 'z'))));
  ExpectRefused(&range, Status::Code::kInvalidArgument);
}

TEST_F(ShardedRefusalsTest, ABatchForADroppedFamilyTakesPlaceNowhere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "before")));
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily({}, "more", &family)));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "after")));
  ASSERT_TRUE(IsOk(batch.Put(family, "z", "after")));
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(family)));
  EXPECT_TRUE(db_->Write({}, &batch).IsInvalidArgument());
  EXPECT_EQ(Get("a"), "before");
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
}

/// A decided batch that was not committed in the second shard, which has lost one of its families.
TEST_F(ShardedRefusalsTest, WhatIsLeftForADroppedFamilyIsLeftOut) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily({}, "more", &family)));
  WriteBatch of_family;
  ASSERT_TRUE(IsOk(of_family.Put(family, "y", "dropped")));
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(family)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();

  const auto write = [&](const std::string& database, auto work) {
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(OfShard(), database, &db)));
    PreparedStore store(db.get(), EngineOf(db.get()));
    ASSERT_TRUE(IsOk(store.Open([](const std::string&, WriteBatch*) { return Status::OK(); })));
    work(db.get(), &store);
    store.Close();
    ASSERT_TRUE(IsOk(db->Close()));
  };
  write("keys@0", [](DB* db, PreparedStore* store) {
    WriteBatch decision;
    ASSERT_TRUE(IsOk(decision.Put("a", "decided")));
    ASSERT_TRUE(IsOk(store->AddEntry("1-1:0:decided", {}, &decision)));
    ASSERT_TRUE(IsOk(db->Write({}, &decision)));
  });
  write("keys@1", [&](DB* /*db*/, PreparedStore* store) {
    ASSERT_TRUE(IsOk(of_family.Put("z", "decided")));
    ASSERT_TRUE(IsOk(store->Add({}, "1-1:0", of_family)));
  });
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Get("a"), "decided");
  EXPECT_EQ(Get("z"), "decided");
  EXPECT_EQ(Get("y"), "NotFound");
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Get("z"), "decided");
}

TEST_F(ShardedRefusalsTest, DatabasesOfOthersAreNotTakenForShards) {
  std::unique_ptr<DB> other;
  ASSERT_TRUE(IsOk(DB::Open(OfShard(), "keys@1", &other)));
  ASSERT_TRUE(IsOk(other->Put({}, "mine", "1")));
  ASSERT_TRUE(IsOk(other->Close()));
  other.reset();
  for (int i = 0; i < 2; ++i) {
    const Status status = TryOpen();
    EXPECT_TRUE(status.IsInvalidArgument());
    EXPECT_NE(status.message().find("keys@1"), std::string::npos) << status.ToString();
  }
  ASSERT_TRUE(IsOk(DestroyShardedDB("keys", options_)));
  ASSERT_TRUE(IsOk(DB::Open(OfShard(), "keys@1", &other)));
  std::string value;
  EXPECT_TRUE(IsOk(other->Get({}, "mine", &value)));
  ASSERT_TRUE(IsOk(other->Close()));
  other.reset();
  ASSERT_TRUE(IsOk(DestroyDB("keys@1", options_)));
  ASSERT_NO_FATAL_FAILURE(Open());
}

TEST_F(ShardedRefusalsTest, FamiliesAreThoseOfTheMap) {
  std::vector<std::string> families;
  EXPECT_FALSE(ShardedDB::ListColumnFamilies(options_, "keys", &families).ok());
  ASSERT_NO_FATAL_FAILURE(Open());
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily({}, "more", &family)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  // While it is open, too.
  ASSERT_TRUE(IsOk(ShardedDB::ListColumnFamilies(options_, "keys", &families)));
  EXPECT_EQ(families, (std::vector<std::string>{"default", "more"}));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();

  // A crash while a family was made left it in the first shard.
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> shard;
  ASSERT_TRUE(IsOk(DB::Open(OfShard(), "keys@0",
                            {{"default", ColumnFamilyOptions()}, {"more", ColumnFamilyOptions()}},
                            &handles, &shard)));
  ASSERT_TRUE(IsOk(shard->CreateColumnFamily({}, "left", &family)));
  handles.push_back(family);
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_TRUE(IsOk(shard->DestroyColumnFamilyHandle(handle)));
  }
  ASSERT_TRUE(IsOk(shard->Close()));
  shard.reset();

  ASSERT_TRUE(IsOk(ShardedDB::ListColumnFamilies(options_, "keys", &families)));
  EXPECT_EQ(families, (std::vector<std::string>{"default", "more"}));
  std::vector<ColumnFamilyDescriptor> all;
  for (const std::string& name : families) all.emplace_back(name, ColumnFamilyOptions());
  handles.clear();
  ASSERT_TRUE(IsOk(ShardedDB::Open(options_, "keys", all, &handles, &db_)));
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
  }
}

}  // namespace
}  // namespace nacre
