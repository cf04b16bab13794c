// Goal: a MemTable that is large enough is flushed in several ranges by several threads, and only
// the number of tables shows it. Method: databases with a large write buffer, checked against a
// model, under two comparators, with snapshots, deletions and many versions of one key.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/db.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kValueBytes = 1'000;

struct Order {
  const Comparator* comparator;
  bool operator()(const std::string& a, const std::string& b) const {
    return comparator->Compare(a, b) < 0;
  }
};
using OrderedModel = std::map<std::string, std::string, Order>;

class DBFlushTest : public testing::TestWithParam<const Comparator*> {
 protected:
  void Open(int background_jobs, int redundancy = 1) {
    options_.pool = OpenTestPool();
    options_.comparator = GetParam();
    options_.create_if_missing = true;
    options_.write_buffer_size = 64 << 20;
    options_.max_background_jobs = background_jobs;
    options_.disable_auto_compactions = true;
    if (redundancy > 1) options_.redundancy = "rep(" + std::to_string(redundancy) + ")";
    ASSERT_TRUE(IsOk(DB::Open(options_, "flush", &db_)));
  }

  void Put(const std::string& key, uint64_t seed, size_t bytes = kValueBytes) {
    const std::string value = TestValue(seed, bytes);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
    model_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
    model_.erase(key);
  }

  void Check(const OrderedModel& model, const ReadOptions& read) {
    std::vector<std::string> names;
    std::string value;
    for (const auto& [key, expected] : model) {
      ASSERT_TRUE(IsOk(db_->Get(read, key, &value)));
      ASSERT_EQ(value, expected);
      names.push_back(key);
    }
    std::vector<std::string> values;
    const auto statuses =
        db_->MultiGet(read, std::vector<Slice>(names.begin(), names.end()), &values);
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_TRUE(IsOk(statuses[i]));
      ASSERT_EQ(values[i], model.at(names[i]));
    }
    const auto iterator = db_->NewIterator(read);
    iterator->SeekToFirst();
    for (const auto& [key, expected] : model) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key().ToString(), key);
      ASSERT_EQ(iterator->value().ToString(), expected);
      iterator->Next();
    }
    EXPECT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    for (auto entry = model.rbegin(); entry != model.rend(); ++entry) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key().ToString(), entry->first);
      iterator->Prev();
    }
    EXPECT_FALSE(iterator->Valid());
    EXPECT_TRUE(IsOk(iterator->status()));
  }

  uint64_t TablesInLevel0() { return GetNumber(db_.get(), "nacre.num-files-at-level0"); }

  Options options_;
  std::unique_ptr<DB> db_;
  OrderedModel model_{Order{GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Comparators, DBFlushTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator()),
                         [](const auto& test) { return test.index == 0 ? "Bytewise" : "Reverse"; });

TEST_P(DBFlushTest, InAsManyRangesAsThereAreThreads) {
  Random random(TestSeed(61));
  ASSERT_NO_FATAL_FAILURE(Open(3, 2));
  for (int i = 0; i < 15'000; ++i)
    Put("key" + std::to_string(random.Uniform(40'000)), random.Next());
  for (int i = 0; i < 3'000; ++i) Delete("key" + std::to_string(random.Uniform(40'000)));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(TablesInLevel0(), 3u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));

  // A second flush, whose ranges are others, lies above the first.
  for (int i = 0; i < 15'000; ++i)
    Put("key" + std::to_string(random.Uniform(9'000)), random.Next());
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(TablesInLevel0(), 6u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));

  ASSERT_TRUE(IsOk(db_->Close()));
  options_.create_if_missing = false;
  ASSERT_TRUE(IsOk(DB::Open(options_, "flush", &db_)));
  EXPECT_EQ(TablesInLevel0(), 6u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(TablesInLevel0(), 0u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));
}

TEST_P(DBFlushTest, SmallMemTablesMakeOneTable) {
  ASSERT_NO_FATAL_FAILURE(Open(8));
  for (int i = 0; i < 4'000; ++i) Put("key" + std::to_string(i), 1);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(TablesInLevel0(), 1u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));
}

// Nearly all entries are versions of one key, which a snapshot each keeps alive: they cannot be
// divided, and the newest must be found first in spite of their number.
TEST_P(DBFlushTest, VersionsOfOneKeyStayTogether) {
  Random random(TestSeed(62));
  ASSERT_NO_FATAL_FAILURE(Open(4));
  std::vector<std::pair<const Snapshot*, OrderedModel>> snapshots;
  for (int i = 0; i < 20'000; ++i) {
    const bool hot = !random.OneIn(20);
    Put(hot ? "hot" : "key" + std::to_string(random.Uniform(1'000)), random.Next());
    if (i % 2'000 == 0) snapshots.emplace_back(db_->GetSnapshot(), model_);
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  for (const auto& [snapshot, model] : snapshots) {
    ReadOptions read;
    read.snapshot = snapshot;
    ASSERT_NO_FATAL_FAILURE(Check(model, read));
    db_->ReleaseSnapshot(snapshot);
  }
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));
}

// Sizes that differ so much that one range needs several times the room of another.
TEST_P(DBFlushTest, RangesOfUnequalBytes) {
  Random random(TestSeed(63));
  ASSERT_NO_FATAL_FAILURE(Open(4));
  for (int i = 0; i < 3'000; ++i) {
    Put("a" + std::to_string(i), random.Next(), 10);
    if (i % 100 == 0) Put("z" + std::to_string(i), random.Next(), 900'000);
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_GE(TablesInLevel0(), 2u);
  ASSERT_NO_FATAL_FAILURE(Check(model_, {}));
}

}  // namespace
}  // namespace nacre
