// Goal: a keyspace is used as a database is, whatever lies on a border between its shards.
// Method: keyspaces of three or four shards over an embedded pool; each call that meets a border is
// compared with what one database would answer.

#include "nacre/utilities/sharded_db.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class ShardedDBTest : public testing::Test {
 protected:
  ShardedDBTest() : pool_(OpenTestPool({})), options_(Options()) {
    options_.pool = pool_;
    options_.create_if_missing = true;
    options_.boundaries = {"d", "m", "t"};
  }

  void Open() { ASSERT_TRUE(IsOk(ShardedDB::Open(options_, "keys", &db_))); }
  void Reopen() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    Open();
  }
  /// One key in each shard, and those at which they begin, with themselves as values.
  void Fill() {
    for (const char* key : {"a", "d", "dd", "lz", "m", "ss", "t", "z"}) {
      ASSERT_TRUE(IsOk(db_->Put({}, key, key)));
    }
  }
  std::string Get(const Slice& key, const ReadOptions& read = {}) {
    std::string value;
    const Status status = db_->Get(read, key, &value);
    return status.ok() ? value : status.ToString();
  }
  static std::string Walk(Iterator* iterator, bool forward) {
    std::string keys;
    for (; iterator->Valid(); forward ? iterator->Next() : iterator->Prev()) {
      keys += iterator->key().ToString() + ' ';
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return keys;
  }

  std::shared_ptr<Pool> pool_;
  ShardedOptions options_;
  std::unique_ptr<ShardedDB> db_;
};

TEST_F(ShardedDBTest, IsMadeAsToldAndOpenedAsItIs) {
  options_.create_if_missing = false;
  EXPECT_TRUE(ShardedDB::Open(options_, "keys", &db_).IsInvalidArgument());
  options_.create_if_missing = true;
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"m", "d"}, {"d", "d"}, {""}}) {
    options_.boundaries = wrong;
    const Status status = ShardedDB::Open(options_, "keys", &db_);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.message().find("boundaries"), std::string::npos) << status.ToString();
  }
  options_.boundaries = {"d", "m", "t"};
  options_.coordinator = "etcd:localhost:2379";
  EXPECT_TRUE(ShardedDB::Open(options_, "keys", &db_).IsNotSupported());
  options_.coordinator.clear();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  options_.boundaries = {"x"};  // It keeps its own.
  ASSERT_NO_FATAL_FAILURE(Reopen());
  const std::vector<ShardInfo> shards = db_->GetShards();
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[1].database, "keys@1");
  EXPECT_EQ(shards[1].begin, "d");
  EXPECT_EQ(shards[1].end, "m");
  EXPECT_TRUE(shards[3].last);
  EXPECT_EQ(Get("m"), "m");
  std::unique_ptr<ShardedDB> second;
  EXPECT_TRUE(ShardedDB::Open(options_, "keys", &second).IsBusy());
  options_.comparator = ReverseBytewiseComparator();
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  EXPECT_TRUE(ShardedDB::Open(options_, "keys", &db_).IsInvalidArgument());
  ASSERT_TRUE(IsOk(DestroyShardedDB("keys", options_)));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(ListDBs(options_, &names)));
  EXPECT_TRUE(names.empty());
}

TEST_F(ShardedDBTest, IteratorsGoOverBorders) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  iterator->SeekToFirst();
  EXPECT_EQ(Walk(iterator.get(), true), "a d dd lz m ss t z ");
  iterator->SeekToLast();
  EXPECT_EQ(Walk(iterator.get(), false), "z t ss m lz dd d a ");
  iterator->Seek("lzz");
  EXPECT_EQ(iterator->key(), Slice("m"));
  iterator->Prev();
  EXPECT_EQ(iterator->key(), Slice("lz"));
  iterator->Next();
  EXPECT_EQ(iterator->key(), Slice("m"));
  iterator->SeekForPrev("da");
  EXPECT_EQ(iterator->key(), Slice("d"));
  iterator->SeekForPrev("d");
  EXPECT_EQ(iterator->key(), Slice("d"));
  iterator->SeekForPrev("czz");
  EXPECT_EQ(iterator->key(), Slice("a"));
  // Shards without keys are passed over.
  ASSERT_TRUE(IsOk(db_->DeleteRange({}, "b", "t")));
  iterator = db_->NewIterator({});
  iterator->Seek("b");
  EXPECT_EQ(Walk(iterator.get(), true), "t z ");
  iterator->SeekForPrev("s");
  EXPECT_EQ(Walk(iterator.get(), false), "a ");
}

