// Goal: a table answers exactly what was written into it, in place and through reads, in both
// directions, for every shape of keys and values.
// Method: tables of random entries (seeded) against a sorted vector; every move of an iterator is
// compared, and every key is looked up through the point index.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "table/table_reader.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/test_table.h"
#include "util/hash.h"
#include "util/random.h"

namespace nacre {
namespace {

/// How a random table's entries look.
struct Shape {
  size_t entries = 500;
  int key_bits = 5;         ///< Keys are up to 1 << key_bits bytes.
  int value_bits = 9;       ///< Values are up to 1 << value_bits bytes.
  uint64_t alphabet = 256;  ///< A small one makes shared prefixes and equal keys.
  uint64_t versions = 3;    ///< The most versions of one user key.
};

std::vector<TestEntry> RandomEntries(Random* random, const Shape& shape,
                                     const InternalKeyComparator& comparator) {
  std::map<std::string, bool> seen;
  std::vector<TestEntry> entries;
  uint64_t sequence = 1 + random->Uniform(1000);
  while (entries.size() < shape.entries) {
    const std::string key = SkewedBytes(random, shape.key_bits, shape.alphabet);
    if (!seen.emplace(key, true).second) continue;
    for (uint64_t version = 1 + random->Uniform(shape.versions); version > 0; --version) {
      const bool deletion = random->OneIn(5);
      sequence += 1 + random->Uniform(3);
      entries.push_back({key,
                         PackTag(sequence, deletion ? ValueType::kDeletion : ValueType::kValue),
                         deletion ? "" : SkewedBytes(random, shape.value_bits, 256)});
    }
  }
  SortEntries(comparator, &entries);
  return entries;
}

/// Random moves of a fresh iterator; `at` is where the model stands (size() or more: not valid).
/// The memory of `extent`, if it is not null, ends now and then, of which the iterator must show
/// nothing.
void WalkAtRandom(Random* random, const InternalKeyComparator& comparator,
                  const std::vector<TestEntry>& entries, InternalIterator* iterator, int moves,
                  MemoryExtent* extent = nullptr) {
  size_t at = entries.size();
  for (int move = 0; move < moves; ++move) {
    if (extent != nullptr && random->OneIn(8)) {
      extent->EndMemory(/*refusals=*/random->Uniform(12));
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, entries, at));
    }
    const uint64_t choice = random->Uniform(20);
    if (choice == 0) {
      iterator->SeekToFirst();
      at = 0;
    } else if (choice == 1) {
      iterator->SeekToLast();
      at = entries.size() - 1;
    } else if (choice <= 5) {
      // To an entry, or beside one.
      TestEntry target = entries[random->Uniform(entries.size())];
      if (random->OneIn(3)) target.tag = PackTag(random->Uniform(2000), kValueTypeForSeek);
      if (random->OneIn(3)) target.user_key = SkewedBytes(random, 5, 256);
      if (random->OneIn(6) && !target.user_key.empty()) target.user_key.pop_back();
      if (random->OneIn(6)) target.user_key.push_back('\0');
      const auto before = [&](const TestEntry& a, const TestEntry& b) {
        const int r = comparator.CompareUserKeys(a.user_key, b.user_key);
        return r != 0 ? r < 0 : a.tag > b.tag;
      };
      const std::string key = InternalKey(target.user_key, target.tag);
      if (random->OneIn(2)) {
        const std::string bound = SkewedBytes(random, 5, 256);
        const Slice upper(bound);
        if (random->OneIn(2)) iterator->PrepareSeek(key, random->OneIn(2) ? &upper : nullptr);
        iterator->Seek(key);
        at = static_cast<size_t>(std::lower_bound(entries.begin(), entries.end(), target, before) -
                                 entries.begin());
      } else {
        iterator->SeekForPrev(key);
        at = static_cast<size_t>(std::upper_bound(entries.begin(), entries.end(), target, before) -
                                 entries.begin()) -
             1;
      }
    } else {
      // Runs in one direction are what prefetching reacts to.
      const bool forward = random->OneIn(2);
      for (uint64_t steps = 1 + random->Skewed(6); steps > 0 && at < entries.size(); --steps) {
        if (forward) {
          iterator->Next();
          ++at;
        } else {
          iterator->Prev();
          --at;
        }
        ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, entries, at));
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, entries, at));
  }
}

