// Goal: what the application's code throws, and a lack of memory, is a Status for the caller, and
// does not affect other threads: no write, flush, compaction or Close waits for one that broke off,
// no batch is seen in half, nothing that was acknowledged is lost. Method: comparators, operators,
// filters, listeners and loggers that throw when they meet a key that says so, while the test has
// them armed; on embedded nodes, which have no log, and on processes, which have one; a named point
// that throws in the midst of the log's work.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/db.h"
#include "nacre/listener.h"
#include "nacre/merge_operator.h"
#include "nacre/write_batch.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "tests/support/throwing_comparator.h"
#include "util/named_point.h"

namespace nacre {
namespace {

class ThrowingOperator final : public MergeOperator {
 public:
  const char* Name() const override { return "nacre.test.ThrowingOperator"; }
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    ThrowAt(in.key);
    for (const Slice& operand : in.operand_list) out->new_value += operand.ToString();
    return true;
  }
};

class ThrowingFilter final : public CompactionFilter {
 public:
  const char* Name() const override { return "nacre.test.ThrowingFilter"; }
  Decision FilterV2(int, const Slice& key, ValueType, const Slice&, std::string*,
                    std::string*) const override {
    ThrowAt(key);
    return Decision::kKeep;
  }
};

class ThrowingListener final : public EventListener {
 public:
  void OnFlushBegin(DB*, const FlushJobInfo&) override { throw std::runtime_error("a listener"); }
  void OnFlushCompleted(DB*, const FlushJobInfo&) override { throw 42; }
};

class ThrowingLogger final : public Logger {
 public:
  void Log(LogLevel, std::string_view) override { throw std::runtime_error("a logger"); }
};

constexpr const char kReserved[] = "compaction.space-reserved";
constexpr const char kWritten[] = "compaction.tables-written";
constexpr const char kFlushReserved[] = "flush.space-reserved";

template <const char* kName>
void ThrowAtPoint(const NamedPoint& point) {
  if (std::string_view(point.name) == kName) throw std::bad_alloc();
}

class DBExceptionsTest : public testing::Test {
 protected:
  ~DBExceptionsTest() override {
    armed = false;
    SetPointHandler(nullptr);
  }
  /// Starts three nodes, which have a log.
  void StartNodes() {
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "128MiB", .slab_size = "1MiB"});
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_->pool_uri();
    options_.redundancy = "rep(2)";
    options_.write_buffer_size = 16 << 20;  // Flushed when the test says so.
    options_.comparator = &comparator_;
  }
  /// Starts embedded nodes, which have none.
  void StartEmbedded() {
    options_ = SmallTableOptions(OpenTestPool());
    options_.write_buffer_size = 16 << 20;
    options_.comparator = &comparator_;
  }
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
  /// "a" and "z" with "poison" between them.
  static WriteBatch Poisoned() {
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put("a", "new")));
    EXPECT_TRUE(IsOk(batch.Put("poison", "new")));
    EXPECT_TRUE(IsOk(batch.Put("z", "new")));
    return batch;
  }

  const std::string absent_ = Status::NotFound().ToString();
  const ThrowingComparator comparator_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBExceptionsTest, AWriteThatLeftNothingBehindChangesNothing) {
  StartEmbedded();
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "1")));
  armed = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsFailure(db_->Put({}, "poison", "1"), Status::Code::kAborted, "met poison"));
    ASSERT_TRUE(IsOk(db_->Put({}, "c" + std::to_string(i), "1")));
  }
  EXPECT_TRUE(IsFailure(db_->DeleteRange({}, "b", "poison"), Status::Code::kAborted, "met poison"));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Get("c2"), "1");
  armed = false;
  EXPECT_EQ(Get("poison"), absent_);
  ASSERT_TRUE(IsOk(db_->Put({}, "poison", "2")));
  EXPECT_EQ(Get("poison"), "2");
  ASSERT_TRUE(IsOk(db_->Close()));
  Open();
  EXPECT_EQ(Get("poison"), "2");
}

TEST_F(DBExceptionsTest, ABatchThatBrokeOffIsNeverSeenAndReadsGoOn) {
  StartEmbedded();
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "old")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "old")));
  armed = true;
  WriteBatch batch = Poisoned();
  EXPECT_TRUE(IsFailure(db_->Write({}, &batch), Status::Code::kAborted, "met poison"));
  armed = false;
  EXPECT_EQ(Get("a"), "old");
  EXPECT_EQ(Get("b"), "old");
  EXPECT_EQ(Get("z"), absent_);
  EXPECT_TRUE(db_->Put({}, "c", "1").IsAborted());
  EXPECT_TRUE(db_->Write({}, &batch).IsAborted());
  EXPECT_TRUE(db_->Flush({}).IsAborted()) << "half of a batch must not get into a table";
  EXPECT_EQ(Get("b"), "old");
  EXPECT_FALSE(db_->Close().ok()) << "what was not flushed is lost with an embedded pool";
  Open();
  EXPECT_EQ(Get("a"), "old");
  ASSERT_TRUE(IsOk(db_->Put({}, "c", "1")));
}

