// Goal: an iterator fetches what its scan needs and little more, and nothing that can be loaded.
// Method: tables whose extent counts reads and bytes, and scans of known lengths.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "table/table_reader.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(TableReadsTest, SeekFetchesOneInterval) {
  std::vector<TestEntry> entries;
  for (int i = 10'000; i < 30'000; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(400, 'v')));
  }
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 256 << 10;
  const TestTable table = MakeTable(entries, options);
  const TableIteratorOptions iterator_options;
  Random random(TestSeed(305));
  for (int seek = 0; seek < 200; ++seek) {
    auto iterator = table.reader->NewIterator(iterator_options);
    const uint64_t reads = table.extent->reads_started();
    const uint64_t bytes = table.extent->bytes_started();
    const TestEntry& entry = entries[random.Uniform(entries.size())];
    iterator->Seek(InternalKey(entry.user_key, PackTag(kMaxSequenceNumber, kValueTypeForSeek)));
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->user_key(), Slice(entry.user_key));
    EXPECT_EQ(table.extent->reads_started() - reads, 1u);
    EXPECT_LE(table.extent->bytes_started() - bytes, 4096u);
  }
}

TestTable NumberedTable(int entries_count) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < entries_count; ++i) {
    entries.push_back(PutEntry(std::to_string(10'000 + i), 1, std::string(400, 'v')));
  }
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 256 << 10;
  return MakeTable(entries, options);
}

struct Fetched {
  uint64_t reads = 0;
  uint64_t bytes = 0;
};
/// What a new iterator fetches for so many entries from `begin` on, none of them at or behind
/// `bound`.
Fetched FetchScan(const TestTable& table, int begin, int steps, const Slice* bound = nullptr) {
  const Fetched before{table.extent->reads_started(), table.extent->bytes_started()};
  const std::string key = InternalKey(std::to_string(10'000 + begin), kGreatestTag);
  auto iterator = table.reader->NewIterator({});
  iterator->PrepareSeek(key, bound);
  iterator->Seek(key);
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->user_key(), Slice(std::to_string(10'000 + begin + i)));
    iterator->Next();
  }
  return {table.extent->reads_started() - before.reads,
          table.extent->bytes_started() - before.bytes};
}

TEST(TableReadsTest, ScansLikeThoseBeforeFetchWhatTheyNeedByOneRead) {
  constexpr uint64_t kRecord = 420;
  const TestTable table = NumberedTable(20'000);
  Random random(TestSeed(309));
  const auto begin = [&random] { return static_cast<int>(random.Uniform(15'000)); };
  // The first one knows nothing of others: an interval, 8 KiB, 16 KiB.
  EXPECT_EQ(FetchScan(table, begin(), 50).reads, 3u);
  for (int i = 0; i < 10; ++i) FetchScan(table, begin(), 50);
  int single = 0;
  for (int i = 0; i < 100; ++i) {
    const Fetched fetched = FetchScan(table, begin(), 50);
    EXPECT_LE(fetched.reads, 2u);
    EXPECT_LE(fetched.bytes, 50 * kRecord + (8 << 10) + 3 * 2600);
    if (fetched.reads == 1) ++single;
  }
  EXPECT_GE(single, 80);
  // Longer ones are learned, shorter ones again.
  for (int i = 0; i < 40; ++i) FetchScan(table, begin(), 1000);
  const Fetched longer = FetchScan(table, begin(), 1000);
  EXPECT_GE(longer.bytes, 1000 * kRecord);
  EXPECT_LE(longer.bytes, 1000 * kRecord + 3 * (256 << 10));
  for (int i = 0; i < 60; ++i) FetchScan(table, begin(), 1);
  for (int i = 0; i < 20; ++i) {
    const Fetched shorter = FetchScan(table, begin(), 1);
    EXPECT_LE(shorter.bytes, (shorter.reads == 1 ? 0 : 8 << 10) + 2 * 2600u);
  }
}

TEST(TableReadsTest, NothingIsReadAheadBehindTheUpperBound) {
  const TestTable table = NumberedTable(20'000);
  for (int i = 0; i < 30; ++i) FetchScan(table, 200 * i, 500);
  const std::string key = std::to_string(10'000 + 7'010);
  const Slice bound(key);
  const Fetched bounded = FetchScan(table, 7'000, 10, &bound);
  EXPECT_EQ(bounded.reads, 1u);
  EXPECT_LE(bounded.bytes, 10 * 420 + 2 * 2600u);
  // One before the key, one behind the table, and one that the scan passes change no answer.
  const std::string early = "1";
  const std::string late = "9";
  const Slice early_bound(early);
  const Slice late_bound(late);
  EXPECT_EQ(FetchScan(table, 7'000, 1, &early_bound).reads, 1u);
  FetchScan(table, 7'000, 500, &early_bound);
  FetchScan(table, 7'000, 500, &late_bound);
  FetchScan(table, 7'000, 500, &bound);
}

TEST(TableReadsTest, ScansReadEachByteOnceAndBoundedAhead) {
  std::vector<TestEntry> entries;
  for (int i = 10'000; i < 40'000; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(400, 'v')));
  }
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 256 << 10;
  const TestTable table = MakeTable(entries, options);
  const uint64_t before = table.extent->bytes_started();
  TableIteratorOptions iterator_options;
  iterator_options.readahead_max = 256 << 10;
  iterator_options.reads_in_flight = 3;
  for (const bool forward : {true, false}) {
    const uint64_t bytes = table.extent->bytes_started();
    const uint64_t reads = table.extent->reads_started();
    auto iterator = table.reader->NewIterator(iterator_options);
    size_t count = 0;
    for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
         forward ? iterator->Next() : iterator->Prev()) {
      ++count;
    }
    EXPECT_EQ(count, entries.size());
    EXPECT_EQ(table.extent->bytes_started() - bytes, table.meta->records.length);
    EXPECT_LE(table.extent->reads_started() - reads,
              5 + table.meta->records.length / (256 << 10) + 2);
  }
  EXPECT_GT(table.extent->bytes_started(), before);
  // One at hand, three under way.
  EXPECT_EQ(table.extent->reads_alive_max(), 4u);
}

TEST(TableReadsTest, OnlyReadsAheadOfALongScanAreHandedOver) {
  for (const bool hand_over : {false, true}) {
    const TestTable table = NumberedTable(5'000);  // No scan of it was long before.
    TableIteratorOptions options;
    options.hand_over_reads = hand_over;
    auto iterator = table.reader->NewIterator(options);
    const uint64_t before = table.extent->reads_ahead();
    iterator->Seek(InternalKey("10000", kGreatestTag));
    for (int i = 0; i < 40; ++i) iterator->Next();
    EXPECT_EQ(table.extent->reads_ahead(), before) << "the scan is short yet";
    const uint64_t reads = table.extent->reads_started();
    int count = 40;
    for (; iterator->Valid(); iterator->Next()) ++count;
    EXPECT_EQ(count, 5'000);
    const uint64_t ahead = table.extent->reads_ahead() - before;
    EXPECT_EQ(ahead > 0, hand_over);
    // The first long one is waited for at once.
    EXPECT_LT(ahead, table.extent->reads_started() - reads);
  }
}

TEST(TableReadsTest, WhatCanBeLoadedIsNotRead) {
  std::vector<TestEntry> entries;
  for (int i = 10'000; i < 12'000; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(400, 'v')));
  }
  TestTableOptions options;
  options.chunk_size = 64 << 10;
  for (const BytesPlace place : {BytesPlace::kLoadable, BytesPlace::kLoadableByChunk}) {
    options.place = place;
    const TestTable table = MakeTable(entries, options);
    const uint64_t reads = table.extent->reads_started();
    auto iterator = table.reader->NewIterator({});
    size_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
    EXPECT_EQ(count, entries.size());
    EXPECT_EQ(table.extent->reads_started(), reads);
    iterator->Seek(InternalKey("11000", PackTag(kMaxSequenceNumber, kValueTypeForSeek)));
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(table.extent->reads_started(), reads);
  }
}

}  // namespace
}  // namespace nacre
