// Goal: each thing that the published prototype of dLSM got wrong is right here: values over 8 KB,
// batches, answers under snapshots across compactions, iterators that go backward; and the corners
// next to these. (Processes and dead servers: tests/integration; nonsense options:
// options_check_test.cc; space: db_space_test.cc.)
// Method: small examples, each checked in the MemTable, after a flush, after compaction and after a
// reopen.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "table/format/internal_key.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBPrototypeTest : public testing::TestWithParam<CompactionSite> {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    options_.compaction = GetParam();
    Reopen();
  }

  void Reopen() {
    if (db_ != nullptr) {
      ASSERT_TRUE(IsOk(db_->Close()));
      db_.reset();
    }
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
  }
  void Delete(const std::string& key) { ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key))); }
  void Flush() { ASSERT_TRUE(IsOk(db_->Flush({}))); }
  void Compact() { ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr))); }

  std::string Get(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "(none)" : status.ToString();
  }

  /// "k=v k=v ..." of all pairs.
  std::string Scan(bool forward, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    const auto iterator = db_->NewIterator(options);
    std::string text;
    forward ? iterator->SeekToFirst() : iterator->SeekToLast();
    while (iterator->Valid()) {
      text += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
      forward ? iterator->Next() : iterator->Prev();
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return text;
  }

  /// Runs `check` in every place that data may lie in. No snapshots may be held.
  void Everywhere(const std::function<void()>& check) {
    const auto in = [&](const char* where) {
      SCOPED_TRACE(where);
      check();
    };
    in("MemTable");
    Flush();
    in("level 0");
    Compact();
    in("compacted");
    Reopen();
    in("reopened");
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

INSTANTIATE_TEST_SUITE_P(Sites, DBPrototypeTest,
                         testing::Values(CompactionSite::kAuto, CompactionSite::kCompute));

TEST_P(DBPrototypeTest, ValuesOfAnySize) {
  std::map<std::string, std::string> values;
  const size_t chunk = options_.chunk_size;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{8191}, size_t{8192}, size_t{8193}, chunk - 20,
        2 * chunk, 3 * chunk + 1, size_t{65'536}, size_t{1'000'000}}) {
    values["value" + std::to_string(size)] = TestValue(size, size);
  }
  for (const auto& [key, value] : values) Put(key, value);
  Everywhere([&] {
    for (const auto& [key, value] : values) ASSERT_EQ(Get(key), value) << key;
    const auto iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    for (const auto& [key, value] : values) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key().ToString(), key);
      ASSERT_TRUE(iterator->value() == Slice(value)) << key;
      iterator->Next();
    }
    ASSERT_FALSE(iterator->Valid());
  });
}

TEST_P(DBPrototypeTest, ValueOf20Megabytes) {
  const std::string value = TestValue(5, 20'000'000);
  for (int i = 0; i < 300; ++i) Put("small" + std::to_string(i), TestValue(1, 300));
  Put("large", value);
  Everywhere([&] {
    ASSERT_TRUE(Get("large") == value);
    ASSERT_EQ(Get("small7"), TestValue(1, 300));
    const auto iterator = db_->NewIterator({});
    iterator->Seek("large");
    ASSERT_TRUE(iterator->Valid());
    ASSERT_TRUE(iterator->value() == Slice(value));
    iterator->Next();
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key().ToString(), "small0");
  });
  Delete("large");
  Everywhere([&] { ASSERT_EQ(Get("large"), "(none)"); });
}

TEST_P(DBPrototypeTest, KeysOfAnyBytes) {
  std::map<std::string, std::string> values;
  for (const std::string& key :
       {std::string(), std::string(1, '\0'), std::string(2, '\0'), std::string("a\0b", 3),
        std::string("\xff"), std::string(9, '\xff'), std::string(5000, 'k'),
        std::string(100'000, 'L'), std::string(1 << 20, 'M')}) {
    values[key] = "of " + std::to_string(key.size());
  }
  for (const auto& [key, value] : values) Put(key, value);
  Everywhere([&] {
    for (const auto& [key, value] : values) ASSERT_EQ(Get(key), value) << key.size();
    const auto iterator = db_->NewIterator({});
    iterator->SeekToLast();
    for (auto pair = values.rbegin(); pair != values.rend(); ++pair) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_TRUE(iterator->key() == Slice(pair->first));
      iterator->Prev();
    }
    ASSERT_FALSE(iterator->Valid());
    iterator->Seek("");
    ASSERT_TRUE(iterator->Valid());
    ASSERT_TRUE(iterator->key().empty());
  });
}

TEST_P(DBPrototypeTest, BatchOfTwoEntries) {
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "1")));
  ASSERT_TRUE(IsOk(batch.Put("b", "2")));
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
  Everywhere([&] { ASSERT_EQ(Scan(true), "a=1 b=2 "); });
}