TEST_F(DBExceptionsTest, WritersBehindABatchThatBrokeOffAreTold) {
  StartEmbedded();
  Open();
  armed = true;
  std::atomic<int> writing{0};
  std::vector<std::thread> writers;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      const std::string key = "k" + std::to_string(i);
      for (Status s; s.ok() && !stop; ++writing) {
        s = db_->Put({}, key, "v");
        EXPECT_TRUE(s.ok() || s.IsAborted()) << s.ToString();
      }
    });
  }
  while (writing < 1000) std::this_thread::yield();
  WriteBatch batch = Poisoned();
  EXPECT_TRUE(db_->Write({}, &batch).IsAborted());
  for (std::thread& writer : writers) writer.join();
  armed = false;
  EXPECT_EQ(Get("k0"), "v");
  EXPECT_EQ(Get("a"), absent_);
  EXPECT_FALSE(db_->Close().ok());
}

TEST_F(DBExceptionsTest, TheNextOwnerHasTheWholeBatchFromTheLog) {
  StartNodes();
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "old")));
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "old")));
  armed = true;
  WriteBatch batch = Poisoned();
  EXPECT_TRUE(IsFailure(db_->Write({}, &batch), Status::Code::kAborted, "met poison"));
  armed = false;
  EXPECT_EQ(Get("a"), "old");
  EXPECT_TRUE(db_->Put({}, "c", "1").IsAborted());
  db_->Close().IgnoreError();
  Open();
  EXPECT_EQ(Get("b"), "old");
  // It was not asked whether its record was acknowledged; there is all of it or nothing.
  EXPECT_EQ(Get("a"), Get("z") == "new" ? "new" : "old");
  EXPECT_EQ(Get("poison"), Get("z"));
  ASSERT_TRUE(IsOk(db_->Put({}, "c", "1")));
}

TEST_F(DBExceptionsTest, ReplayOfWhatThrowsIsAnAnswer) {
  StartNodes();
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db_->Put({}, "poison", "1")));
  const std::unique_ptr<DB> old = std::move(db_);
  options_.take_over = true;
  armed = true;
  EXPECT_TRUE(IsFailure(DB::Open(options_, "db", &db_), Status::Code::kAborted, "met poison"));
  armed = false;
  Open();
  EXPECT_EQ(Get("poison"), "1");
}

TEST_F(DBExceptionsTest, ALackOfMemoryInTheLogEndsItAndLosesNothing) {
  StartNodes();
  Open();
  const std::string value = TestValue(1, 10'000);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(IsOk(db_->Put({}, std::to_string(i), value)));
  SetPointHandler([](const NamedPoint& point) {
    if (std::string_view(point.name) == "log.seal") throw std::bad_alloc();
  });
  Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) {
    status = db_->Put({}, "more", value);
  }
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  EXPECT_TRUE(db_->Put({}, "later", value).IsAborted());
  SetPointHandler(nullptr);
  EXPECT_EQ(Get("7"), value);
  db_->Close().IgnoreError();
  Open();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Get(std::to_string(i)), value);
  EXPECT_EQ(Get("more"), value);
  ASSERT_TRUE(IsOk(db_->Put({}, "later", value)));
}

