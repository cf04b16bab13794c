// Goal: CompactRange does what its options ask, and says what it cannot do.
// Method: the same data compacted in different ways reads the same; the nodes count how it was
// done.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nacre/db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class CompactRangeTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.disable_auto_compactions = true;
    ASSERT_TRUE(IsOk(DB::Open(options, "compact", &db_)));
  }

  static std::string Key(size_t i) { return "key" + std::to_string(100'000 + i); }
  void Fill(uint64_t seed) {
    for (size_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(seed + i, 200))));
    }
  }
  void CheckAll(uint64_t seed) {
    const auto iterator = db_->NewIterator({});
    size_t i = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
      ASSERT_EQ(iterator->key().ToString(), Key(i));
      ASSERT_EQ(iterator->value().ToString(), TestValue(seed + i, 200));
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(i, kKeys);
  }

  /// Those that nodes have run: a compaction in pieces counts for as many.
  uint64_t Compactions() { return SumOverNodes(pool_.get(), &memnode::NodeStats::compactions); }

  static constexpr size_t kKeys = 20'000;
  std::shared_ptr<memnode::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

TEST_F(CompactRangeTest, InPieces) {
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (const uint32_t pieces : {1u, 3u, 256u}) {
    ASSERT_NO_FATAL_FAILURE(Fill(pieces));
    CompactRangeOptions options;
    options.max_subcompactions = pieces;
    const uint64_t before = Compactions();
    ASSERT_TRUE(IsOk(db_->CompactRange(options, nullptr, nullptr)));
    if (pieces == 1) {
      EXPECT_EQ(Compactions(), before + 1);
    } else {
      EXPECT_GT(Compactions(), before + 1) << pieces;
    }
    ASSERT_NO_FATAL_FAILURE(CheckAll(pieces));
  }
}

TEST_F(CompactRangeTest, SaysWhatItCannotDo) {
  CompactRangeOptions options;
  options.max_subcompactions = 257;
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, nullptr, nullptr),
                        Status::Code::kInvalidArgument, "max_subcompactions is 257"));
  options = {};
  options.change_level = true;
  EXPECT_TRUE(IsFailure(db_->CompactRange(options, nullptr, nullptr), Status::Code::kNotSupported,
                        "change_level"));
}

}  // namespace
}  // namespace nacre
