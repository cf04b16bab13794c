// Goal: a database opens only as what it is, is open once, and comes back after a close with all
// that was acknowledged; whatever is asked of it wrongly is answered with a status that names the
// culprit.
// Method: each way to open, close and misuse a database over an embedded pool.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "table/format/internal_key.h"
#include "tests/support/comparators.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/named_point.h"

namespace nacre {
namespace {

using Code = Status::Code;

class DBOpenTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
  }

  Status Open(const Options& options, const std::string& name = "db") {
    db_.reset();
    return DB::Open(options, name, &db_);
  }

  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBOpenTest, MissingAndExisting) {
  options_.create_if_missing = false;
  EXPECT_TRUE(IsFailure(Open(options_), Code::kInvalidArgument, "create_if_missing"));
  EXPECT_EQ(db_, nullptr);
  options_.create_if_missing = true;
  options_.error_if_exists = true;
  ASSERT_TRUE(IsOk(Open(options_)));
  EXPECT_EQ(db_->GetName(), "db");
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_TRUE(IsFailure(Open(options_), Code::kInvalidArgument, "error_if_exists"));
  options_.error_if_exists = false;
  options_.create_if_missing = false;
  ASSERT_TRUE(IsOk(Open(options_))) << "a refused open must change nothing";
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(DBOpenTest, OneOwnerOfAName) {
  ASSERT_TRUE(IsOk(Open(options_)));
  std::unique_ptr<DB> second;
  EXPECT_TRUE(IsFailure(DB::Open(options_, "db", &second), Code::kBusy, "db"));
  EXPECT_EQ(second, nullptr);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v"))) << "the owner is not disturbed";
  ASSERT_TRUE(IsOk(DB::Open(options_, "other", &second)));
  ASSERT_TRUE(IsOk(db_->Close()));
  std::unique_ptr<DB> third;
  EXPECT_TRUE(IsOk(DB::Open(options_, "db", &third)));
}

TEST_F(DBOpenTest, DatabasesOfOnePoolShareNothing) {
  std::vector<std::unique_ptr<DB>> databases(5);
  for (size_t i = 0; i < databases.size(); ++i) {
    ASSERT_TRUE(IsOk(DB::Open(options_, "db" + std::to_string(i), &databases[i])));
  }
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < databases.size(); ++i) {
      for (int k = 0; k < 200; ++k) {
        ASSERT_TRUE(IsOk(databases[i]->Put(NoLog(), "key" + std::to_string(k),
                                           "of " + std::to_string(i) + TestValue(1, 500))));
      }
      ASSERT_TRUE(IsOk(databases[i]->Flush({})));
    }
  }
  ASSERT_TRUE(IsOk(databases[0]->Close()));
  databases[0].reset();
  for (size_t i = 1; i < databases.size(); ++i) {
    std::string value;
    for (int k = 0; k < 200; ++k) {
      ASSERT_TRUE(IsOk(databases[i]->Get({}, "key" + std::to_string(k), &value)));
      ASSERT_EQ(value, "of " + std::to_string(i) + TestValue(1, 500));
    }
  }
}

