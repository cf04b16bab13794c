// Goal: damage to a table's bytes and failures of what carries them are reported, with the table's
// id and the offset, and never change what is read.
// Method: every byte of a small table damaged; the n-th read or write failed for every n.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "table/table_reader.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/hash.h"
#include "util/random.h"

namespace nacre {
namespace {

std::vector<TestEntry> SomeEntries() {
  std::vector<TestEntry> entries;
  for (int i = 10; i < 70; ++i) {
    const std::string key = "key" + std::to_string(i);
    entries.push_back({key, PackTag(100, ValueType::kValue),
                       std::string(static_cast<size_t>(i * i % 90), static_cast<char>(i))});
    if (i % 7 == 0) entries.push_back({key, PackTag(50, ValueType::kDeletion), ""});
    if (i == 40) entries.back().value = std::string(1500, 'L');  // Larger than a chunk.
  }
  return entries;
}

/// Everything of a table, read by all ways. Empty strings where something was reported.
struct Outcome {
  bool reported = false;
  bool same = true;
};

void CheckScan(const TestTable& table, const std::vector<TestEntry>& entries, bool forward,
               Outcome* outcome) {
  auto iterator = table.reader->NewIterator({});
  forward ? iterator->SeekToFirst() : iterator->SeekToLast();
  size_t count = 0;
  for (; iterator->Valid(); forward ? iterator->Next() : iterator->Prev(), ++count) {
    if (count == entries.size()) {
      outcome->same = false;
      return;
    }
    const TestEntry& expected = entries[forward ? count : entries.size() - 1 - count];
    const TestEntry read{iterator->user_key().ToString(), iterator->tag(),
                         iterator->value().ToString()};
    if (!(read == expected)) outcome->same = false;
  }
  if (!iterator->status().ok()) {
    EXPECT_TRUE(iterator->status().IsCorruption()) << iterator->status().ToString();
    EXPECT_NE(iterator->status().ToString().find("table 7 at offset"), std::string::npos);
    outcome->reported = true;
  } else if (count != entries.size()) {
    outcome->same = false;
  }
}

void CheckSeeks(const TestTable& table, const std::vector<TestEntry>& entries, Outcome* outcome) {
  auto iterator = table.reader->NewIterator({});
  for (const TestEntry& entry : entries) {
    iterator->Seek(InternalKey(entry.user_key, entry.tag));
    if (!iterator->status().ok()) {
      outcome->reported = true;
    } else if (!iterator->Valid() || iterator->user_key() != Slice(entry.user_key) ||
               iterator->tag() != entry.tag || iterator->value() != Slice(entry.value)) {
      outcome->same = false;
    }
  }
}

void CheckLookups(const TestTable& table, const std::vector<TestEntry>& entries, Outcome* outcome) {
  std::unique_ptr<char[]> section;
  PointIndex index;
  std::unique_ptr<char[]> bloom;
  PointIndexShape shape;
  if (!table.reader->LoadPointIndex(&section, &index).ok()) {
    outcome->reported = true;
    return;
  }
  // A damaged trailer of the point index is reported here too.
  if (!table.reader->LoadBloom(&bloom).ok() || !table.reader->LoadPointIndexShape(&shape).ok()) {
    outcome->reported = true;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i].user_key == entries[i - 1].user_key) continue;
    RecordCandidate candidates[kMaxCandidates];
    const int count = index.Lookup(Hash64(entries[i].user_key), candidates);
    bool answered = false;
    for (int c = 0; c < count; ++c) {
      auto read = table.extent->StartRead(candidates[c].offset, candidates[c].length);
      Slice bytes;
      ASSERT_TRUE(read->Await(&bytes).ok());
      Record record;
      const auto match = table.reader->MatchRecord(candidates[c].offset, bytes, entries[i].user_key,
                                                   kMaxSequenceNumber, true, &record);
      if (match == TableReader::Match::kNo) continue;
      answered = true;
      if (match != TableReader::Match::kYes) {
        outcome->reported = true;
      } else if (record.value != Slice(entries[i].value) || record.tag != entries[i].tag) {
        outcome->same = false;
      }
    }
    if (!answered) outcome->same = false;
  }
}

TEST(TableFaultTest, EveryDamagedByteIsReportedOrHarmless) {
  Random random(TestSeed(41));
  TestTableOptions options;
  options.chunk_size = 512;
  options.capacity = 100 << 20;  // Alignment 8, so there is padding.
  options.range_index_interval = 300;
  const auto entries = SomeEntries();
  MemoryTable intact;
  TableMeta meta;
  ASSERT_TRUE(BuildTable(entries, options, &intact, &meta).ok());

  size_t harmless = 0;
  for (size_t i = 0; i < intact.bytes.size(); ++i) {
    MemoryTable damaged = intact;
    damaged.bytes[i] = static_cast<char>(damaged.bytes[i] ^ 1 << random.Uniform(8));
    for (const BytesPlace place :
         {BytesPlace::kInPlace, BytesPlace::kFetched, BytesPlace::kLoadable}) {
      options.place = place;
      Outcome outcome;
      MemoryExtent end(damaged.bytes);
      TableMeta footer;
      if (!ReadFooter(&end, &footer).ok()) outcome.reported = true;
      TestTable table;
      const Status opened = OpenTable(damaged, meta, options, &table);
      if (!opened.ok()) {
        EXPECT_TRUE(opened.IsCorruption()) << opened.ToString();
        continue;
      }
      CheckScan(table, entries, true, &outcome);
      CheckScan(table, entries, false, &outcome);
      CheckSeeks(table, entries, &outcome);
      CheckLookups(table, entries, &outcome);
      ASSERT_TRUE(outcome.same) << "byte " << i << " of " << intact.bytes.size();
      if (!outcome.reported) {
        ++harmless;
        ASSERT_LT(i, meta.point_index.offset) << "byte " << i << " of a section";
      }
    }
  }
  // Padding: at most 7 bytes behind each record, what is left of each chunk, and before the
  // sections.
  EXPECT_GT(harmless, 0u);
  EXPECT_LT(harmless, intact.bytes.size() / 2);
}

