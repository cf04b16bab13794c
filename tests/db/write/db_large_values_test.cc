// Goal: what flushes and compactions reserve is close to what they write, however large a value is
// beside the others; values that a filter makes larger find room; some deletions are admitted in a
// full pool, and Close of a database succeeds that is safe in its log.
// Method: pools of 24 to 64 MiB; a MemTable of 13 MiB with a value of 10 MiB; a filter that makes
// each value a thousand times as long; pools that are filled until they refuse.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nacre/compaction_filter.h"
#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

std::string Key(size_t i) { return "key" + std::to_string(i); }

class DBLargeValuesTest : public testing::Test {
 protected:
  void OpenEmbedded(uint64_t node_bytes) {
    TestPoolOptions pool;
    pool.nodes = 1;
    pool.node_bytes = node_bytes;
    pool.slab_bytes = 4 << 20;
    options_ = SmallTableOptions(OpenTestPool(pool));
    options_.slab_size = 4 << 20;
    options_.chunk_size = 256 << 10;
    options_.write_buffer_size = 64 << 20;  // Flushed when the test says so.
    options_.target_file_size_base = 4 << 20;
    options_.max_bytes_for_level_base = 8 << 20;
    options_.max_background_jobs = 8;
    options_.max_subcompactions = 4;
  }
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  void PutSmallOnes() {
    for (size_t i = 0; i < 3000; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, Key(i), TestValue(i, 1000))));
    }
  }
  void ExpectSmallOnes() {
    std::string value;
    for (size_t i = 0; i < 3000; i += 7) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value))) << Key(i);
      ASSERT_EQ(value, TestValue(i, 1000));
    }
  }

  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBLargeValuesTest, OneMuchLargerThanTheOthersIsFlushedAndCompacted) {
  OpenEmbedded(64 << 20);
  Open();
  const std::string large = TestValue(1, 10 << 20);
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(PutSmallOnes());
    ASSERT_TRUE(IsOk(db_->Put({}, "large", large)));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(ExpectSmallOnes());
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "large", &value)));
    ASSERT_TRUE(value == large);
  }
  ASSERT_TRUE(IsOk(db_->Delete({}, "large")));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_LT(GetNumber(db_.get(), "nacre.space.used-bytes"), uint64_t{8} << 20);
  ASSERT_TRUE(IsOk(db_->Close()));
}

/// Makes each value a thousand times as long.
class GrowingFilter final : public CompactionFilter {
 public:
  const char* Name() const override { return "nacre.test.GrowingFilter"; }
  Decision FilterV2(int, const Slice&, ValueType, const Slice& value, std::string* new_value,
                    std::string*) const override {
    if (value.size() > 1000) return Decision::kKeep;
    for (int i = 0; i < 1000; ++i) new_value->append(value.data(), value.size());
    return Decision::kChangeValue;
  }
};

TEST_F(DBLargeValuesTest, ValuesThatAFilterMakesLargerFindRoom) {
  const GrowingFilter filter;
  OpenEmbedded(64 << 20);
  options_.compaction_filter = &filter;
  options_.target_file_size_base = 64 << 10;
  Open();
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, Key(i), TestValue(i, 700))));
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  std::string value;
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
    EXPECT_EQ(value.size(), 700'000u);
  }
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
}

TEST_F(DBLargeValuesTest, CloseSucceedsWhenTheLogHasAll) {
  const MemnodeProcesses nodes(2, MemnodeProcessOptions{.size = "24MiB", .slab_size = "1MiB"});
  options_ = SmallTableOptions(nullptr);
  options_.pool_uri = nodes.pool_uri();
  options_.redundancy = "rep(2)";
  options_.disable_auto_compactions = true;
  for (int round = 0; round < 2; ++round) {
    Open();
    size_t written = 0;
    Status full;
    for (; full.ok(); ++written) full = db_->Put({}, Key(written), TestValue(written, 1000));
    ASSERT_TRUE(full.IsNoSpace()) << full.ToString();
    --written;
    EXPECT_TRUE(IsOk(db_->Close())) << "round " << round;
    db_.reset();
    Open();
    std::string value;
    for (size_t i = 0; i < written; ++i) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value))) << "round " << round << " key " << i;
    }
    EXPECT_TRUE(IsOk(db_->Close())) << "what was replayed is in the log as well";
    db_.reset();
  }
}

}  // namespace
}  // namespace nacre
