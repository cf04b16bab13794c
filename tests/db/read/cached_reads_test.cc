// Goal: with a cache of records every read answers as without it (snapshots, deletions, merges,
// ranges, compactions, other owners, followers), and what is hot is not read from nodes again;
// where memory can be loaded, the cache stays out of the way. Method: known records over memory
// that is read; the reads that each step sends, and the cache's own numbers; damaged and lost
// nodes.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/async.h"
#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "nacre/perf_context.h"
#include "nacre/statistics.h"
#include "nacre/task.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class CachedReadsTest : public testing::Test {
 protected:
  static constexpr int kKeys = 200;

  void SetUp() override { SetPerfLevel(PerfLevel::kEnableCount); }
  void TearDown() override { SetPerfLevel(PerfLevel::kDisable); }

  void Open(bool map = false, const std::string& redundancy = "none") {
    nodes_ = std::make_unique<TestNodes>(NodeKind::kEmbedded, TestPoolOptions{.map = map});
    ASSERT_NE(nodes_->pool(), nullptr);
    options_ = SmallTableOptions(nodes_->pool());
    options_.redundancy = redundancy;
    options_.disable_auto_compactions = true;
    options_.record_cache_size = 1 << 20;
    options_.statistics = CreateDBStatistics();
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(IsOk(db_->Put({}, Key(i), Value(i))));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }

  static std::string Key(int i) { return "key" + std::to_string(1000 + i); }
  static std::string Value(int i) { return TestValue(static_cast<uint64_t>(i), 100); }

  /// The reads of nodes that `work` sends from this thread.
  template <typename Work>
  static uint64_t ReadsOf(const Work& work) {
    const uint64_t before = get_perf_context()->remote_read_count;
    work();
    return get_perf_context()->remote_read_count - before;
  }

  std::string Get(const Slice& key, const ReadOptions& options = {}) {
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "absent" : status.ToString();
  }
  void GetAll() {
    for (int i = 0; i < kKeys; ++i) EXPECT_EQ(Get(Key(i)), Value(i));
  }
  uint64_t Hits() { return GetNumber(db_.get(), "nacre.record-cache.hits"); }
  uint64_t Misses() { return GetNumber(db_.get(), "nacre.record-cache.misses"); }

  std::unique_ptr<TestNodes> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(CachedReadsTest, TheSecondGetReadsNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(ReadsOf([this] { GetAll(); }), kKeys);
  EXPECT_EQ(Misses(), kKeys);
  EXPECT_EQ(ReadsOf([this] { GetAll(); }), 0u);
  EXPECT_EQ(Hits(), kKeys);
  EXPECT_EQ(options_.statistics->getTickerCount(ROW_CACHE_HIT), kKeys);
  EXPECT_EQ(options_.statistics->getTickerCount(ROW_CACHE_MISS), kKeys);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.record-cache.capacity"), options_.record_cache_size);
  EXPECT_GE(GetNumber(db_.get(), "nacre.record-cache.bytes"), kKeys * 100u);
}

TEST_F(CachedReadsTest, MultiGetReadsWhatIsNotThere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < kKeys; i += 2) EXPECT_EQ(Get(Key(i)), Value(i));
  std::vector<std::string> names;
  for (int i = 0; i < kKeys; ++i) names.push_back(Key(i));
  names.emplace_back("kez");
  const std::vector<Slice> keys(names.begin(), names.end());
  for (const int reads : {kKeys / 2, 0}) {
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    EXPECT_EQ(ReadsOf([&] {
                db_->MultiGet({}, db_->DefaultColumnFamily(), keys.size(), keys.data(),
                              values.data(), statuses.data());
              }),
              static_cast<uint64_t>(reads));
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(statuses[i]));
      EXPECT_EQ(values[i], Value(i));
    }
    EXPECT_TRUE(statuses[kKeys].IsNotFound());
  }
}

TEST_F(CachedReadsTest, MemoryThatCanBeLoadedIsNotCached) {
  ASSERT_NO_FATAL_FAILURE(Open(/*map=*/true));
  GetAll();
  GetAll();
  EXPECT_EQ(Hits(), 0u);
  EXPECT_EQ(Misses(), 0u);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.record-cache.capacity"), options_.record_cache_size);
}

TEST_F(CachedReadsTest, SnapshotsSeeTheirVersions) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions before;
  before.snapshot = snapshot;
  EXPECT_EQ(Get("key1000"), Value(0));
  ASSERT_TRUE(IsOk(db_->Put({}, "key1000", "new")));
  ASSERT_TRUE(IsOk(db_->Delete({}, "key1001")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Get("key1000"), "new");
    EXPECT_EQ(Get("key1000", before), Value(0));
    EXPECT_EQ(Get("key1001"), "absent");
    EXPECT_EQ(Get("key1001", before), Value(1));
    // Both versions are in one table then.
    if (round == 1) {
      ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    }
  }
  db_->ReleaseSnapshot(snapshot);
}