TEST_F(DBOpenTest, ComparatorIsPartOfTheDatabase) {
  static const BackwardsComparator backwards;  // Outlives the database.
  options_.comparator = &backwards;
  ASSERT_TRUE(IsOk(Open(options_)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
  ASSERT_TRUE(IsOk(db_->Close()));
  Options bytewise = options_;
  bytewise.comparator = BytewiseComparator();
  EXPECT_TRUE(IsFailure(Open(bytewise), Code::kInvalidArgument, backwards.Name()));
  EXPECT_TRUE(IsFailure(Open(bytewise), Code::kInvalidArgument, BytewiseComparator()->Name()));
  ASSERT_TRUE(IsOk(Open(options_)));
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(DBOpenTest, NonsenseIsRefusedBeforeAnythingStarts) {
  Options bad = options_;
  bad.redundancy = "rep(5)";
  EXPECT_TRUE(IsFailure(Open(bad), Code::kInvalidArgument, "4"));
  bad.redundancy = "rep(two)";
  EXPECT_TRUE(IsFailure(Open(bad), Code::kInvalidArgument, "rep(two)"));
  bad = options_;
  bad.chunk_size = 1;
  EXPECT_TRUE(IsFailure(Open(bad), Code::kInvalidArgument, "chunk_size"));
  EXPECT_TRUE(IsFailure(Open(options_, ""), Code::kInvalidArgument, "name"));
  EXPECT_TRUE(IsOk(Open(options_))) << "none of the above holds the name";
}

TEST_F(DBOpenTest, PoolsThatAreNone) {
  struct Case {
    const char* uri;
    Code code;
    const char* culprit;
  };
  const Case cases[] = {
      {"", Code::kInvalidArgument, ""},
      {"nonsense", Code::kInvalidArgument, "nonsense"},
      {"carrier-pigeon:a,b", Code::kInvalidArgument, "carrier-pigeon"},
      {"embedded:?nodes=0", Code::kInvalidArgument, "nodes"},
      {"embedded:?nodes=-1", Code::kInvalidArgument, "nodes"},
      {"embedded:?nodes=1000000", Code::kInvalidArgument, "nodes"},
      {"embedded:?nodes=four", Code::kInvalidArgument, "four"},
      {"embedded:?size=0", Code::kInvalidArgument, ""},
      {"embedded:?size=12parsecs", Code::kInvalidArgument, "12parsecs"},
      {"embedded:?colour=blue", Code::kInvalidArgument, "colour"},
      {"embedded:?nodes=2&size=4TiB", Code::kNoSpace, ""},
      {"embedded:?nodes=2&size=999TiB", Code::kInvalidArgument, "999"},
      {"shm:", Code::kInvalidArgument, ""},
      {"shm:/nonexistent/node.sock", Code::kUnavailable, "/nonexistent/node.sock"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.uri);
    std::shared_ptr<Pool> pool;
    EXPECT_TRUE(IsFailure(Pool::Open(bad.uri, &pool), bad.code, bad.culprit));
    EXPECT_EQ(pool, nullptr);
    Options options;
    options.create_if_missing = true;
    options.pool_uri = bad.uri;
    EXPECT_TRUE(IsFailure(Open(options), bad.code, bad.culprit));
  }
}

TEST_F(DBOpenTest, PoolOfItsOwn) {
  Options options = options_;
  options.pool = nullptr;
  options.pool_uri = "embedded:?nodes=2&size=64MiB";
  ASSERT_TRUE(IsOk(Open(options)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Get("k"), "v");
  ASSERT_TRUE(IsOk(db_->Close()));
}

TEST_F(DBOpenTest, ASyncedWriteNeedsTheLog) {
  ASSERT_TRUE(IsOk(Open(options_)));
  WriteOptions sync = NoLog();
  sync.sync = true;
  EXPECT_TRUE(IsFailure(db_->Put(sync, "k", "v"), Code::kInvalidArgument, "sync"));
  EXPECT_EQ(Get("k"), Status::NotFound().ToString());
}

TEST_F(DBOpenTest, ReopensWithEverything) {
  for (const char* redundancy : {"none", "rep(3)"}) {
    SCOPED_TRACE(redundancy);
    options_.redundancy = redundancy;
    const std::string name = std::string("db of ") + redundancy;
    SequenceNumber sequence = 0;
    for (int round = 0; round < 6; ++round) {
      ASSERT_TRUE(IsOk(Open(options_, name)));
      EXPECT_EQ(db_->GetLatestSequenceNumber(), sequence);
      for (int k = 0; k < 2000; k += 1 + round) {
        ASSERT_TRUE(
            IsOk(db_->Put(NoLog(), std::to_string(k), std::to_string(round) + TestValue(1, 200))));
      }
      for (int k = 0; k < 2000; ++k) {
        int expected = round;
        while (k % (1 + expected) != 0) --expected;
        ASSERT_EQ(Get(std::to_string(k)), std::to_string(expected) + TestValue(1, 200));
      }
      sequence = db_->GetLatestSequenceNumber();
      // With data in MemTables, or all in tables, or by the destructor alone.
      if (round % 3 == 1) {
        ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      }
      if (round % 3 != 2) {
        ASSERT_TRUE(IsOk(db_->Close()));
      }
      db_.reset();
    }
  }
}

TEST_F(DBOpenTest, ReopensWithOtherOptions) {
  ASSERT_TRUE(IsOk(Open(options_)));
  for (int k = 0; k < 5000; ++k) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), std::to_string(k), TestValue(7, 300))));
  }
  ASSERT_TRUE(IsOk(db_->Close()));
  Options other = options_;
  other.chunk_size = 64 << 10;
  other.target_file_size_base = 1 << 20;
  other.redundancy = "rep(2)";  // The redundancy of new tables.
  other.index_memory_budget = 0;
  other.compaction = CompactionSite::kCompute;
  ASSERT_TRUE(IsOk(Open(other)));
  for (int k = 0; k < 5000; k += 7) ASSERT_EQ(Get(std::to_string(k)), TestValue(7, 300));
  for (int k = 0; k < 5000; k += 2) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), std::to_string(k), TestValue(8, 300))));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (int k = 0; k < 5000; ++k) {
    ASSERT_EQ(Get(std::to_string(k)), TestValue(k % 2 ? 7 : 8, 300));
  }
  EXPECT_GE(GetNumber(db_.get(), "nacre.space.stored-bytes"),
            2 * GetNumber(db_.get(), "nacre.total-sst-files-size"));
}

