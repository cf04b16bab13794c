// Goal: a compaction filter is asked for what it may change and for nothing else: the newest
// version of a key, if it is a value that no snapshot sees; what it removes or changes stays so, on
// the compute node and on a memory node that knows the filter. Method: a filter that goes by the
// value, beside a model; snapshots; older versions that must not come back; a node with a plugin.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "nacre/compaction_filter.h"
#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "pool/pool_impl.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Removes "drop...", changes "change..." to "changed".
class ByValue final : public CompactionFilter {
 public:
  const char* Name() const override { return "ByValue"; }
  Decision FilterV2(int /*level*/, const Slice& /*key*/, ValueType /*type*/, const Slice& value,
                    std::string* new_value, std::string* /*skip_until*/) const override {
    asked.fetch_add(1);
    if (value.ToString().starts_with("drop")) return Decision::kRemove;
    if (!value.ToString().starts_with("change ")) return Decision::kKeep;
    *new_value = "changed";
    return Decision::kChangeValue;
  }
  mutable std::atomic<uint64_t> asked{0};
};

/// The same by the older interface, made anew for each job.
class Factory final : public CompactionFilterFactory {
 public:
  class Simple final : public CompactionFilter {
   public:
    const char* Name() const override { return "Simple"; }
    bool Filter(int /*level*/, const Slice& /*key*/, const Slice& value, std::string* new_value,
                bool* value_changed) const override {
      *value_changed = value.ToString().starts_with("change ");
      if (*value_changed) *new_value = "changed";
      return value.ToString().starts_with("drop");
    }
  };
  const char* Name() const override { return "Factory"; }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) override {
    made.fetch_add(1);
    if (context.is_manual_compaction) manual.fetch_add(1);
    return std::make_unique<Simple>();
  }
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> manual{0};
};

class DBCompactionFilterTest : public testing::Test {
 protected:
  void Open() {
    if (options_.pool == nullptr) {
      const auto pool = OpenTestPool();
      ASSERT_NE(pool, nullptr);
      const auto filter = options_;
      options_ = SmallTableOptions(pool);
      options_.compaction_filter = filter.compaction_filter;
      options_.compaction_filter_factory = filter.compaction_filter_factory;
      options_.disable_auto_compactions = true;
    }
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
  }
  std::string Get(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions read;
    read.snapshot = snapshot;
    std::string value;
    const Status status = db_->Get(read, key, &value);
    if (status.IsNotFound()) return "(none)";
    EXPECT_TRUE(IsOk(status));
    return value;
  }
  void Compact() { ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr))); }

  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBCompactionFilterTest, RemovesAndChangesTheNewestVersions) {
  ByValue filter;
  options_.compaction_filter = &filter;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Put("a", "keep"));
  ASSERT_NO_FATAL_FAILURE(Put("b", "below"));
  ASSERT_NO_FATAL_FAILURE(Put("c", "change me"));
  ASSERT_NO_FATAL_FAILURE(Put("d", "drop: an older version"));
  ASSERT_NO_FATAL_FAILURE(Put("d", "newer"));
  ASSERT_NO_FATAL_FAILURE(Compact());
  EXPECT_EQ("changed", Get("c"));
  EXPECT_EQ("newer", Get("d"));
  // What was below must not come back.
  ASSERT_NO_FATAL_FAILURE(Put("b", "drop"));
  EXPECT_EQ("drop", Get("b"));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ("drop", Get("b")) << "a flush does not ask";
  ASSERT_NO_FATAL_FAILURE(Compact());
  EXPECT_EQ("(none)", Get("b"));
  EXPECT_EQ("keep", Get("a"));
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ("(none)", Get("b"));
  EXPECT_EQ("changed", Get("c"));
}

TEST_F(DBCompactionFilterTest, LeavesWhatSnapshotsSee) {
  ByValue filter;
  options_.compaction_filter = &filter;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Put("old", "drop"));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_NO_FATAL_FAILURE(Put("new", "drop"));
  ASSERT_NO_FATAL_FAILURE(Put("both", "x"));
  ASSERT_NO_FATAL_FAILURE(Compact());
  EXPECT_EQ("drop", Get("old"));
  EXPECT_EQ("drop", Get("old", snapshot));
  EXPECT_EQ("(none)", Get("new"));
  db_->ReleaseSnapshot(snapshot);
  ASSERT_NO_FATAL_FAILURE(Compact());
  EXPECT_EQ("(none)", Get("old"));
}

TEST_F(DBCompactionFilterTest, AFactoryMakesOneForEachCompaction) {
  const auto factory = std::make_shared<Factory>();
  options_.compaction_filter_factory = factory;
  ASSERT_NO_FATAL_FAILURE(Open());
  Random random(TestSeed(4300));
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(random.Uniform(1000));
    const char* const values[] = {"drop", "change ", "keep"};
    const std::string value = values[random.Uniform(3)] + TestValue(random.Next(), 50);
    ASSERT_NO_FATAL_FAILURE(Put(key, value));
    if (value.starts_with("drop")) {
      expected.erase(key);
    } else {
      expected[key] = value.starts_with("change ") ? "changed" : value;
    }
    if (i % 500 == 0) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
  }
  ASSERT_NO_FATAL_FAILURE(Compact());
  EXPECT_GT(factory->made.load(), 0U);
  EXPECT_EQ(factory->made.load(), factory->manual.load());
  const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  auto at = expected.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
    ASSERT_NE(at, expected.end());
    ASSERT_EQ(at->first, iterator->key().ToString());
    ASSERT_EQ(at->second, iterator->value().ToString());
  }
  EXPECT_EQ(at, expected.end());
}

}  // namespace
}  // namespace nacre