TEST_F(DBExceptionsTest, WhatAJobThatThrewHadReservedIsFree) {
  StartNodes();
  options_.comparator = BytewiseComparator();
  options_.near_data_flush = NearDataFlush::kOn;
  options_.disable_auto_compactions = true;
  for (const CompactionSite site : {CompactionSite::kCompute, CompactionSite::kAuto}) {
    options_.compaction = site;
    Open();
    for (PointHandler* const handler : {ThrowAtPoint<kReserved>, ThrowAtPoint<kWritten>}) {
      for (int flush = 0; flush < 2; ++flush) {
        for (int i = 0; i < 1000; ++i) {
          ASSERT_TRUE(IsOk(db_->Put({}, std::to_string(i), TestValue(1, 1000))));
        }
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
      // Spare segments of the log come and go; a table is larger than these may differ by.
      const auto used = [this] { return GetNumber(db_.get(), "nacre.space.used-bytes"); };
      const uint64_t before = used();
      SetPointHandler(handler);
      EXPECT_TRUE(IsFailure(db_->CompactRange({}, nullptr, nullptr), Status::Code::kAborted));
      SetPointHandler(nullptr);
      EXPECT_TRUE(Eventually([&] { return used() <= before + 100'000; }))
          << before << " bytes before, " << used() << " after";
      EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      EXPECT_EQ(Get("7"), TestValue(1, 1000));
    }
    ASSERT_TRUE(IsOk(db_->Close()));
  }
}

TEST_F(DBExceptionsTest, WhatAFlushThatThrewHadReservedIsFree) {
  StartNodes();
  options_.comparator = BytewiseComparator();
  options_.near_data_flush = NearDataFlush::kOn;
  Open();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, std::to_string(i), TestValue(1, 1000))));
  }
  const auto used = [this] { return GetNumber(db_.get(), "nacre.space.used-bytes"); };
  const uint64_t before = used();
  SetPointHandler(ThrowAtPoint<kFlushReserved>);
  EXPECT_TRUE(IsFailure(db_->Flush({}), Status::Code::kAborted));
  EXPECT_TRUE(Eventually([&] { return used() <= before + 100'000; }))
      << before << " bytes before, " << used() << " after";
  SetPointHandler(nullptr);
  EXPECT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Get("7"), TestValue(1, 1000));
}

TEST_F(DBExceptionsTest, ReadsAnswerWhatAComparatorThrows) {
  StartEmbedded();
  Open();
  for (const char* key : {"a", "poison", "z"}) ASSERT_TRUE(IsOk(db_->Put({}, key, "1")));
  for (const bool flushed : {false, true}) {
    if (flushed) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    armed = true;
    std::string value;
    // A MemTable finds keys without comparing them.
    EXPECT_EQ(db_->Get({}, "poison", &value).IsAborted(), flushed);
    const Slice keys[] = {"a", "poison"};
    std::vector<std::string> values;
    for (const Status& status : db_->MultiGet({}, {keys[0], keys[1]}, &values)) {
      EXPECT_EQ(status.ok(), !flushed);
    }
    iterator->Seek("poison");
    EXPECT_FALSE(iterator->Valid());
    EXPECT_TRUE(iterator->status().IsAborted()) << iterator->status().ToString();
    iterator->SeekForPrev("poison");
    EXPECT_TRUE(iterator->status().IsAborted()) << iterator->status().ToString();
    armed = false;
    iterator->Seek("b");
    ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
    EXPECT_EQ(iterator->key(), Slice("poison"));
    EXPECT_EQ(Get("poison"), "1");
  }
}

TEST_F(DBExceptionsTest, AnOperatorThatThrowsIsForReadersOfTheKey) {
  StartEmbedded();
  options_.merge_operator = std::make_shared<ThrowingOperator>();
  options_.comparator = BytewiseComparator();
  Open();
  for (const char* key : {"a", "poison"}) {
    for (const char* operand : {"1", "2"}) ASSERT_TRUE(IsOk(db_->Merge({}, key, operand)));
  }
  armed = true;
  EXPECT_EQ(Get("a"), "12");
  EXPECT_TRUE(IsOk(db_->Flush({})));
  EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(Get("a"), "12");
  std::string value;
  EXPECT_TRUE(db_->Get({}, "poison", &value).IsAborted());
  const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  iterator->Next();
  EXPECT_TRUE(iterator->status().IsAborted()) << iterator->status().ToString();
  armed = false;
  EXPECT_EQ(Get("poison"), "12");
}

TEST_F(DBExceptionsTest, FlushesAndCompactionsFailAndGoOn) {
  const ThrowingFilter filter;
  StartEmbedded();
  options_.compaction_filter = &filter;
  Open();
  for (const char* key : {"a", "poison", "z"}) ASSERT_TRUE(IsOk(db_->Put({}, key, "1")));
  armed = true;
  const Status flushed = db_->Flush({});  // It is well where it compares nothing.
  EXPECT_TRUE(flushed.ok() || flushed.IsAborted()) << flushed.ToString();
  armed = false;
  EXPECT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "2")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  armed = true;
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).IsAborted());
  armed = false;
  EXPECT_EQ(Get("poison"), "1");
  EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(Get("a"), "2");
  EXPECT_TRUE(IsOk(db_->Close()));
  db_.reset();
}

TEST_F(DBExceptionsTest, ListenersAndLoggersAreNotHeard) {
  StartEmbedded();
  options_.listeners.push_back(std::make_shared<ThrowingListener>());
  options_.info_log = std::make_shared<ThrowingLogger>();
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Close()));
  Open();
  EXPECT_EQ(Get("a"), "1");
}

}  // namespace
}  // namespace nacre