TEST_F(ShardedDBTest, IteratorsKeepToTheirBounds) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  Slice lower("d");
  Slice upper("t");
  ReadOptions bounded;
  bounded.iterate_lower_bound = &lower;
  bounded.iterate_upper_bound = &upper;
  const std::unique_ptr<Iterator> iterator(db_->NewIterator(bounded));
  iterator->SeekToFirst();
  EXPECT_EQ(Walk(iterator.get(), true), "d dd lz m ss ");
  iterator->SeekToLast();
  EXPECT_EQ(Walk(iterator.get(), false), "ss m lz dd d ");
  iterator->Seek("a");
  EXPECT_EQ(iterator->key(), Slice("d"));
  iterator->SeekForPrev("zz");
  EXPECT_EQ(iterator->key(), Slice("ss"));
  lower = Slice("n");
  upper = Slice("zz");
  iterator->Seek("a");
  EXPECT_EQ(Walk(iterator.get(), true), "ss t z ");
}

TEST_F(ShardedDBTest, BatchesOverShardsAndTheirSnapshots) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const Snapshot* const before = db_->GetSnapshot();
  WriteBatch batch;
  for (const char* key : {"z", "a", "m"}) ASSERT_TRUE(IsOk(batch.Put(key, "new")));
  ASSERT_TRUE(IsOk(batch.Delete("d")));
  ASSERT_TRUE(IsOk(batch.DeleteRange("dd", "t")));
  ASSERT_TRUE(IsOk(batch.Put("ss", "new")));
  ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  const auto check = [&] {
    EXPECT_EQ(Get("a"), "new");
    EXPECT_EQ(Get("d").substr(0, 8), "NotFound");
    EXPECT_EQ(Get("lz").substr(0, 8), "NotFound");
    EXPECT_EQ(Get("m").substr(0, 8), "NotFound");
    EXPECT_EQ(Get("ss"), "new");
    EXPECT_EQ(Get("t"), "t");
    EXPECT_EQ(Get("z"), "new");
  };
  check();
  ReadOptions earlier;
  earlier.snapshot = before;
  EXPECT_EQ(Get("m", earlier), "m");
  std::vector<std::string> values;
  std::vector<Status> statuses = db_->MultiGet(earlier, {"z", "a", "z", "q", "d"}, &values);
  EXPECT_EQ(values, (std::vector<std::string>{"z", "a", "z", "", "d"}));
  EXPECT_TRUE(statuses[3].IsNotFound());
  EXPECT_LT(before->GetSequenceNumber(), db_->GetLatestSequenceNumber());
  db_->ReleaseSnapshot(before);
  statuses = db_->MultiGet({}, {"z", "a", "z", "q", "d"}, &values);
  EXPECT_EQ(values[0] + values[1] + values[2], "newnewnew");
  EXPECT_TRUE(statuses[4].IsNotFound());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  check();
  // What no shard takes is refused by all of them.
  WriteBatch wrong;
  ASSERT_TRUE(IsOk(wrong.Put("a", "wrong")));
  ASSERT_TRUE(IsOk(wrong.Put("z" + std::string(2 << 20, 'z'), "too long")));
  EXPECT_TRUE(db_->Write({}, &wrong).IsInvalidArgument());
  EXPECT_EQ(Get("a"), "new");
  EXPECT_TRUE(db_->DeleteRange({}, "t", "d").IsInvalidArgument());
  ASSERT_TRUE(IsOk(db_->DeleteRange({}, "t", "t")));
  EXPECT_EQ(Get("t"), "t");
}