TEST_F(CachedReadsTest, DeletionsMergesAndRangesCount) {
  ASSERT_NO_FATAL_FAILURE(Open());
  GetAll();
  ASSERT_TRUE(IsOk(db_->Delete({}, Key(0))));
  ASSERT_TRUE(IsOk(db_->SingleDelete({}, Key(1))));
  ASSERT_TRUE(IsOk(db_->Merge({}, Key(2), "more")));
  ASSERT_TRUE(IsOk(db_->DeleteRange({}, Key(3), Key(5))));
  const auto check = [this] {
    for (int i : {0, 1, 3, 4}) EXPECT_EQ(Get(Key(i)), "absent") << i;
    EXPECT_EQ(Get(Key(2)), Value(2) + ",more");
    for (int i = 5; i < kKeys; ++i) ASSERT_EQ(Get(Key(i)), Value(i));
  };
  check();
  ASSERT_TRUE(IsOk(db_->Flush({})));
  check();
  check();
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  check();
  EXPECT_EQ(ReadsOf(check), 0u);
}

TEST_F(CachedReadsTest, ReadsWithoutVerificationAdmitNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ReadOptions options;
  options.verify_checksums = false;
  EXPECT_EQ(Get(Key(0), options), Value(0));
  EXPECT_EQ(ReadsOf([&] { EXPECT_EQ(Get(Key(0), options), Value(0)); }), 1u);
  EXPECT_EQ(Get(Key(0)), Value(0));
  EXPECT_EQ(ReadsOf([&] { EXPECT_EQ(Get(Key(0), options), Value(0)); }), 0u);
}

TEST_F(CachedReadsTest, KeyMayExistFindsTheValue) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::string value;
  bool found = true;
  EXPECT_TRUE(db_->KeyMayExist({}, Key(0), &value, &found));
  EXPECT_FALSE(found);
  EXPECT_EQ(Get(Key(0)), Value(0));
  EXPECT_TRUE(db_->KeyMayExist({}, Key(0), &value, &found));
  EXPECT_TRUE(found);
  EXPECT_EQ(value, Value(0));
  ASSERT_TRUE(IsOk(db_->Delete({}, Key(0))));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(Get(Key(0)), "absent");
  EXPECT_FALSE(db_->KeyMayExist({}, Key(0), &value, &found));
}

TEST_F(CachedReadsTest, CodedTablesAreServedWhileANodeIsLost) {
  ASSERT_NO_FATAL_FAILURE(Open(/*map=*/false, "rs(2,1)"));
  GetAll();
  nodes_->Kill(0);
  EXPECT_EQ(ReadsOf([this] { GetAll(); }), 0u);
}

Task<void> GetTwice(AsyncDB* async, const Slice& key, const Slice& expected) {
  for (int i = 0; i < 2; ++i) {
    PinnableSlice value;
    EXPECT_TRUE(IsOk(co_await async->GetAsync({}, key, &value)));
    EXPECT_EQ(value, expected);
  }
}

TEST_F(CachedReadsTest, CoroutinesUseIt) {
  ASSERT_NO_FATAL_FAILURE(Open());
  RunLoop loop;
  std::unique_ptr<AsyncDB> async;
  ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop, &async)));
  const std::string key = Key(7);
  const std::string value = Value(7);
  loop.Spawn(GetTwice(async.get(), key, value));
  loop.Run();
  EXPECT_EQ(Misses(), 1u);
  EXPECT_EQ(Hits(), 1u);
}

TEST_F(CachedReadsTest, AFollowerHasItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::unique_ptr<DB> owner = std::move(db_);
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(options_, "db", &db_)));
  GetAll();
  EXPECT_EQ(ReadsOf([this] { GetAll(); }), 0u);
  EXPECT_EQ(Hits(), kKeys);
  for (int i = 0; i < kKeys; i += 2) ASSERT_TRUE(IsOk(owner->Put({}, Key(i), "new")));
  ASSERT_TRUE(IsOk(owner->Flush({})));
  ASSERT_TRUE(IsOk(owner->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->TryCatchUpWithPrimary()));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kKeys; ++i) EXPECT_EQ(Get(Key(i)), i % 2 == 0 ? "new" : Value(i));
  }
  // The next owner begins with an empty cache, and the follower goes on with its own.
  owner.reset();
  ASSERT_TRUE(IsOk(DB::Open(options_, "db", &owner)));
  ASSERT_TRUE(IsOk(owner->Put({}, Key(0), "newer")));
  ASSERT_TRUE(IsOk(owner->Flush({})));
  EXPECT_EQ(GetNumber(owner.get(), "nacre.record-cache.hits"), 0u);
  ASSERT_TRUE(IsOk(db_->TryCatchUpWithPrimary()));
  EXPECT_EQ(Get(Key(0)), "newer");
  EXPECT_EQ(Get(Key(1)), Value(1));
  db_.reset();
}

}  // namespace
}  // namespace nacre