TableIteratorOptions SmallReads(Random* random) {
  TableIteratorOptions options;
  options.readahead_initial = 1 + random->Skewed(12);
  options.readahead_max = options.readahead_initial << random->Uniform(6);
  options.reads_in_flight = 1 + static_cast<int>(random->Uniform(4));
  options.verify_checksums = random->OneIn(2);
  options.readahead_parallel = options.readahead_initial << random->Uniform(4);
  options.hand_over_reads = random->OneIn(2);
  return options;
}

/// The record at a candidate's place as it is loaded from where it lies, if it can be: the answer
/// is that of a read, and is `match` and `record`.
void LoadAndCompare(const TestTable& table, const RecordCandidate& candidate, const Slice& user_key,
                    SequenceNumber snapshot, TableReader::Match match, const Record& record) {
  const LoadableBytes there = table.extent->Loadable(candidate.offset);
  if (there.data == nullptr) return;
  const Slice bytes(there.data + (candidate.offset - there.begin),
                    std::min<uint64_t>(candidate.length, there.end - candidate.offset));
  PinnableSlice value;
  std::unique_ptr<char[]> copy;
  Record loaded;
  const auto load = [&](uint64_t offset) {
    return table.reader->LoadRecord(offset, bytes, user_key, snapshot, /*verify_checksum=*/true,
                                    &value, &copy, &loaded);
  };
  const auto loaded_match = load(candidate.offset);
  if (bytes.size() < candidate.length && loaded_match == TableReader::Match::kTruncated) return;
  ASSERT_EQ(loaded_match, match);
  if (match == TableReader::Match::kYes) {
    ASSERT_EQ(loaded.user_key, record.user_key);
    ASSERT_EQ(loaded.tag, record.tag);
    ASSERT_EQ(loaded.value, record.value);
    ASSERT_EQ(loaded.encoded_bytes, record.encoded_bytes);
  }
  ASSERT_EQ(load(candidate.offset + 4096), TableReader::Match::kCorrupt);
}

/// Every key through the point index; the record must be the newest version.
void LookUpAll(const TestTable& table, const std::vector<TestEntry>& entries) {
  std::unique_ptr<char[]> section;
  PointIndex index;
  const Status loaded = table.reader->LoadPointIndex(&section, &index);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i].user_key == entries[i - 1].user_key) continue;
    RecordCandidate candidates[kMaxCandidates];
    const int count = index.Lookup(Hash64(entries[i].user_key), candidates);
    ASSERT_LT(count, kTooManyCandidates);
    bool found = false;
    for (int c = 0; c < count && !found; ++c) {
      auto read = table.extent->StartRead(candidates[c].offset, candidates[c].length);
      Slice bytes;
      ASSERT_TRUE(read->Await(&bytes).ok());
      Record record;
      const auto match = table.reader->MatchRecord(candidates[c].offset, bytes, entries[i].user_key,
                                                   kMaxSequenceNumber, true, &record);
      ASSERT_NO_FATAL_FAILURE(LoadAndCompare(table, candidates[c], entries[i].user_key,
                                             kMaxSequenceNumber, match, record));
      if (match == TableReader::Match::kNo) continue;
      ASSERT_EQ(match, TableReader::Match::kYes);
      ASSERT_EQ(record.tag, entries[i].tag);
      ASSERT_EQ(record.value, Slice(entries[i].value));
      const SequenceNumber sequence = TagSequence(record.tag);
      found = true;
      // What lies elsewhere in the table is not here.
      ASSERT_EQ(table.reader->MatchRecord(candidates[c].offset + 4096, bytes, entries[i].user_key,
                                          kMaxSequenceNumber, true, &record),
                TableReader::Match::kCorrupt);
      if (sequence == 0) continue;
      ASSERT_EQ(table.reader->MatchRecord(candidates[c].offset, bytes, entries[i].user_key,
                                          sequence - 1, true, &record),
                TableReader::Match::kOlder);
      ASSERT_NO_FATAL_FAILURE(LoadAndCompare(table, candidates[c], entries[i].user_key,
                                             sequence - 1, TableReader::Match::kOlder, record));
    }
    ASSERT_TRUE(found) << "entry " << i;
  }
}

class TableTest : public ::testing::TestWithParam<BytesPlace> {};
std::string NameOf(const ::testing::TestParamInfo<BytesPlace>& place) {
  constexpr const char* kNames[] = {"InPlace", "Fetched", "Loadable", "LoadableByChunk"};
  return kNames[static_cast<int>(place.param)];
}