TEST_P(DBPrototypeTest, BatchAppliesItsUpdatesInOrder) {
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "first")));
  ASSERT_TRUE(IsOk(batch.Put("a", "second")));
  ASSERT_TRUE(IsOk(batch.Delete("b")));
  ASSERT_TRUE(IsOk(batch.Put("b", "back")));
  ASSERT_TRUE(IsOk(batch.Put("c", "gone")));
  ASSERT_TRUE(IsOk(batch.Delete("c")));
  const SequenceNumber before = db_->GetLatestSequenceNumber();
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
  EXPECT_EQ(db_->GetLatestSequenceNumber(), before + 6);
  Everywhere([&] { ASSERT_EQ(Scan(true), "a=second b=back "); });
}

TEST_P(DBPrototypeTest, EmptyAndLargeAndMalformedBatches) {
  WriteBatch empty;
  EXPECT_TRUE(IsOk(db_->Write(NoLog(), &empty)));
  WriteBatch large;  // More entries than writes may be unpublished at once, larger than a buffer.
  for (int i = 0; i < 40'000; ++i) {
    ASSERT_TRUE(IsOk(large.Put("key" + std::to_string(i), TestValue(1, 50))));
  }
  EXPECT_TRUE(IsOk(db_->Write(NoLog(), &large)));
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), nullptr), Status::Code::kInvalidArgument, "batch"));
  WriteBatch malformed(large.Data().substr(0, 1000));
  const SequenceNumber before = db_->GetLatestSequenceNumber();
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), &malformed), Status::Code::kCorruption, "batch"));
  EXPECT_EQ(db_->GetLatestSequenceNumber(), before) << "of a bad batch nothing is written";
  Everywhere([&] {
    ASSERT_EQ(Get("key0"), TestValue(1, 50));
    ASSERT_EQ(Get("key39999"), TestValue(1, 50));
  });
}

TEST_P(DBPrototypeTest, SnapshotsAcrossCompactions) {
  struct State {
    const Snapshot* snapshot;
    std::string pairs;
  };
  std::vector<State> states;
  const auto check = [&] {
    for (const State& state : states) {
      ASSERT_EQ(Scan(true, state.snapshot), state.pairs);
      ASSERT_EQ(Get("k", state.snapshot), state.pairs.find("k=") == std::string::npos
                                              ? "(none)"
                                              : state.pairs.substr(state.pairs.find("k=") + 2, 2));
    }
  };
  const auto take = [&] { states.push_back({db_->GetSnapshot(), Scan(true)}); };
  // Put, delete and put again, each state held, with flush or compaction in between.
  take();
  for (int i = 10; i < 40; ++i) {
    if (i % 3 == 0) {
      Delete("k");
    } else {
      Put("k", std::to_string(i));
    }
    Put("other" + std::to_string(i % 4), std::to_string(i));
    take();
    if (i % 4 == 0) Flush();
    if (i % 7 == 0) Compact();
    ASSERT_NO_FATAL_FAILURE(check());
  }
  Compact();
  ASSERT_NO_FATAL_FAILURE(check());
  // Release some in the middle; the others keep their answers through the next compaction.
  while (states.size() > 1) {
    const size_t i = states.size() / 2;
    db_->ReleaseSnapshot(states[i].snapshot);
    states.erase(states.begin() + static_cast<ptrdiff_t>(i));
    if (states.size() % 5 == 0) Compact();
    ASSERT_NO_FATAL_FAILURE(check());
  }
  db_->ReleaseSnapshot(states[0].snapshot);
  db_->ReleaseSnapshot(nullptr);
  const std::string last = Scan(true);
  Everywhere([&] { ASSERT_EQ(Scan(true), last); });
}

TEST_P(DBPrototypeTest, VersionsOfOneKeyThatDoNotFitOneTable) {
  // Each version is held by a snapshot, and they are larger than a table; older ones much larger
  // than newer ones, so that a flush has to put them into tables of their own.
  std::vector<const Snapshot*> snapshots;
  std::vector<size_t> sizes;
  for (const size_t size : {3'000'000, 400'000, 400'000, 70'000, 70'000, 70'000, 10, 10}) {
    Put("a", "x");
    Put("k", TestValue(size, size));
    for (int i = 0; i < 50; ++i) Put("z" + std::to_string(i), "");
    snapshots.push_back(db_->GetSnapshot());
    sizes.push_back(size);
  }
  const auto check = [&] {
    ASSERT_TRUE(Get("k") == TestValue(10, 10)) << "the newest version is hidden by an older one";
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(Get("k", snapshots[i]) == TestValue(sizes[i], sizes[i])) << i;
    }
  };
  ASSERT_NO_FATAL_FAILURE(check());
  Flush();
  ASSERT_NO_FATAL_FAILURE(check());
  for (int i = 0; i < 3; ++i) {
    Compact();
    ASSERT_NO_FATAL_FAILURE(check());
  }
  for (const Snapshot* snapshot : snapshots) db_->ReleaseSnapshot(snapshot);
  Everywhere([&] { ASSERT_EQ(Get("k"), TestValue(10, 10)); });
}

