// Goal: a lack of memory on a thread that looks after an open database ends neither the process nor
// the database: the thread does its work at a later round, writes, flushes and compactions go on
// meanwhile, and nothing that was acknowledged is lost.
// Method: updates, flushes, compactions and a node that dies while some of the allocations of one
// kind of thread fail, drawn at random; afterwards, and when the database was opened again, all
// that was acknowledged is there.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "nacre/db.h"
#include "tests/support/failing_allocation.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class DBAllocationsTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_.pool_uri();
    options_.redundancy = "rep(2)";
    options_.scrub_bytes_per_second = 1 << 30;
    Open();
  }
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  void Write(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(3'000));
      const std::string value = TestValue(i, 200);
      ASSERT_TRUE(IsOk(db_->Put({}, key, value))) << i;
      known_[key] = value;
    }
  }
  void CheckAll() {
    for (const auto& [key, value] : known_) {
      std::string found;
      ASSERT_TRUE(IsOk(db_->Get({}, key, &found))) << key;
      ASSERT_EQ(found, value) << key;
    }
  }

  MemnodeProcesses nodes_{4, MemnodeProcessOptions{.size = "128MiB", .slab_size = "1MiB"}};
  Options options_;
  std::unique_ptr<DB> db_;
  Random random_{TestSeed(1)};
  std::map<std::string, std::string> known_;
};

class DBThreadAllocationsTest : public DBAllocationsTest,
                                public testing::WithParamInterface<const char*> {};

TEST_P(DBThreadAllocationsTest, FailAndTheDatabaseGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 5'000));
  ASSERT_TRUE(IsOk(db_->Close()));
  {
    // A knock is short, and there are few of them.
    const bool few = std::string_view(GetParam()) == "nacre-knock";
    const FailingThreads failing(GetParam(), /*one_in=*/few ? 1 : 10);
    Open();
    for (uint64_t round = 1; round <= 4; ++round) {
      ASSERT_NO_FATAL_FAILURE(Write(round * 5'000, 5'000));
      ASSERT_TRUE(IsOk(db_->Flush({})));
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      if (round == 2) nodes_[3].Kill();
    }
    // Some of these threads have something to do once a second.
    EXPECT_TRUE(Eventually([&] { return failing.failed() > 0; }));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
  }
  // What the thread could not do is done now: all tables have two copies again.
  EXPECT_TRUE(Eventually([this] { return GetNumber(db_.get(), "nacre.repair.tables-left") == 0; }));
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  ASSERT_TRUE(IsOk(db_->Close()));
  Open();
  ASSERT_NO_FATAL_FAILURE(CheckAll());
}

// The log ends with the segment that it cannot follow with another one.
TEST_F(DBAllocationsTest, WritersAreToldIfTheLogGetsNoSegment) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 1'000));
  Status status;
  {
    const FailingThreads failing("nacre-log", /*one_in=*/1);
    for (uint64_t i = 0; i < 1'000'000 && status.ok(); ++i) {
      status = db_->Put({}, "more", TestValue(i, 10'000));
    }
  }
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  db_->Close().IgnoreError();
  Open();
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  EXPECT_TRUE(IsOk(db_->Put({}, "more", "1")));
}

INSTANTIATE_TEST_SUITE_P(Threads, DBThreadAllocationsTest,
                         testing::Values("nacre-report", "nacre-owner", "nacre-scrub",
                                         "nacre-repair", "nacre-tick", "nacre-knock"),
                         [](const auto& thread) { return std::string(thread.param).substr(6); });

}  // namespace
}  // namespace nacre