INSTANTIATE_TEST_SUITE_P(Places, TableTest,
                         ::testing::Values(BytesPlace::kInPlace, BytesPlace::kFetched,
                                           BytesPlace::kLoadable, BytesPlace::kLoadableByChunk),
                         NameOf);

void CheckTable(Random* random, const std::vector<TestEntry>& entries,
                const TestTableOptions& options) {
  const TestTable table = MakeTable(entries, options);
  ASSERT_NE(table.reader, nullptr);
  const InternalKeyComparator comparator(options.comparator);
  auto iterator = table.reader->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_EQ(ReadAll(iterator.get()), entries);
  ASSERT_NO_FATAL_FAILURE(LookUpAll(table, entries));
  auto walker = table.reader->NewIterator(SmallReads(random));
  WalkAtRandom(random, comparator, entries, walker.get(), 100, table.extent.get());
}

TEST_P(TableTest, RandomShapes) {
  Random random(TestSeed(301));
  static const BackwardsComparator backwards;
  const Comparator* comparators[] = {BytewiseComparator(), ReverseBytewiseComparator(), &backwards};
  for (size_t round = 0; round < Scaled(300); ++round) {
    Shape shape;
    shape.entries = 1 + random.Skewed(10);
    shape.key_bits = 1 + static_cast<int>(random.Uniform(9));
    shape.value_bits = static_cast<int>(random.Uniform(14));
    shape.alphabet = random.OneIn(2) ? 256 : 3;
    shape.versions = 1 + random.Skewed(6);
    if (shape.key_bits < 4) shape.entries = std::min<size_t>(shape.entries, 4);
    TestTableOptions options;
    options.place = GetParam();
    options.comparator = comparators[random.Uniform(3)];
    options.chunk_size = size_t{256} << random.Uniform(10);
    options.range_index_interval = size_t{1} << random.Uniform(13);
    options.capacity = uint64_t{16} << (20 + random.Uniform(8));  // Alignment 1 to 128.
    const auto entries = RandomEntries(&random, shape, InternalKeyComparator(options.comparator));
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(CheckTable(&random, entries, options));
    if (HasFailure()) return;
  }
}

TEST_P(TableTest, SmallestTables) {
  Random random(TestSeed(302));
  TestTableOptions options;
  options.place = GetParam();
  const std::vector<std::vector<TestEntry>> tables = {
      {PutEntry("", 0, "")},
      {PutEntry("k", 1, "")},
      {PutEntry(std::string(3, '\0'), kMaxSequenceNumber, std::string(2, '\xff'))},
      {{"only a tombstone", PackTag(9, ValueType::kDeletion), ""}},
      {{"", PackTag(9, ValueType::kDeletion), ""},
       PutEntry("", 8, "older"),
       PutEntry("\xff\xff", 1, "last")},
  };
  for (const auto& entries : tables) ASSERT_NO_FATAL_FAILURE(CheckTable(&random, entries, options));
}

TEST_P(TableTest, ValuesLargerThanAChunk) {
  // Sizes around the chunk's, so that records end at, just before and just behind its end.
  Random random(TestSeed(303));
  TestTableOptions options;
  options.place = GetParam();
  options.chunk_size = 1024;
  for (size_t round = 0; round < Scaled(60); ++round) {
    options.capacity = uint64_t{16} << (20 + random.Uniform(5));
    std::vector<TestEntry> entries;
    for (uint64_t i = 0; i < 1 + random.Uniform(30); ++i) {
      const size_t bytes =
          random.OneIn(2) ? 1024 * random.Uniform(4) + random.Uniform(40) : random.Uniform(100);
      std::string key(2, static_cast<char>('a' + i));
      entries.push_back(PutEntry(key, 100 + i, std::string(bytes, static_cast<char>(i))));
    }
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(CheckTable(&random, entries, options));
  }
}

