// Goal: an indexed batch answers as the database would were the batch written: lookups, iterators
// in both directions and within bounds, after every kind of update and after rolling back to save
// points; and the batch itself is what was added.
// Method: single cases, then random updates and walks against a map, over a database that holds
// part of the keys.

#include "nacre/utilities/write_batch_with_index.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class WriteBatchWithIndexTest : public testing::Test {
 protected:
  void Open(const Comparator* comparator = BytewiseComparator()) {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.comparator = comparator;
    ASSERT_TRUE(IsOk(DB::Open(options, "batches", &db_)));
  }
  /// "key=value" in the order of the iterator.
  static std::string Walk(Iterator* iterator) {
    std::string result;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      result += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return result;
  }
  std::string GetBoth(WriteBatchWithIndex* batch, const std::string& key) {
    std::string value;
    const Status status = batch->GetFromBatchAndDB(db_.get(), {}, key, &value);
    if (status.ok()) return value;
    EXPECT_TRUE(status.IsNotFound()) << status.ToString();
    return "-";
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(WriteBatchWithIndexTest, TheBatchAlone) {
  WriteBatchWithIndex batch;
  ASSERT_TRUE(IsOk(batch.Put("b", "1")));
  ASSERT_TRUE(IsOk(batch.Put("a", "2")));
  ASSERT_TRUE(IsOk(batch.Delete("c")));
  ASSERT_TRUE(IsOk(batch.Put("b", "3")));
  ASSERT_TRUE(IsOk(batch.SingleDelete("d")));
  ASSERT_TRUE(IsOk(batch.PutLogData("blob")));
  EXPECT_TRUE(IsFailure(batch.DeleteRange("a", "z"), Status::Code::kNotSupported, "DeleteRange"));
  EXPECT_EQ(batch.GetWriteBatch()->Count(), 5U);
  std::string value;
  EXPECT_TRUE(IsOk(batch.GetFromBatch(Options(), "b", &value)));
  EXPECT_EQ(value, "3");
  for (const char* absent : {"c", "d", "e", ""}) {
    EXPECT_TRUE(batch.GetFromBatch(Options(), absent, &value).IsNotFound()) << absent;
  }

  const std::unique_ptr<WBWIIterator> iterator = batch.NewIterator();
  std::string seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    const WriteEntry entry = iterator->Entry();
    seen += std::to_string(static_cast<int>(entry.type)) + entry.key.ToString() +
            entry.value.ToString() + " ";
  }
  EXPECT_EQ(seen, "0a2 0b1 0b3 2c 3d ");
  seen.clear();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    seen += iterator->Entry().key.ToString();
  }
  EXPECT_EQ(seen, "dcbba");
  iterator->Seek("bb");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->Entry().key, Slice("c"));
  iterator->SeekForPrev("bb");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->Entry().value, Slice("3"));
  iterator->SeekForPrev("0");
  EXPECT_FALSE(iterator->Valid());
}

TEST_F(WriteBatchWithIndexTest, OverwrittenKeysHaveOneEntry) {
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  ASSERT_TRUE(IsOk(batch.Put("k", "1")));
  ASSERT_TRUE(IsOk(batch.Put("k", "2")));
  ASSERT_TRUE(IsOk(batch.Delete("k")));
  ASSERT_TRUE(IsOk(batch.Put("k", "3")));
  EXPECT_EQ(batch.GetWriteBatch()->Count(), 4U);
  const std::unique_ptr<WBWIIterator> iterator = batch.NewIterator();
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->Entry().value, Slice("3"));
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
}

TEST_F(WriteBatchWithIndexTest, OperandsStandBesideWhatTheyApplyTo) {
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  ASSERT_TRUE(IsOk(batch.Merge("k", "1")));
  std::string value;
  EXPECT_TRUE(IsFailure(batch.GetFromBatch(Options(), "k", &value), Status::Code::kIncomplete,
                        "does not know"));
  ASSERT_TRUE(IsOk(batch.Merge("k", "2")));
  const std::unique_ptr<WBWIIterator> iterator = batch.NewIterator();
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->Entry().type, WriteType::kMergeRecord);
  EXPECT_EQ(iterator->Entry().value, Slice("1"));
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->Entry().value, Slice("2"));
  ASSERT_TRUE(IsOk(batch.Put("k", "3")));
  ASSERT_TRUE(IsOk(batch.GetFromBatch(Options(), "k", &value)));
  EXPECT_EQ(value, "3");
}

TEST_F(WriteBatchWithIndexTest, ABatchThatWouldBeTooLongStaysAsItWas) {
  WriteBatchWithIndex batch(BytewiseComparator(), 0, true, /*max_bytes=*/64);
  ASSERT_TRUE(IsOk(batch.Put("k", "value")));
  const std::string before = batch.GetWriteBatch()->Data();
  EXPECT_TRUE(IsFailure(batch.Put("l", std::string(64, 'v')), Status::Code::kAborted, "64 bytes"));
  EXPECT_EQ(batch.GetWriteBatch()->Data(), before);
  std::string value;
  EXPECT_TRUE(batch.GetFromBatch(Options(), "l", &value).IsNotFound());
  EXPECT_TRUE(IsOk(batch.Put("l", "v")));
}

