// Goal: what a database does is counted as RocksDB counts it, and its LOG is where the options say.
// Method: a few operations of known numbers and sizes; files in the test's folder.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "nacre/async.h"
#include "nacre/db.h"
#include "nacre/statistics.h"
#include "nacre/task.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBStatisticsTest : public testing::Test {
 protected:
  void Open() {
    options_ = SmallTableOptions(OpenTestPool());
    options_.statistics = CreateDBStatistics();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }
  uint64_t Ticker(Tickers ticker) { return options_.statistics->getTickerCount(ticker); }
  HistogramData Data(Histograms histogram) {
    HistogramData data;
    options_.statistics->histogramData(histogram, &data);
    return data;
  }

  Options options_;
  std::unique_ptr<DB> db_;
};

Task<void> ReadAndWrite(AsyncDB* async) {
  WriteBatch batch;
  EXPECT_TRUE(IsOk(batch.Put("a", "12345")));
  EXPECT_TRUE(IsOk(batch.Delete("b")));
  EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &batch)));
  PinnableSlice value;
  EXPECT_TRUE(IsOk(co_await async->GetAsync({}, "a", &value)));
  const Status absent = co_await async->GetAsync({}, "x", &value);
  EXPECT_TRUE(absent.IsNotFound());
  const Slice keys[] = {"a", "b", "c"};
  PinnableSlice values[3];
  Status statuses[3];
  EXPECT_TRUE(IsOk(co_await async->MultiGetAsync({}, 3, keys, values, statuses)));
}

TEST_F(DBStatisticsTest, CountsWhatCoroutinesDo) {
  ASSERT_NO_FATAL_FAILURE(Open());
  RunLoop loop;
  std::unique_ptr<AsyncDB> async;
  ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop, &async)));
  loop.Spawn(ReadAndWrite(async.get()));
  loop.Run();
  EXPECT_EQ(Ticker(NUMBER_KEYS_WRITTEN), 2u);
  EXPECT_EQ(Data(DB_WRITE).count, 1u);
  EXPECT_EQ(Data(BYTES_PER_WRITE).sum, Ticker(BYTES_WRITTEN));
  EXPECT_EQ(Ticker(NUMBER_KEYS_READ), 2u);
  EXPECT_EQ(Ticker(BYTES_READ), 5u);
  EXPECT_EQ(Data(DB_GET).count, 2u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_CALLS), 1u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_KEYS_READ), 3u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_KEYS_FOUND), 1u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_BYTES_READ), 5u);
  EXPECT_EQ(Data(DB_MULTIGET).count, 1u);
}

TEST_F(DBStatisticsTest, CountsOperations) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "12345")));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("b", "1234567")));
  ASSERT_TRUE(IsOk(batch.Delete("c")));
  ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  EXPECT_EQ(Ticker(NUMBER_KEYS_WRITTEN), 3u);
  EXPECT_EQ(Ticker(BYTES_WRITTEN), 6 + batch.GetDataSize());
  EXPECT_EQ(Data(DB_WRITE).count, 2u);

  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, "a", &value)));
  EXPECT_TRUE(db_->Get({}, "x", &value).IsNotFound());
  EXPECT_EQ(Ticker(NUMBER_KEYS_READ), 2u);
  EXPECT_EQ(Ticker(BYTES_READ), 5u);
  EXPECT_EQ(Data(DB_GET).count, 2u);
  EXPECT_EQ(Data(BYTES_PER_READ).sum, 5u);

  std::vector<std::string> values;
  db_->MultiGet({}, {"a", "b", "c"}, &values);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_CALLS), 1u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_KEYS_READ), 3u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_KEYS_FOUND), 2u);
  EXPECT_EQ(Ticker(NUMBER_MULTIGET_BYTES_READ), 12u);

  {
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    int entries = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++entries;
    EXPECT_EQ(entries, 2);
    iterator->Seek("b");
    iterator->Prev();
    iterator->Prev();
    EXPECT_FALSE(iterator->Valid());
  }
  EXPECT_EQ(Ticker(NUMBER_DB_SEEK), 2u);
  EXPECT_EQ(Ticker(NUMBER_DB_NEXT), 2u);
  EXPECT_EQ(Ticker(NUMBER_DB_NEXT_FOUND), 1u);
  EXPECT_EQ(Ticker(NUMBER_DB_PREV), 2u);
  EXPECT_EQ(Ticker(NUMBER_DB_PREV_FOUND), 1u);
  EXPECT_EQ(Ticker(NO_ITERATOR_CREATED), 1u);
  EXPECT_EQ(Ticker(NO_ITERATOR_DELETED), 1u);
  EXPECT_GT(Ticker(ITER_BYTES_READ), 0u);
}

TEST_F(DBStatisticsTest, CountsFlushesAndCompactions) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(i), TestValue(i, 100))));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_GT(Ticker(FLUSH_WRITE_BYTES), 300'000u);
  EXPECT_GE(Data(FLUSH_TIME).count, 3u);
  EXPECT_GT(Ticker(COMPACT_READ_BYTES), 0u);
  EXPECT_GT(Ticker(COMPACT_WRITE_BYTES), 0u);
  EXPECT_GT(Data(COMPACTION_TIME).count, 0u);
  EXPECT_GT(Data(NUM_FILES_IN_SINGLE_COMPACTION).max, 0);
}

TEST(DBLogFileTest, IsWhereTheOptionsSay) {
  const TempFolder folder;
  Options options = SmallTableOptions(OpenTestPool());
  options.db_log_dir = folder.path() + "/logs";
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "my/db", &db)));
  ASSERT_TRUE(IsOk(db->Put({}, "a", "b")));
  ASSERT_TRUE(IsOk(db->Close()));
  std::ifstream file(options.db_log_dir + "/my_db_LOG");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("closed my/db"), std::string::npos) << text.str();

  db.reset();
  options.db_log_dir = "/proc/no/such";
  const Status status = DB::Open(options, "my/db", &db);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.ToString().find("/proc/no/such"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace nacre
