// Goal: operations that take at least DBOptions::slow_operation_threshold are counted and described
// with what they waited for, others are not, and the caller's PerfContext shows nothing of it.
// Method: descriptions made of operations with known times by a manual clock; and databases on an
// embedded pool in which each operation is slow, or none.

#include "db/context/slow_operations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/db.h"
#include "nacre/perf_context.h"
#include "nacre/write_batch.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/perf_step.h"

namespace nacre {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class SlowOperationsTest : public testing::Test {
 protected:
  /// A Get that waits for node 3 as long as it takes.
  void Get(const Slice& key, microseconds takes) {
    const SlowOperationWatch watch(&operations_, "Get", "default", key);
    const auto nanos = static_cast<uint64_t>(std::chrono::nanoseconds(takes).count());
    CountPerf(&PerfContext::remote_read_count);
    CountPerf(&PerfContext::remote_read_bytes, 4096);
    CountPerf(&PerfContext::remote_read_wait_nanos, nanos);
    if (pool::NodeWaits* const waits = pool::CurrentNodeWaits(); waits != nullptr) {
      waits->Add(pool::NodeWaits::What::kRead, 3, nanos / 2);
      waits->Add(pool::NodeWaits::What::kLog, 3, 1000);
      waits->Add(pool::NodeWaits::What::kRead, 3, nanos / 2);
    }
    clock_.Advance(takes);
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const SlowOperations::Line& line : operations_.Latest()) texts.push_back(line.text);
    return texts;
  }

  ManualClock clock_;
  std::atomic<microseconds> threshold_{milliseconds(2)};
  SlowOperations operations_{"db", &clock_, /*log=*/nullptr, &threshold_,
                             [](NodeId node) { return "node" + std::to_string(node); }};
};

TEST_F(SlowOperationsTest, DescribesWhatItWaitedFor) {
  Get("quick", microseconds(1999));
  Get("slow", milliseconds(2));
  EXPECT_EQ(operations_.count(), 1u);
  EXPECT_EQ(Texts(),
            std::vector<std::string>{"Get of \"slow\" in default took 2.000 ms: 2.000 ms for reads "
                                     "of nodes; 1 reads of 4096 bytes; waited for node3 2.000 ms "
                                     "(reads), node3 0.001 ms (log)"});
}