TEST_F(WriteBatchWithIndexTest, SavePoints) {
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
  ASSERT_TRUE(IsOk(batch.Put("a", "1")));
  batch.SetSavePoint();
  ASSERT_TRUE(IsOk(batch.Put("a", "2")));
  ASSERT_TRUE(IsOk(batch.Put("b", "2")));
  ASSERT_TRUE(IsOk(batch.RollbackToSavePoint()));
  std::string value;
  ASSERT_TRUE(IsOk(batch.GetFromBatch(Options(), "a", &value)));
  EXPECT_EQ(value, "1");
  EXPECT_TRUE(batch.GetFromBatch(Options(), "b", &value).IsNotFound());
  batch.SetSavePoint();
  ASSERT_TRUE(IsOk(batch.PopSavePoint()));
  EXPECT_TRUE(batch.PopSavePoint().IsNotFound());
  batch.Clear();
  EXPECT_TRUE(batch.GetFromBatch(Options(), "a", &value).IsNotFound());
}

TEST_F(WriteBatchWithIndexTest, OverADatabase) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* key : {"a", "c", "e"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "db")));
  WriteBatchWithIndex batch;
  ASSERT_TRUE(IsOk(batch.Put("b", "new")));
  ASSERT_TRUE(IsOk(batch.Put("c", "new")));
  ASSERT_TRUE(IsOk(batch.Delete("e")));
  EXPECT_EQ(GetBoth(&batch, "a"), "db");
  EXPECT_EQ(GetBoth(&batch, "b"), "new");
  EXPECT_EQ(GetBoth(&batch, "c"), "new");
  EXPECT_EQ(GetBoth(&batch, "e"), "-");
  EXPECT_EQ(GetBoth(&batch, "f"), "-");
  const std::unique_ptr<Iterator> both = batch.NewIteratorWithBase(db_->NewIterator({}));
  EXPECT_EQ(Walk(both.get()), "a=db b=new c=new ");

  const Slice keys[] = {"a", "b", "e", "f"};
  PinnableSlice values[4];
  Status statuses[4];
  batch.MultiGetFromBatchAndDB(db_.get(), {}, nullptr, 4, keys, values, statuses);
  EXPECT_TRUE(IsOk(statuses[0]));
  EXPECT_EQ(values[0], Slice("db"));
  EXPECT_TRUE(IsOk(statuses[1]));
  EXPECT_EQ(values[1], Slice("new"));
  EXPECT_TRUE(statuses[2].IsNotFound());
  EXPECT_TRUE(statuses[3].IsNotFound());
}

TEST_F(WriteBatchWithIndexTest, BoundsMayBeChangedBetweenSeeks) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* key : {"a", "c", "e"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "db")));
  WriteBatchWithIndex batch;
  for (const char* key : {"b", "d"}) ASSERT_TRUE(IsOk(batch.Put(key, "new")));
  Slice lower("b");
  Slice upper("d");
  ReadOptions options;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<Iterator> both =
      batch.NewIteratorWithBase(nullptr, db_->NewIterator(options), &options);
  EXPECT_EQ(Walk(both.get()), "b=new c=db ");
  lower = "a";
  upper = "e";
  EXPECT_EQ(Walk(both.get()), "a=db b=new c=db d=new ");
}

TEST_F(WriteBatchWithIndexTest, TheEntryThatIsShownMayBeWritten) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, "db")));
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  ASSERT_TRUE(IsOk(batch.Put("bb", "new")));
  const std::unique_ptr<Iterator> both = batch.NewIteratorWithBase(db_->NewIterator({}));
  std::string seen;
  for (both->SeekToFirst(); both->Valid(); both->Next()) {
    const std::string key = both->key().ToString();
    seen += key + " ";
    ASSERT_TRUE(IsOk(batch.Delete(key)));
  }
  EXPECT_EQ(seen, "a b bb c d ");
  EXPECT_EQ(Walk(both.get()), "");
}

/// Random updates of a batch over a database, and the same of a map.
class BatchModel {
 public:
  BatchModel(uint64_t seed, DB* db, const Comparator* comparator, bool overwrite)
      : random_(seed), db_(db), expected_(Less{comparator}), batch_(comparator, 0, overwrite) {}

