// Goal: what the database says of itself is true, and an index budget changes its memory and
// nothing else.
// Method: counts and sizes known beforehand; the same answers under budgets of all, some and no
// index memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class DBPropertiesTest : public testing::Test {
 protected:
  void Open(const std::function<void(Options*)>& change = [](Options*) {}) {
    db_.reset();
    if (pool_ == nullptr) pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    change(&options);
    ASSERT_TRUE(IsOk(DB::Open(options, "properties", &db_)));
  }

  /// Sorts as its number does.
  static std::string Key(size_t i) {
    std::string digits = std::to_string(i);
    return "key" + std::string(8 - digits.size(), '0') + digits;
  }

  void Fill(size_t keys, size_t value_size) {
    for (size_t i = 0; i < keys; ++i) {
      const size_t k = i * 7919 % keys;
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(k), TestValue(k, value_size))));
    }
  }

  uint64_t Number(const std::string& name) { return GetNumber(db_.get(), "nacre." + name); }
  uint64_t SizeOf(const Slice& start, const Slice& limit) {
    const Range range{start, limit};
    uint64_t size = UINT64_MAX;
    EXPECT_TRUE(IsOk(db_->GetApproximateSizes(&range, 1, &size)));
    return size;
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBPropertiesTest, Counts) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) { options->disable_auto_compactions = true; }));
  EXPECT_EQ(Number("estimate-num-keys"), 0u);
  EXPECT_EQ(Number("num-live-tables"), 0u);
  for (size_t i = 0; i < 10; ++i) ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), "12345")));
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(3))));
  EXPECT_EQ(Number("num-entries-active-mem-table"), 11u);
  EXPECT_GT(Number("cur-size-active-mem-table"), 0u);
  EXPECT_GE(Number("cur-size-all-mem-tables"), Number("cur-size-active-mem-table"));
  EXPECT_EQ(Number("estimate-num-keys"), 9u);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Number("num-entries-active-mem-table"), 0u);
  EXPECT_EQ(Number("num-immutable-mem-table"), 0u);
  EXPECT_EQ(Number("mem-table-flush-pending"), 0u);
  EXPECT_EQ(Number("num-files-at-level0"), 1u);
  EXPECT_EQ(Number("num-files-at-level6"), 0u);
  EXPECT_EQ(Number("num-live-tables"), 1u);
  EXPECT_EQ(Number("num-tombstones"), 0u) << "with nothing below, a flush drops it";
  EXPECT_EQ(Number("space.user-bytes"), 9u * (Key(0).size() + 5));
  EXPECT_EQ(Number("estimate-num-keys"), 9u);
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), Key(4))));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Number("num-tombstones"), 1u);
  EXPECT_EQ(Number("estimate-num-keys"), 8u);
  EXPECT_EQ(Number("total-sst-files-size"), Number("live-sst-files-size"));
  EXPECT_GE(Number("space.stored-bytes"), Number("total-sst-files-size"));
  EXPECT_GE(Number("space.used-bytes"), Number("total-sst-files-size"));
  EXPECT_GE(Number("space.leased-bytes"), Number("space.used-bytes"));

  const Snapshot* one = db_->GetSnapshot();
  const Snapshot* two = db_->GetSnapshot();
  EXPECT_EQ(one->GetSequenceNumber(), db_->GetLatestSequenceNumber());
  EXPECT_EQ(Number("num-snapshots"), 2u);
  db_->ReleaseSnapshot(one);
  EXPECT_EQ(Number("num-snapshots"), 1u);
  db_->ReleaseSnapshot(two);
  EXPECT_EQ(Number("num-snapshots"), 0u);
}

TEST_F(DBPropertiesTest, UnknownOnes) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::string text = "left over";
  uint64_t number = 7;
  for (const char* name :
       {"", "nacre", "nacre.", "nacre.no-such-thing", "leveldb.stats", "num-snapshots",
        "nacre.num-files-at-level", "nacre.num-files-at-level7", "nacre.num-files-at-level-1",
        "nacre.num-files-at-level99999999999999999999", "nacre.num-files-at-level0x",
        "nacre.num-files-at-level "}) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(db_->GetProperty(name, &text));
    EXPECT_FALSE(db_->GetIntProperty(name, &number));
  }
  EXPECT_FALSE(db_->GetIntProperty("nacre.stats", &number)) << "a text is no number";
}

TEST_F(DBPropertiesTest, Texts) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(5'000, 300));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_NE(GetTextProperty(db_.get(), "nacre.levelstats").find("Level Files Size(MB)"),
            std::string::npos);
  EXPECT_NE(GetTextProperty(db_.get(), "nacre.stats").find("Compactions: "), std::string::npos);
  const std::string tables = GetTextProperty(db_.get(), "nacre.sstables");
  EXPECT_EQ(static_cast<uint64_t>(std::count(tables.begin(), tables.end(), '\n')),
            Number("num-live-tables"));
  EXPECT_EQ(GetTextProperty(db_.get(), "nacre.num-live-tables"),
            std::to_string(Number("num-live-tables")));
}