TEST_F(SlowOperationsTest, ShowsTheBeginningOfKeysOfAnyBytes) {
  Get(std::string("a\"\\\n\0\xff", 6), milliseconds(2));
  Get(std::string(100, 'k'), milliseconds(2));
  ASSERT_EQ(operations_.count(), 2u);
  EXPECT_TRUE(Texts()[0].starts_with(R"(Get of "a\"\\\x0a\x00\xff" in default)")) << Texts()[0];
  EXPECT_TRUE(Texts()[1].starts_with("Get of \"" + std::string(64, 'k') + "\"... in default"));
}

TEST_F(SlowOperationsTest, DescribesTenASecondAndCountsAll) {
  for (int i = 0; i < 25; ++i) Get("key", milliseconds(2));
  EXPECT_EQ(operations_.count(), 25u);
  EXPECT_EQ(Texts().size(), 10u);
  clock_.Advance(std::chrono::seconds(1));
  Get("key", milliseconds(2));
  ASSERT_EQ(Texts().size(), 11u);
  EXPECT_TRUE(Texts()[10].ends_with("; 15 more were slow before it")) << Texts()[10];
}

TEST_F(SlowOperationsTest, RemembersTheLatest) {
  for (size_t i = 0; i < SlowOperations::kRemembered + 5; ++i) {
    Get("key" + std::to_string(i), milliseconds(2));
    clock_.Advance(std::chrono::seconds(1));
  }
  ASSERT_EQ(Texts().size(), SlowOperations::kRemembered);
  EXPECT_TRUE(Texts().front().starts_with("Get of \"key5\""));
}

TEST_F(SlowOperationsTest, WhatIsWithinAnotherOneBelongsToIt) {
  {
    const SlowOperationWatch outer(&operations_, "MultiGet", "default", "a", 2);
    Get("a", milliseconds(2));
  }
  ASSERT_EQ(operations_.count(), 1u);
  EXPECT_TRUE(Texts()[0].starts_with("MultiGet of 2 keys from \"a\" in default took 2.000 ms: 2.0"))
      << Texts()[0];
}

TEST_F(SlowOperationsTest, TheCallersPerfContextIsAsItWouldBeWithout) {
  PerfContext* const context = get_perf_context();
  context->Reset();
  Get("key", milliseconds(2));
  EXPECT_EQ(context->ToString(/*exclude_zero_counters=*/true), "");
  SetPerfLevel(kEnableCount);
  Get("key", milliseconds(2));
  EXPECT_EQ(context->remote_read_count, 1u);
  EXPECT_EQ(context->remote_read_wait_nanos, 0u);
  EXPECT_EQ(GetPerfLevel(), kEnableCount);
  SetPerfLevel(kEnableTime);
  Get("key", milliseconds(2));
  EXPECT_EQ(context->remote_read_count, 2u);
  EXPECT_EQ(context->remote_read_wait_nanos, 2'000'000u);
  SetPerfLevel(kDisable);
  threshold_ = microseconds(0);
  Get("key", milliseconds(2));
  EXPECT_EQ(operations_.count(), 3u);
}

class SlowOperationsDBTest : public testing::Test {
 protected:
  uint64_t Count() {
    uint64_t count = 0;
    EXPECT_TRUE(db_->GetIntProperty("nacre.slow-operations", &count));
    return count;
  }
  /// What is told last.
  std::string Text() {
    std::map<std::string, std::string> lines;
    EXPECT_TRUE(db_->GetMapProperty("nacre.slow-operations", &lines));
    constexpr std::string_view kAgo = " s ago: ";
    const std::string line = lines.empty() ? "" : lines.rbegin()->second;
    return lines.empty() ? "" : line.substr(line.find(kAgo) + kAgo.size());
  }

  std::unique_ptr<DB> db_;
};

TEST_F(SlowOperationsDBTest, EachOperationOfAnOwnerIsWatched) {
  Options options = SmallTableOptions(OpenTestPool());
  options.slow_operation_threshold = std::chrono::hours(1);
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db_)));
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  EXPECT_EQ(Count(), 0u);
  // Each takes longer than nothing at all, but it is measured in nanoseconds.
  ASSERT_TRUE(IsOk(db_->SetDBOptions({{"slow_operation_threshold", "1"}})));
  EXPECT_EQ(db_->GetDBOptions().slow_operation_threshold, microseconds(1));

  std::unique_ptr<Iterator> iterator = db_->NewIterator({});
  const std::vector<Slice> keys = {"a", "b"};
  std::vector<std::string> values;
  std::string value;
  const auto is_told = [&](const std::string& beginning, const auto& operation) {
    // One that is done within a microsecond is not slow.
    for (int tries = 0; tries < 100'000; ++tries) {
      operation();
      if (Text().starts_with(beginning)) return true;
      // No more than some are described each second.
      if (Count() > 0 && tries % 100 == 99) Clock::System()->SleepFor(milliseconds(100));
    }
    return false;
  };
  EXPECT_TRUE(
      is_told("Write of \"a\" in default took ", [&] { db_->Put({}, "a", "2").IgnoreError(); }));
  EXPECT_TRUE(is_told("Write of 2 keys from \"b\" took ", [&] {
    WriteBatch batch;
    ASSERT_TRUE(IsOk(batch.Put("b", "1")));
    ASSERT_TRUE(IsOk(batch.Delete("c")));
    ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  }));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_TRUE(
      is_told("Get of \"a\" in default took ", [&] { db_->Get({}, "a", &value).IgnoreError(); }));
  EXPECT_TRUE(is_told("MultiGet of 2 keys from \"a\" in default took ",
                      [&] { db_->MultiGet({}, keys, &values); }));
  EXPECT_TRUE(is_told("Seek of \"a\" in default took ", [&] { iterator->Seek("a"); }));
  EXPECT_TRUE(is_told("Next of \"a\" in default took ", [&] {
    iterator->Seek("a");
    iterator->Next();
  }));
  iterator.reset();
  EXPECT_TRUE(db_->SetDBOptions({{"slow_operation_threshold", "-1"}}).IsInvalidArgument());
  db_.reset();
  options.slow_operation_threshold = microseconds(-1);
  EXPECT_TRUE(DB::Open(options, "db", &db_).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre
