// Goal: a walk backwards reads only what cannot be loaded, and shows every entry once, whether the
// memory that it loads from stays or ends on the way. So does one that turns anywhere.
// Method: a table whose intervals are shorter than its chunks, walked from its end in each place
// where its bytes may lie; reads are counted, and memory is ended every few entries. Random moves
// over records that are much shorter and much longer than what is copied at once, and over damage.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

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

/// Makes random moves over the table, whose memory ends now and then.
void MoveAbout(Random* random, const TestTable& table, const std::vector<TestEntry>& entries,
               int moves) {
  auto iterator = table.reader->NewIterator({});
  size_t at = entries.size();
  for (int move = 0; move < moves; ++move) {
    const uint64_t choice = at < entries.size() ? random->Uniform(40) : random->Uniform(4);
    const size_t target = random->Uniform(entries.size());
    const std::string key = InternalKey(entries[target].user_key, entries[target].tag);
    if (choice == 0) {
      iterator->SeekToFirst();
      at = 0;
    } else if (choice == 1) {
      iterator->SeekToLast();
      at = entries.size() - 1;
    } else if (choice < 4) {
      choice == 2 ? iterator->Seek(key) : iterator->SeekForPrev(key);
      at = target;
    } else {
      // A few steps in one direction, more often than one.
      const bool forward = choice % 2 == 0;
      for (uint64_t steps = 1 + random->Skewed(5); steps > 0 && iterator->Valid(); --steps) {
        forward ? iterator->Next() : iterator->Prev();
        forward ? ++at : --at;
      }
    }
    if (random->OneIn(20)) table.extent->EndMemory(/*refusals=*/random->Uniform(3));
    ASSERT_TRUE(iterator->status().ok()) << iterator->status().ToString();
    ASSERT_EQ(iterator->Valid(), at < entries.size()) << at;
    if (!iterator->Valid()) continue;
    ASSERT_EQ(iterator->user_key(), Slice(entries[at].user_key));
    ASSERT_EQ(iterator->tag(), entries[at].tag);
    ASSERT_EQ(iterator->value(), Slice(entries[at].value));
  }
}

TEST_P(WalkBackwardsTest, TurnsAnywhere) {
  Random random(TestSeed(310));
  for (const size_t chunk_size : {size_t{4} << 10, size_t{64} << 10}) {
    std::vector<TestEntry> entries;
    for (size_t i = 0; i < 1000; ++i) {
      const size_t size = random.OneIn(20) ? random.Uniform(30'000) : random.Uniform(300);
      const std::string key = std::to_string(10'000 + i);
      entries.push_back({key, PackTag(i + 5, ValueType::kValue), std::string(size, 'v')});
      if (i % 7 == 0) entries.push_back({key, PackTag(3, ValueType::kDeletion), ""});
    }
    options_.chunk_size = chunk_size;
    const TestTable table = MakeTable(entries, options_);
    ASSERT_NO_FATAL_FAILURE(MoveAbout(&random, table, entries, 5000)) << chunk_size;
  }
}

TEST_P(WalkBackwardsTest, ShowsAllBeforeAndBehindADamagedRecord) {
  Random random(TestSeed(311));
  for (int round = 0; round < 200; ++round) {
    TestTable table = MakeTable(entries_, options_);
    // Whatever byte of a record is damaged, both sides of it are to be seen.
    const uint64_t place = random.Uniform(table.meta->records.length);
    (*table.extent->mutable_bytes())[place] ^= 1;
    auto iterator = table.reader->NewIterator({});
    size_t before = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      ASSERT_EQ(iterator->value(), Slice(entries_[before].value));
      ++before;
    }
    if (iterator->status().ok()) {
      EXPECT_EQ(before, entries_.size()) << "padding, or what is left of a chunk";
      continue;
    }
    EXPECT_TRUE(iterator->status().IsCorruption());
    size_t behind = 0;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      ASSERT_EQ(iterator->value(), Slice(entries_[entries_.size() - 1 - behind].value));
      ++behind;
    }
    EXPECT_TRUE(iterator->status().IsCorruption()) << iterator->status().ToString();
    // Records of an interval that a damaged length hides cannot be shown.
    EXPECT_LE(before + behind, entries_.size() - 1);
    EXPECT_GE(before + behind + 12, entries_.size()) << "at " << place;
  }
}

INSTANTIATE_TEST_SUITE_P(Places, WalkBackwardsTest,
                         testing::Values(BytesPlace::kInPlace, BytesPlace::kFetched,
                                         BytesPlace::kLoadable, BytesPlace::kLoadableByChunk));

}  // namespace
}  // namespace nacre