  void FillDatabase() {
    for (int i = 0; i < 60; ++i) {
      const std::string key = Key();
      const std::string value = "db" + std::to_string(i);
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
      expected_[key] = value;
      if (i == 30) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
    }
  }
  void Step() {
    const std::string key = Key();
    switch (random_.Uniform(8)) {
      case 0:
        batch_.SetSavePoint();
        saved_.push_back(expected_);
        return;
      case 1:
        if (saved_.empty()) {
          EXPECT_TRUE(batch_.RollbackToSavePoint().IsNotFound());
        } else {
          ASSERT_TRUE(IsOk(batch_.RollbackToSavePoint()));
          expected_ = saved_.back();
          saved_.pop_back();
        }
        return;
      case 2:
      case 3:
        ASSERT_TRUE(IsOk(batch_.Delete(key)));
        expected_.erase(key);
        return;
      default:
        ASSERT_TRUE(IsOk(batch_.Put(key, std::to_string(++last_value_))));
        expected_[key] = std::to_string(last_value_);
    }
  }
  void CheckGets() {
    for (int i = 0; i < 20; ++i) {
      const std::string key = Key();
      std::string value;
      const Status status = batch_.GetFromBatchAndDB(db_, {}, key, &value);
      const auto found = expected_.find(key);
      if (found == expected_.end()) {
        EXPECT_TRUE(status.IsNotFound()) << key << ": " << status.ToString();
      } else {
        ASSERT_TRUE(IsOk(status)) << key;
        EXPECT_EQ(value, found->second) << key;
      }
    }
  }
  void CheckWalk() {
    std::optional<std::string> lower;
    std::optional<std::string> upper;
    if (random_.OneIn(2)) lower = Key();
    if (random_.OneIn(2)) upper = Key();
    const Slice lower_slice = lower.has_value() ? Slice(*lower) : Slice();
    const Slice upper_slice = upper.has_value() ? Slice(*upper) : Slice();
    ReadOptions options;
    if (lower.has_value()) options.iterate_lower_bound = &lower_slice;
    if (upper.has_value()) options.iterate_upper_bound = &upper_slice;
    const auto walked = batch_.NewIteratorWithBase(nullptr, db_->NewIterator(options), &options);
    Map within(expected_.key_comp());
    for (const auto& [key, value] : expected_) {
      if (lower.has_value() && expected_.key_comp()(key, *lower)) continue;
      if (upper.has_value() && !expected_.key_comp()(key, *upper)) continue;
      within[key] = value;
    }
    Map::const_iterator at = within.end();
    for (int i = 0; i < 60; ++i) {
      Move(walked.get(), within, &at);
      ASSERT_TRUE(IsOk(walked->status()));
      ASSERT_EQ(walked->Valid(), at != within.end());
      if (at == within.end()) continue;
      ASSERT_EQ(walked->key().ToString(), at->first);
      ASSERT_EQ(walked->value().ToString(), at->second);
    }
  }

 private:
  struct Less {
    const Comparator* comparator;
    bool operator()(const std::string& a, const std::string& b) const {
      return comparator->Compare(a, b) < 0;
    }
  };
  using Map = std::map<std::string, std::string, Less>;

  std::string Key() { return "k" + std::to_string(random_.Uniform(100)); }
  void Move(Iterator* walked, const Map& within, Map::const_iterator* at) {
    const std::string target = Key();
    switch (*at == within.end() ? random_.Uniform(4) : random_.Uniform(12)) {
      case 0:
        walked->SeekToFirst();
        *at = within.begin();
        return;
      case 1:
        walked->SeekToLast();
        *at = within.empty() ? within.end() : std::prev(within.end());
        return;
      case 2:
        walked->Seek(target);
        *at = within.lower_bound(target);
        return;
      case 3:
        walked->SeekForPrev(target);
        *at = within.upper_bound(target);
        *at = *at == within.begin() ? within.end() : std::prev(*at);
        return;
      case 4:
      case 5:
      case 6:
        walked->Prev();
        *at = *at == within.begin() ? within.end() : std::prev(*at);
        return;
      default:
        walked->Next();
        ++*at;
    }
  }

  Random random_;
  DB* const db_;
  Map expected_;
  std::vector<Map> saved_;
  WriteBatchWithIndex batch_;
  uint64_t last_value_ = 0;
};

TEST_F(WriteBatchWithIndexTest, RandomUpdatesAgainstAMap) {
  static const BackwardsComparator kBackwards;
  const uint64_t seed = TestSeed(4711);
  const Comparator* const orders[] = {BytewiseComparator(), ReverseBytewiseComparator(),
                                      &kBackwards};
  for (size_t round = 0; round < Scaled(6); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Comparator* order = orders[round % 3];
    ASSERT_NO_FATAL_FAILURE(Open(order));
    BatchModel model(seed + round, db_.get(), order, round % 2 == 0);
    ASSERT_NO_FATAL_FAILURE(model.FillDatabase());
    for (int i = 0; i < 100; ++i) {
      ASSERT_NO_FATAL_FAILURE(model.Step());
      ASSERT_NO_FATAL_FAILURE(model.CheckGets());
      ASSERT_NO_FATAL_FAILURE(model.CheckWalk());
    }
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
  }
}

}  // namespace
}  // namespace nacre