TEST_P(DBPrototypeTest, VersionsOfOneKeyFlushedToSeveralTables) {
  // What is reserved for a flush of small records is too little for the long keys at its end, so
  // their versions are cut apart. The newest must still be found first.
  options_.write_buffer_size = 64 << 20;
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  uint64_t most_tables = 0;
  for (const size_t length : {50'000, 200'000, 500'000, 1'000'000}) {
    SCOPED_TRACE(length);
    for (int i = 0; i < 10'000; ++i) Put("key" + std::to_string(i), "small");
    const std::string key(length, 'z');
    std::vector<const Snapshot*> snapshots;
    for (int version = 0; version < 4; ++version) {
      Put(key, std::to_string(version));
      snapshots.push_back(db_->GetSnapshot());
    }
    Flush();
    most_tables = std::max(most_tables, GetNumber(db_.get(), "nacre.num-files-at-level0"));
    ASSERT_EQ(Get(key), "3") << "an older version is found first";
    for (int version = 0; version < 4; ++version) {
      ASSERT_EQ(Get(key, snapshots[static_cast<size_t>(version)]), std::to_string(version));
    }
    Compact();
    ASSERT_EQ(Get(key), "3");
    for (const Snapshot* snapshot : snapshots) db_->ReleaseSnapshot(snapshot);
    Delete(key);
    Compact();
    ASSERT_EQ(Get(key), "(none)");
  }
  EXPECT_GE(most_tables, 2u) << "the flush was not cut within the key's versions";
}

TEST_P(DBPrototypeTest, UpdatesThatNoTableCouldHoldAreRefused) {
  const std::string key((1 << 20) + 1, 'k');
  EXPECT_TRUE(IsFailure(db_->Put(NoLog(), key, "v"), Status::Code::kInvalidArgument, "1048577"));
  EXPECT_TRUE(IsFailure(db_->Delete(NoLog(), key), Status::Code::kInvalidArgument, "key"));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("a", "1")));
  ASSERT_TRUE(IsOk(batch.Put(key, "2")));
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), &batch), Status::Code::kInvalidArgument, "key"));
  EXPECT_EQ(Scan(true), "") << "of a refused batch nothing is written";
}

TEST_P(DBPrototypeTest, IteratorsBackward) {
  for (const char* key : {"b", "d", "f"}) Put(key, key);
  Everywhere([&] {
    ASSERT_EQ(Scan(false), "f=f d=d b=b ");
    const auto iterator = db_->NewIterator({});
    iterator->SeekForPrev("e");
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key().ToString(), "d");
    iterator->Next();
    ASSERT_EQ(iterator->key().ToString(), "f");
    iterator->Prev();
    ASSERT_EQ(iterator->key().ToString(), "d");
    iterator->Prev();
    ASSERT_EQ(iterator->key().ToString(), "b");
    iterator->Prev();
    ASSERT_FALSE(iterator->Valid());
    iterator->SeekForPrev("a");
    ASSERT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    ASSERT_EQ(iterator->key().ToString(), "f");
    iterator->Next();
    ASSERT_FALSE(iterator->Valid());
    ASSERT_TRUE(IsOk(iterator->status()));
  });
}

TEST_P(DBPrototypeTest, IteratorsOfAnEmptyDatabase) {
  Everywhere([&] {
    const auto iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    ASSERT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    ASSERT_FALSE(iterator->Valid());
    iterator->Seek("x");
    ASSERT_FALSE(iterator->Valid());
    iterator->SeekForPrev("x");
    ASSERT_FALSE(iterator->Valid());
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(Get("x"), "(none)");
    std::vector<std::string> values;
    ASSERT_TRUE(db_->MultiGet({}, {}, &values).empty());
  });
}

TEST_P(DBPrototypeTest, DeletedKeysStayDeleted) {
  // A tombstone hides a value that lies deeper, whichever of the two is merged first.
  Put("k", "old");
  Compact();
  Put("l", "old");
  Flush();
  Delete("k");
  Delete("l");
  Delete("never there");
  Everywhere([&] {
    ASSERT_EQ(Get("k"), "(none)");
    ASSERT_EQ(Scan(true), "");
    ASSERT_EQ(Scan(false), "");
  });
}

}  // namespace
}  // namespace nacre
