// Goal: a walk backwards reads only what cannot be loaded, and shows every entry once, whether the
// memory that it loads from stays or ends on the way.
// Method: a table whose intervals are shorter than its chunks, walked from its end in each place
// where its bytes may lie; reads are counted, and memory is ended every few entries.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/table/test_table.h"

namespace nacre {
namespace {

class WalkBackwardsTest : public testing::TestWithParam<BytesPlace> {
 protected:
  WalkBackwardsTest() {
    options_.place = GetParam();
    options_.range_index_interval = 500;
    for (size_t i = 0; i < 2000; ++i) {
      entries_.push_back({std::to_string(10'000 + i), PackTag(i + 1, ValueType::kValue),
                          std::string(i % 300, 'v')});
    }
    table_ = MakeTable(entries_, options_);
  }

  /// Walks from the last entry to the first one; the memory ends each `period` entries, if that is
  /// not 0.
  void Walk(size_t period) {
    auto iterator = table_.reader->NewIterator({});
    iterator->SeekToLast();
    for (size_t i = entries_.size(); i-- > 0; iterator->Prev()) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      ASSERT_EQ(iterator->user_key(), Slice(entries_[i].user_key));
      ASSERT_EQ(iterator->value(), Slice(entries_[i].value));
      if (period > 0 && i % period == 0) table_.extent->EndMemory(/*refusals=*/i % 3);
    }
    EXPECT_FALSE(iterator->Valid());
    EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
  }

  TestTableOptions options_;
  std::vector<TestEntry> entries_;
  TestTable table_;
};

TEST_P(WalkBackwardsTest, ReadsOnlyWhatCannotBeLoaded) {
  const uint64_t reads_before = table_.extent->reads_started();
  ASSERT_NO_FATAL_FAILURE(Walk(/*period=*/0));
  const uint64_t reads = table_.extent->reads_started() - reads_before;
  const uint64_t chunks = table_.meta->records.length / options_.chunk_size + 1;
  if (GetParam() == BytesPlace::kFetched) {
    EXPECT_GT(reads, 0u);
  } else if (GetParam() == BytesPlace::kLoadableByChunk) {
    EXPECT_LE(reads, chunks) << "intervals that straddle two chunks";
  } else {
    EXPECT_EQ(reads, 0u);
  }
}

TEST_P(WalkBackwardsTest, GoesOnWhenMemoryEnds) {
  for (const size_t period : {1, 2, 7, 40}) ASSERT_NO_FATAL_FAILURE(Walk(period)) << period;
}

INSTANTIATE_TEST_SUITE_P(Places, WalkBackwardsTest,
                         testing::Values(BytesPlace::kInPlace, BytesPlace::kFetched,
                                         BytesPlace::kLoadable, BytesPlace::kLoadableByChunk));

}  // namespace
}  // namespace nacre