TEST(TableFaultTest, EveryTruncationIsSeen) {
  TestTableOptions options;
  const auto entries = SomeEntries();
  MemoryTable intact;
  TableMeta meta;
  ASSERT_TRUE(BuildTable(entries, options, &intact, &meta).ok());
  for (size_t bytes = 0; bytes < intact.bytes.size(); bytes += 13) {
    MemoryTable cut = intact;
    cut.bytes.resize(bytes);
    TestTable table;
    EXPECT_TRUE(OpenTable(cut, meta, options, &table).IsCorruption());
  }
}

TEST(TableFaultTest, BytesOfAnotherTableAreSeen) {
  // Memory that was given to another table while a reader still knows the old one.
  TestTableOptions options;
  const auto entries = SomeEntries();
  const TestTable old_table = MakeTable(entries, options);
  options.id = 8;
  const TestTable new_table = MakeTable(entries, options);
  *old_table.extent->mutable_bytes() = *new_table.extent->mutable_bytes();
  auto iterator = old_table.reader->NewIterator({});
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsCorruption());
}

TEST(TableFaultTest, EveryFailedReadIsReported) {
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 512;
  options.range_index_interval = 200;
  const auto entries = SomeEntries();
  MemoryTable memory;
  TableMeta meta;
  ASSERT_TRUE(BuildTable(entries, options, &memory, &meta).ok());
  TableIteratorOptions iterator_options;
  iterator_options.readahead_initial = 256;
  iterator_options.readahead_max = 1024;

  for (const bool forward : {true, false}) {
    bool passed = false;
    for (uint64_t n = 0; !passed; ++n) {
      ASSERT_LT(n, 1000u);
      CallCounter counter;
      counter.FailAfter(n);
      TestTable table;
      const Status opened = OpenTable(memory, meta, options, &table, &counter);
      if (!opened.ok()) {
        EXPECT_TRUE(opened.IsUnavailable());
        continue;
      }
      auto iterator = table.reader->NewIterator(iterator_options);
      size_t count = 0;
      for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
           forward ? iterator->Next() : iterator->Prev(), ++count) {
        const TestEntry& expected = entries[forward ? count : entries.size() - 1 - count];
        ASSERT_EQ(iterator->user_key(), Slice(expected.user_key));
        ASSERT_EQ(iterator->value(), Slice(expected.value));
      }
      if (iterator->status().ok()) {
        ASSERT_EQ(count, entries.size());
        passed = true;
        continue;
      }
      EXPECT_TRUE(iterator->status().IsUnavailable());
      // When the node is back, the same iterator works again.
      counter.FailAfter(CallCounter::kNever);
      for (const TestEntry& entry : entries) {
        iterator->Seek(InternalKey(entry.user_key, entry.tag));
        ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
        ASSERT_EQ(iterator->value(), Slice(entry.value));
      }
      iterator->SeekToFirst();
      ASSERT_EQ(ReadAll(iterator.get()), entries);
    }
  }
}

TEST(TableFaultTest, EveryFailedWriteIsReported) {
  TestTableOptions options;
  options.chunk_size = 512;
  const auto entries = SomeEntries();
  bool passed = false;
  for (uint64_t n = 0; !passed; ++n) {
    ASSERT_LT(n, 1000u);
    CallCounter counter;
    counter.FailAfter(n);
    MemoryTable table;
    TableMeta meta;
    const Status status = BuildTable(entries, options, &table, &meta, &counter);
    EXPECT_EQ(status.ok(), table.finished);
    passed = status.ok();
    EXPECT_TRUE(passed || status.IsUnavailable()) << status.ToString();
  }
}

TEST(TableFaultTest, RecordsThatDoNotFitAreRefused) {
  TableBuilderOptions options;
  options.comparator = BytewiseComparator();
  MemoryTable table;
  TableBuilder builder(options, TableMeta(),
                       std::make_unique<MemoryExtentWriter>(&table, 1024, 4000));
  EXPECT_FALSE(builder.Fits(10, 4000));
  EXPECT_TRUE(builder.Add("k", PackTag(1, ValueType::kValue), std::string(4000, 'v')).IsNoSpace());
}

}  // namespace
}  // namespace nacre