TEST_P(TableTest, HugeValuesAmongSmallOnes) {
  TestTableOptions options;
  options.place = GetParam();
  options.chunk_size = 256 << 10;
  std::vector<TestEntry> entries;
  constexpr size_t kHuge = 300 << 10;
  for (size_t i = 0; i < 500; ++i) {
    size_t bytes = 50 + i;
    if (i % 41 == 40) bytes = kHuge + i;
    if (i == 300) bytes = 20 << 20;
    entries.push_back(PutEntry(std::to_string(1000 + i), i + 1, std::string(bytes, 'v')));
  }
  const TestTable table = MakeTable(entries, options);
  ASSERT_NO_FATAL_FAILURE(LookUpAll(table, entries));
  auto iterator = table.reader->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_EQ(ReadAll(iterator.get()), entries);

  // Neither point reads nor seeks of the small ones fetch a huge one.
  std::unique_ptr<char[]> section;
  PointIndex index;
  ASSERT_TRUE(table.reader->LoadPointIndex(&section, &index).ok());
  for (const TestEntry& entry : entries) {
    if (entry.value.size() >= kHuge) continue;
    RecordCandidate candidates[kMaxCandidates];
    const int count = index.Lookup(Hash64(entry.user_key), candidates);
    for (int c = 0; c < count; ++c) {
      EXPECT_TRUE(candidates[c].length < 700 || candidates[c].length > kHuge);
    }
    if (table.extent->InPlace() != nullptr) continue;
    auto seeker = table.reader->NewIterator({});
    const uint64_t bytes_before = table.extent->bytes_started();
    seeker->Seek(InternalKey(entry.user_key, entry.tag));
    ASSERT_TRUE(seeker->Valid());
    EXPECT_LT(table.extent->bytes_started() - bytes_before, 10'000u) << entry.user_key;
  }
}

TEST_P(TableTest, ManyVersionsOfOneKey) {
  // Seeks must land on the right version, though all boundaries of the range index are one key.
  Random random(TestSeed(304));
  TestTableOptions options;
  options.place = GetParam();
  std::vector<TestEntry> entries = {PutEntry("before", 5, "x")};
  for (SequenceNumber sequence = 20'000; sequence > 0; sequence -= 2) {
    entries.push_back(PutEntry("hot", sequence, std::string(sequence % 97, 'v')));
  }
  entries.push_back(PutEntry("hotter", 7, "y"));
  const TestTable table = MakeTable(entries, options);
  auto iterator = table.reader->NewIterator({});
  for (size_t round = 0; round < Scaled(2000); ++round) {
    const SequenceNumber sequence = random.Uniform(20'003);
    const uint64_t reads_before = table.extent->reads_started();
    iterator->Seek(InternalKey("hot", PackTag(sequence, kValueTypeForSeek)));
    ASSERT_TRUE(iterator->Valid());
    const SequenceNumber visible = sequence >= 20'000 ? 20'000 : sequence / 2 * 2;
    if (visible == 0) {
      ASSERT_EQ(iterator->user_key(), Slice("hotter"));
    } else {
      ASSERT_EQ(iterator->user_key(), Slice("hot"));
      ASSERT_EQ(TagSequence(iterator->tag()), visible);
      ASSERT_LE(table.extent->reads_started() - reads_before, 1u);
    }
  }
  auto walker = table.reader->NewIterator({});
  WalkAtRandom(&random, InternalKeyComparator(options.comparator), entries, walker.get(), 300,
               table.extent.get());
}

TEST(TableThreadsTest, ManyThreadsShareAReader) {
  Random random(TestSeed(308));
  Shape shape;
  shape.entries = 2000;
  const InternalKeyComparator comparator(BytewiseComparator());
  const auto entries = RandomEntries(&random, shape, comparator);
  const TestTable table = MakeTable(entries, {});
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      Random mine(seed);
      auto iterator = table.reader->NewIterator({});
      WalkAtRandom(&mine, comparator, entries, iterator.get(), static_cast<int>(Scaled(500)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TableReadsTest, ReadAheadOfSmallRecordsStopsBeforeAHugeOne) {
  std::vector<TestEntry> entries;
  for (int i = 1000; i < 1200; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(i == 1100 ? 5 << 20 : 400, 'v')));
  }
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 16 << 10;
  const TestTable table = MakeTable(entries, options);
  for (const bool forward : {true, false}) {
    const uint64_t bytes = table.extent->bytes_started();
    auto iterator = table.reader->NewIterator({});
    forward ? iterator->SeekToFirst() : iterator->SeekToLast();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_LT(table.extent->bytes_started() - bytes, 100u << 10) << forward;
  }
}

TEST(TableOpenTest, AnotherComparatorIsRefused) {
  const TestTableOptions options;
  MemoryTable table;
  TableMeta meta;
  ASSERT_TRUE(BuildTable({PutEntry("k", 1, "v")}, options, &table, &meta).ok());
  TestTableOptions other;
  other.comparator = ReverseBytewiseComparator();
  TestTable opened;
  const Status status = OpenTable(table, meta, other, &opened);
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_NE(status.ToString().find("table 7"), std::string::npos);
}

TEST(TableOpenTest, OpensFromItsEndAlone) {
  const TestTableOptions options;
  MemoryTable table;
  TableMeta meta;
  ASSERT_TRUE(
      BuildTable({PutEntry("a", 1, "v"), PutEntry("b", 2, "w")}, options, &table, &meta).ok());
  MemoryExtent extent(table.bytes);
  TableMeta found;
  ASSERT_TRUE(ReadFooter(&extent, &found).ok());
  TestTable opened;
  ASSERT_TRUE(OpenTable(table, found, options, &opened).ok());
  auto iterator = opened.reader->NewIterator({});
  iterator->SeekToFirst();
  EXPECT_EQ(ReadAll(iterator.get()).size(), 2u);
  Slice head = table.head;
  ASSERT_TRUE(DecodeTableMeta(&head, &found).ok());
  EXPECT_EQ(found.id, meta.id);
}

TEST(TableOpenTest, ApproximateOffsetsGrowWithKeys) {
  std::vector<TestEntry> entries;
  for (int i = 1000; i < 3000; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(100, 'v')));
  }
  const TestTable table = MakeTable(entries, {});
  const auto offset = [&](const std::string& key) {
    uint64_t at = 0;
    EXPECT_TRUE(IsOk(table.reader->ApproximateOffset(
        InternalKey(key, PackTag(kMaxSequenceNumber, kValueTypeForSeek)), &at)));
    return at;
  };
  EXPECT_EQ(offset("0"), 0u);
  EXPECT_EQ(offset("9"), table.meta->size);
  const auto middle = static_cast<double>(offset("2000"));
  EXPECT_NEAR(middle / static_cast<double>(table.meta->records.length), 0.5, 0.02);
}