TEST_F(DBPropertiesTest, TrafficAndCompaction) {
  ASSERT_NO_FATAL_FAILURE(
      Open([](Options* options) { options->compaction = CompactionSite::kAuto; }));
  ASSERT_NO_FATAL_FAILURE(Fill(20'000, 300));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  const uint64_t user_bytes = 20'000 * (Key(0).size() + 300);
  EXPECT_GE(Number("network.compute-written"), user_bytes) << "flushes cross the network once";
  EXPECT_LT(Number("network.compute-written"), 2 * user_bytes);
  EXPECT_GT(Number("compaction.bytes-read"), 0u);
  EXPECT_GT(Number("compaction.bytes-written"), 0u);
  EXPECT_GT(Number("compaction.cpu-nanos"), 0u);
  EXPECT_GE(Number("network.memnode-written"), 0u);
  // No table bytes but indexes come back for a compaction.
  const uint64_t read = Number("network.compute-read");
  const uint64_t compacted = Number("compaction.bytes-read");
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const uint64_t compacted_now = Number("compaction.bytes-read") - compacted;
  EXPECT_GT(compacted_now, user_bytes / 2);
  EXPECT_LT(Number("network.compute-read") - read, compacted_now / 5);
}

TEST_F(DBPropertiesTest, ApproximateSizes) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(SizeOf("", "z"), 0u);
  const size_t keys = 4'000;
  ASSERT_NO_FATAL_FAILURE(Fill(keys, 500));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const uint64_t all = SizeOf("", "z");
  const uint64_t bytes = keys * (Key(0).size() + 500);
  EXPECT_GE(all, bytes);
  EXPECT_LE(all, bytes + bytes / 4);
  EXPECT_EQ(SizeOf("z", "zz"), 0u);
  EXPECT_EQ(SizeOf("", "a"), 0u);
  EXPECT_EQ(SizeOf(Key(10), Key(10)), 0u);
  EXPECT_EQ(SizeOf(Key(20), Key(10)), 0u) << "an empty range";
  for (const size_t begin : {0, 100, 2'000, 3'500}) {
    const uint64_t tenth = SizeOf(Key(begin), Key(begin + keys / 10));
    EXPECT_GE(tenth, all / 20) << begin;
    EXPECT_LE(tenth, all / 6) << begin;
  }
  // Ranges that join add up.
  const std::string a = Key(0);
  const std::string b = Key(1'234);
  const std::string c = Key(4'000);
  const Range ranges[] = {{a, b}, {b, c}, {a, c}};
  uint64_t sizes[3];
  ASSERT_TRUE(IsOk(db_->GetApproximateSizes(ranges, 3, sizes)));
  EXPECT_EQ(sizes[0] + sizes[1], sizes[2]);

  EXPECT_TRUE(IsOk(db_->GetApproximateSizes(nullptr, 0, nullptr)));
  EXPECT_TRUE(
      IsFailure(db_->GetApproximateSizes(ranges, -1, sizes), Status::Code::kInvalidArgument));
  EXPECT_TRUE(
      IsFailure(db_->GetApproximateSizes(nullptr, 1, sizes), Status::Code::kInvalidArgument));
  EXPECT_TRUE(
      IsFailure(db_->GetApproximateSizes(ranges, 1, nullptr), Status::Code::kInvalidArgument));
}

TEST_F(DBPropertiesTest, IndexBudgetShrinksMemoryAndChangesNoAnswer) {
  const size_t keys = 20'000;  // Several tables, however slow the machine.
  uint64_t whole = 0;
  uint64_t filters = 0;
  for (const double share : {1.0, 0.5, 0.0, 2.0}) {
    SCOPED_TRACE(share);
    size_t budget = SIZE_MAX;
    if (share < 1) budget = static_cast<size_t>(share * static_cast<double>(whole));
    ASSERT_NO_FATAL_FAILURE(Open([&](Options* options) { options->index_memory_budget = budget; }));
    if (share == 1.0) {
      ASSERT_NO_FATAL_FAILURE(Fill(keys, 100));
    }
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
    ASSERT_TRUE(Eventually([&] {
      return GetTextProperty(db_.get(), "nacre.open.timeline").find("\nindexes ") !=
             std::string::npos;
    }));
    const uint64_t index_bytes = Number("space.index-bytes");
    EXPECT_GE(Number("space.compute-bytes"), index_bytes);
    if (share == 1.0) {
      whole = index_bytes;
    } else if (share == 0.5) {
      EXPECT_LT(index_bytes, whole);
      filters = index_bytes;
    } else if (share == 0.0) {
      EXPECT_LT(index_bytes, filters);
    } else {
      EXPECT_EQ(index_bytes, whole);
    }
    std::string value;
    for (size_t i = 0; i < keys; i += 3) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value))) << i;
      ASSERT_EQ(value, TestValue(i, 100));
      ASSERT_TRUE(db_->Get({}, Key(i) + "x", &value).IsNotFound()) << i;
    }
    std::vector<std::string> names;
    std::vector<std::string> values;
    for (size_t i = 0; i < 200; ++i) names.push_back(i % 2 ? Key(i) : Key(i) + "absent");
    const std::vector<Status> statuses =
        db_->MultiGet({}, std::vector<Slice>(names.begin(), names.end()), &values);
    for (size_t i = 0; i < 200; ++i) {
      ASSERT_EQ(statuses[i].ok(), i % 2 == 1) << i;
      if (i % 2) {
        ASSERT_EQ(values[i], TestValue(i, 100));
      }
    }
    ASSERT_TRUE(IsOk(db_->Close()));
  }
}

TEST_F(DBPropertiesTest, WaitForCompactLeavesNothingDue) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(Fill(Scaled(5'000), 300));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
    EXPECT_EQ(Number("compaction-pending"), 0u);
    EXPECT_EQ(Number("num-running-compactions"), 0u);
    EXPECT_EQ(Number("num-running-flushes"), 0u);
    EXPECT_EQ(Number("estimate-pending-compaction-bytes"), 0u);
  }
}

}  // namespace
}  // namespace nacre