TEST_F(ShardedDBTest, FamiliesAreOnesOfAllShards) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "other", &family)));
  ColumnFamilyOptions reverse = options_;
  reverse.comparator = ReverseBytewiseComparator();
  ColumnFamilyHandle* none = nullptr;
  EXPECT_TRUE(db_->CreateColumnFamily(reverse, "reverse", &none).IsInvalidArgument());
  EXPECT_TRUE(db_->CreateColumnFamily(options_, "other", &none).IsInvalidArgument());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put(family, "a", "1")));
  ASSERT_TRUE(IsOk(batch.Put(family, "z", "2")));
  ASSERT_TRUE(IsOk(batch.Put("m", "3")));
  ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  std::vector<std::string> values;
  const std::vector<Status> statuses =
      db_->MultiGet({}, {family, nullptr, family}, {"z", "m", "m"}, &values);
  EXPECT_EQ(values[0] + values[1], "23");
  EXPECT_TRUE(statuses[2].IsNotFound());
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
  ASSERT_TRUE(IsOk(db_->Close()));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(ShardedDB::ListColumnFamilies(options_, "keys", &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"default", "other"}));
  EXPECT_TRUE(ShardedDB::Open(options_, "keys", &db_).IsInvalidArgument());
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_TRUE(IsOk(ShardedDB::Open(
      options_, "keys",
      {ColumnFamilyDescriptor("default", options_), ColumnFamilyDescriptor("other", options_)},
      &handles, &db_)));
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, handles[1], "z", &value)));
  EXPECT_EQ(value, "2");
  std::unique_ptr<Iterator> iterator(db_->NewIterator({}, handles[1]));
  iterator->SeekToFirst();
  EXPECT_EQ(Walk(iterator.get(), true), "a z ");
  iterator.reset();
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(handles[1])));
  EXPECT_TRUE(db_->Put({}, handles[1], "z", "3").IsInvalidArgument());
  for (ColumnFamilyHandle* handle : handles)
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
  ASSERT_NO_FATAL_FAILURE(Reopen());
}

TEST_F(ShardedDBTest, WhatIsAskedOfAllShards) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  uint64_t number = 0;
  ASSERT_TRUE(db_->GetIntProperty("nacre.shards", &number));
  EXPECT_EQ(number, 4u);
  ASSERT_TRUE(db_->GetIntProperty("rocksdb.estimate-num-keys", &number));
  EXPECT_EQ(number, 8u);
  EXPECT_FALSE(db_->GetIntProperty("nacre.unknown", &number));
  std::string text;
  ASSERT_TRUE(db_->GetProperty("nacre.stats", &text));
  EXPECT_NE(text.find("keys@3:"), std::string::npos);
  std::vector<LiveTableMetaData> tables;
  db_->GetLiveTablesMetaData(&tables);
  EXPECT_EQ(tables.size(), 4u);
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  EXPECT_EQ(metadata.file_count, 4u);
  ASSERT_TRUE(IsOk(db_->SetOptions({{"write_buffer_size", "131072"}})));
  EXPECT_EQ(db_->GetOptions().write_buffer_size, 131072u);
  EXPECT_TRUE(db_->SetOptions({{"no_such", "1"}}).IsInvalidArgument());
  ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(db_->Close()));
}

TEST_F(ShardedDBTest, ReverseOrderHasItsShardsInThatOrder) {
  options_.comparator = ReverseBytewiseComparator();
  options_.boundaries = {"t", "m", "d"};
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  iterator->SeekToFirst();
  EXPECT_EQ(Walk(iterator.get(), true), "z t ss m lz dd d a ");
  ASSERT_TRUE(IsOk(db_->DeleteRange({}, "t", "d")));
  EXPECT_EQ(Get("z") + Get("d") + Get("a"), "zda");
  EXPECT_EQ(Get("m").substr(0, 8), "NotFound");
}

TEST_F(ShardedDBTest, ReadersSeeBatchesOverShardsWhole) {
  constexpr int kBatches = 300;
  const std::vector<std::string> keys = {"a", "d", "p", "z"};
  ASSERT_NO_FATAL_FAILURE(Open());
  std::atomic<int> writing{2};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < kBatches; ++i) {
        WriteBatch batch;
        const std::string value = std::to_string(writer) + '-' + std::to_string(i);
        for (const std::string& key : keys) EXPECT_TRUE(IsOk(batch.Put(key, value)));
        EXPECT_TRUE(IsOk(db_->Write({}, &batch)));
        if (i % 50 == 0) {
          EXPECT_TRUE(IsOk(db_->Flush({})));
        }
      }
      --writing;
    });
  }
  threads.emplace_back([&] {
    const std::vector<Slice> slices(keys.begin(), keys.end());
    while (writing > 0) {
      std::vector<std::string> values;
      db_->MultiGet({}, slices, &values);
      for (const std::string& value : values) EXPECT_EQ(value, values[0]);
      const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
      std::string first;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        if (first.empty()) first = iterator->value().ToString();
        EXPECT_EQ(iterator->value(), Slice(first));
      }
      EXPECT_TRUE(IsOk(iterator->status()));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("a"), Get("z"));
}

}  // namespace
}  // namespace nacre