TEST_F(DBOpenTest, CloseIsIdempotentAndFinal) {
  ASSERT_TRUE(IsOk(Open(options_)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_TRUE(IsFailure(db_->Put(NoLog(), "k", "w"), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db_->Delete(NoLog(), "k"), Code::kShutdownInProgress));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("k", "w")));
  EXPECT_TRUE(IsFailure(db_->Write(NoLog(), &batch), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db_->Flush({}), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db_->CompactRange({}, nullptr, nullptr), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db_->WaitForCompact(), Code::kShutdownInProgress));
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(Open(options_)));
  EXPECT_EQ(Get("k"), "v");
}

/// In how many calls of Close a database is, at its beginning.
std::atomic<int> closing{0};

TEST_F(DBOpenTest, OfSeveralClosesOneDecidesAndTheOthersWait) {
  ASSERT_TRUE(IsOk(Open(options_)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "k", "v")));
  closing = 0;
  // The first one is held up for as long as it takes the others to come, too.
  SetPointHandler([](const NamedPoint& point) {
    if (std::string_view(point.name) == "close.begin") {
      ++closing;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  std::vector<std::thread> threads;
  std::vector<Status> statuses(4, Status::Busy("it has not returned"));
  for (Status& status : statuses) {
    threads.emplace_back([&] { status = db_->Close(); });
  }
  for (std::thread& thread : threads) thread.join();
  SetPointHandler(nullptr);
  for (const Status& status : statuses) EXPECT_TRUE(IsOk(status));
  EXPECT_EQ(closing, 1);
  ASSERT_TRUE(IsOk(Open(options_)));
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(DBOpenTest, ClosesInTheMiddleOfBackgroundWork) {
  for (int round = 0; round < 15; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(IsOk(Open(options_)));
    for (int k = 0; k < 3000; ++k) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), std::to_string(k * 7919 % 3000),
                                TestValue(static_cast<uint64_t>(round), 300))));
    }
    FlushOptions no_wait;
    no_wait.wait = false;
    ASSERT_TRUE(IsOk(db_->Flush(no_wait)));
    ASSERT_TRUE(IsOk(db_->Close()));
    ASSERT_TRUE(IsOk(Open(options_)));
    for (int k = 0; k < 3000; k += 11) {
      ASSERT_EQ(Get(std::to_string(k)), TestValue(static_cast<uint64_t>(round), 300));
    }
    ASSERT_TRUE(IsOk(db_->Close()));
  }
}

TEST_F(DBOpenTest, BackgroundOperationsMeetTheClose) {
  // Calls of Flush, CompactRange and WaitForCompact that are under way when writers stop; the last
  // of them has returned before Close, as the contract wants it.
  ASSERT_TRUE(IsOk(Open(options_)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        for (int k = 0; k < 30; ++k) {
          ASSERT_TRUE(IsOk(db_->Put(NoLog(), std::to_string(k * 4 + t), TestValue(3, 1000))));
        }
        const Status status = t == 0   ? db_->CompactRange({}, nullptr, nullptr)
                              : t == 1 ? db_->Flush({})
                              : t == 2 ? db_->WaitForCompact()
                                       : Status::OK();
        ASSERT_TRUE(IsOk(status));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(IsOk(db_->Close()));
}

}  // namespace
}  // namespace nacre
