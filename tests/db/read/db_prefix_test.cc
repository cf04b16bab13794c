// Goal: with `prefix_same_as_start` an iterator sees exactly the keys with the prefix of where it
// was sent, in both directions; without, or with `total_order_seek`, all. Method: random keys in a
// database of several levels, for each kind of prefix, against the sorted list of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/slice_transform.h"
#include "pool/pool_impl.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// What is before the first '/', if there is one.
class BeforeSlash final : public SliceTransform {
 public:
  const char* Name() const override { return "BeforeSlash"; }
  Slice Transform(const Slice& key) const override { return {key.data(), *Find(key)}; }
  bool InDomain(const Slice& key) const override { return Find(key).has_value(); }

 private:
  static std::optional<size_t> Find(const Slice& key) {
    const char* const found = std::find(key.begin(), key.end(), '/');
    if (found == key.end()) return std::nullopt;
    return static_cast<size_t>(found - key.begin());
  }
};

class DBPrefixTest : public testing::Test {
 protected:
  void Fill() {
    Random random(TestSeed(4400));
    for (int i = 0; i < 2000; ++i) {
      std::string key;
      for (uint64_t left = random.Uniform(5); left > 0; --left) {
        key += static_cast<char>('a' + random.Uniform(3));
      }
      if (!random.OneIn(4)) key += "/" + std::to_string(random.Uniform(40));
      if (random.OneIn(5)) {
        ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
        keys_.erase(key);
      } else {
        ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, TestValue(random.Next(), 100))));
        keys_.insert(key);
      }
      if (i % 600 == 599) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
    }
  }
  void Open(std::shared_ptr<const SliceTransform> extractor) {
    const auto pool = OpenTestPool();
    ASSERT_NE(pool, nullptr);
    Options options = SmallTableOptions(pool);
    options.prefix_extractor = std::move(extractor);
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db_)));
  }

  /// What follows from `target`, forward or backward.
  std::vector<std::string> Expected(const SliceTransform* extractor, const std::string& target,
                                    bool forward) const {
    std::vector<std::string> all(keys_.begin(), keys_.end());
    if (!forward) std::reverse(all.begin(), all.end());
    std::vector<std::string> expected;
    for (const std::string& key : all) {
      if (forward ? key < target : key > target) continue;
      if (extractor != nullptr && extractor->InDomain(target)) {
        // Those of one prefix lie side by side.
        if (!extractor->InDomain(key) ||
            extractor->Transform(key) != extractor->Transform(target)) {
          break;
        }
      }
      expected.push_back(key);
    }
    return expected;
  }
  std::vector<std::string> Walk(const ReadOptions& read, const std::string& target, bool forward) {
    const std::unique_ptr<Iterator> iterator(db_->NewIterator(read));
    std::vector<std::string> seen;
    if (forward) {
      for (iterator->Seek(target); iterator->Valid(); iterator->Next()) {
        seen.push_back(iterator->key().ToString());
      }
    } else {
      for (iterator->SeekForPrev(target); iterator->Valid(); iterator->Prev()) {
        seen.push_back(iterator->key().ToString());
      }
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return seen;
  }

  std::unique_ptr<DB> db_;
  std::set<std::string> keys_;
};

TEST_F(DBPrefixTest, IteratorsKeepToThePrefixOfTheirTarget) {
  const std::vector<std::shared_ptr<const SliceTransform>> extractors = {
      nullptr, NewFixedPrefixTransform(2), NewCappedPrefixTransform(3), NewNoopTransform(),
      std::make_shared<BeforeSlash>()};
  for (const auto& extractor : extractors) {
    SCOPED_TRACE(extractor == nullptr ? "none" : extractor->Name());
    keys_.clear();
    ASSERT_NO_FATAL_FAILURE(Open(extractor));
    ASSERT_NO_FATAL_FAILURE(Fill());
    for (const char* target : {"", "a", "ab", "ab/", "abc/17", "b/3", "ba", "ca/99", "cc/", "zz"}) {
      for (const bool forward : {true, false}) {
        ReadOptions read;
        EXPECT_EQ(Expected(nullptr, target, forward), Walk(read, target, forward)) << target;
        read.prefix_same_as_start = true;
        EXPECT_EQ(Expected(extractor.get(), target, forward), Walk(read, target, forward))
            << target;
        read.total_order_seek = true;
        EXPECT_EQ(Expected(nullptr, target, forward), Walk(read, target, forward)) << target;
        ReadOptions automatic;
        automatic.auto_prefix_mode = true;
        EXPECT_EQ(Expected(nullptr, target, forward), Walk(automatic, target, forward)) << target;
      }
    }
    db_.reset();
  }
}

TEST(SliceTransformTest, SaysWhatIsAPrefix) {
  const auto fixed = NewFixedPrefixTransform(3);
  EXPECT_FALSE(fixed->InDomain("ab"));
  EXPECT_EQ("abc", fixed->Transform("abcd").ToString());
  const auto capped = NewCappedPrefixTransform(3);
  EXPECT_TRUE(capped->InDomain("ab"));
  EXPECT_EQ("ab", capped->Transform("ab").ToString());
  EXPECT_EQ("abc", capped->Transform("abcd").ToString());
  EXPECT_EQ("abcd", NewNoopTransform()->Transform("abcd").ToString());
}

}  // namespace
}  // namespace nacre
