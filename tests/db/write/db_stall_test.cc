// Goal: writers that outrun background work wait, go on when it has caught up, and never wait for
// nothing; a writer that does not want to wait is told. Method: buffers so small, and level 0
// limits so low, that writers reach them at once; background work held up by turning compaction
// off.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBStallTest : public testing::Test {
 protected:
  void Open(const std::function<void(Options*)>& change) {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    options_ = SmallTableOptions(pool_);
    change(&options_);
    ASSERT_TRUE(IsOk(DB::Open(options_, "stall", &db_)));
  }

  /// `threads` writers of different keys.
  void WriteFromThreads(size_t threads, size_t writes, size_t value_size) {
    std::vector<std::thread> writers;
    for (size_t t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        for (size_t i = 0; i < writes; ++i) {
          const std::string key = std::to_string(t) + "/" + std::to_string(i);
          ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, TestValue(i, value_size))));
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
  }

  void CheckAll(size_t threads, size_t writes, size_t value_size) {
    std::string value;
    for (size_t t = 0; t < threads; ++t) {
      for (size_t i = 0; i < writes; i += 13) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        ASSERT_TRUE(IsOk(db_->Get({}, key, &value))) << key;
        ASSERT_EQ(value, TestValue(i, value_size));
      }
    }
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBStallTest, WritersStopForFlushesAndGoOn) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) { options->max_write_buffer_number = 2; }));
  const size_t writes = Scaled(6'000);
  WriteFromThreads(4, writes, 1000);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.is-write-stopped"), 0u);
  ASSERT_NO_FATAL_FAILURE(CheckAll(4, writes, 1000));
  if (Scaled(100) >= 100) {
    EXPECT_GT(GetNumber(db_.get(), "nacre.stall-nanos"), 0u);
  }
}

TEST_F(DBStallTest, WritersAreSlowedDownByLevel0AndGoOn) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->level0_file_num_compaction_trigger = 2;
    options->level0_slowdown_writes_trigger = 3;
    options->level0_stop_writes_trigger = 4;
    options->delayed_write_rate = 64 << 20;
  }));
  const size_t writes = Scaled(4'000);
  WriteFromThreads(3, writes, 1000);
  EXPECT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_LE(GetNumber(db_.get(), "nacre.num-files-at-level0"), 4u);
  ASSERT_NO_FATAL_FAILURE(CheckAll(3, writes, 1000));
}

TEST_F(DBStallTest, WritersStopForPendingCompaction) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->soft_pending_compaction_bytes_limit = 1 << 20;
    options->hard_pending_compaction_bytes_limit = 2 << 20;
  }));
  const size_t writes = Scaled(4'000);
  WriteFromThreads(3, writes, 1000);
  EXPECT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.is-write-stopped"), 0u);
  ASSERT_NO_FATAL_FAILURE(CheckAll(3, writes, 1000));
}

TEST_F(DBStallTest, WithoutCompactionThereIsNoStall) {
  // Such a stall would never end.
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->disable_auto_compactions = true;
    options->level0_slowdown_writes_trigger = 2;
    options->level0_stop_writes_trigger = 2;
    options->level0_file_num_compaction_trigger = 2;
  }));
  for (int table = 0; table < 6; ++table) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), std::to_string(table), "v")));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level0"), 6u);
  WriteOptions options = NoLog();
  options.no_slowdown = true;
  EXPECT_TRUE(IsOk(db_->Put(options, "k", "v")));
  EXPECT_TRUE(IsOk(db_->WaitForCompact()));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level0"), 0u);
}

TEST_F(DBStallTest, WhoDoesNotWaitIsTold) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->max_write_buffer_number = 2;
    options->level0_file_num_compaction_trigger = 1;
    options->level0_slowdown_writes_trigger = 1;
    options->level0_stop_writes_trigger = 2;
  }));
  WriteOptions no_wait = NoLog();
  no_wait.no_slowdown = true;
  const size_t writes = Scaled(20'000);
  std::atomic<size_t> refused{0};
  std::vector<std::vector<size_t>> written(3);
  std::vector<std::thread> writers;
  for (size_t t = 0; t < written.size(); ++t) {
    writers.emplace_back([&, t] {
      for (size_t i = 0; i < writes; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        const Status status = db_->Put(no_wait, key, TestValue(i, 500));
        if (status.ok()) {
          written[t].push_back(i);
        } else {
          ASSERT_TRUE(IsFailure(status, Status::Code::kIncomplete));
          ++refused;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  if (Scaled(100) >= 100) {
    EXPECT_GT(refused, 0u);
  }
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  // What was refused is not there, what was not is.
  std::string value;
  for (size_t t = 0; t < written.size(); ++t) {
    size_t next = 0;
    for (size_t i = 0; i < writes; ++i) {
      const bool expected = next < written[t].size() && written[t][next] == i;
      if (expected) ++next;
      if (i % 17 != 0) continue;
      const Status status = db_->Get({}, std::to_string(t) + "/" + std::to_string(i), &value);
      ASSERT_TRUE(expected ? IsOk(status) : IsFailure(status, Status::Code::kNotFound));
    }
  }
  ASSERT_TRUE(IsOk(db_->Put(no_wait, "after", "v"))) << "the stall outlives its cause";
}

TEST_F(DBStallTest, FlushAndCompactRangeBesideStalledWriters) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) {
    options->max_write_buffer_number = 2;
    options->level0_file_num_compaction_trigger = 1;
    options->level0_slowdown_writes_trigger = 1;
    options->level0_stop_writes_trigger = 1;
    options->delayed_write_rate = 32 << 20;
  }));
  std::atomic<bool> done{false};
  std::thread meddler([&] {
    for (int i = 0; !done.load(); ++i) {
      ASSERT_TRUE(IsOk(i % 3 == 0   ? db_->CompactRange({}, nullptr, nullptr)
                       : i % 3 == 1 ? db_->Flush({})
                                    : db_->WaitForCompact()));
    }
  });
  const size_t writes = Scaled(2'000);
  WriteFromThreads(3, writes, 1000);
  done.store(true);
  meddler.join();
  ASSERT_NO_FATAL_FAILURE(CheckAll(3, writes, 1000));
}

}  // namespace
}  // namespace nacre