TEST(TableOpenTest, CutKeysPartTheRecordsEvenly) {
  std::vector<TestEntry> entries;
  for (int i = 1000; i < 9000; ++i) {
    entries.push_back(PutEntry(std::to_string(i), 1, std::string(100, 'v')));
  }
  const TestTable table = MakeTable(entries, {});
  const uint64_t bytes = table.meta->records.length;
  std::vector<std::string> keys{"what was there"};
  ASSERT_TRUE(IsOk(table.reader->CutKeys(bytes, &keys)));
  EXPECT_TRUE(keys.empty());
  for (const uint64_t parts : {2u, 3u, 7u}) {
    ASSERT_TRUE(IsOk(table.reader->CutKeys(bytes / parts + 1, &keys)));
    ASSERT_EQ(keys.size(), parts - 1);
    for (size_t i = 0; i < keys.size(); ++i) {
      uint64_t at = 0;
      ASSERT_TRUE(IsOk(table.reader->ApproximateOffset(
          InternalKey(keys[i], PackTag(kMaxSequenceNumber, kValueTypeForSeek)), &at)));
      EXPECT_NEAR(static_cast<double>(at) / static_cast<double>(bytes),
                  static_cast<double>(i + 1) / static_cast<double>(parts), 0.06);
    }
  }
  // No more than there are in the index, and each once.
  ASSERT_TRUE(IsOk(table.reader->CutKeys(64, &keys)));
  EXPECT_GT(keys.size(), 10u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(TableOpenTest, ShapeComesFromTheTrailerAlone) {
  Random random(TestSeed(307));
  const auto entries = RandomEntries(&random, Shape(), InternalKeyComparator(BytewiseComparator()));
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  const TestTable table = MakeTable(entries, options);
  const uint64_t bytes = table.extent->bytes_started();
  PointIndexShape shape;
  ASSERT_TRUE(table.reader->LoadPointIndexShape(&shape).ok());
  EXPECT_EQ(table.extent->bytes_started() - bytes, PointIndexShape::kTrailerBytes);
  EXPECT_EQ(shape.entries, table.meta->user_keys);
  EXPECT_EQ(table.meta->point_index.offset % kPointIndexBucketBytes, 0u);

  std::unique_ptr<char[]> section;
  ASSERT_TRUE(table.reader->LoadBloom(&section).ok());
  const BloomFilter bloom(Slice(section.get(), table.meta->bloom.length));
  for (const TestEntry& entry : entries) EXPECT_TRUE(bloom.MayContain(Hash64(entry.user_key)));
}

}  // namespace
}  // namespace nacre
