// Goal: a table answers exactly what was written into it, in place and through reads, in both
// directions, for every shape of keys and values.
// Method: tables of random entries (seeded) against a sorted vector; every move of an iterator is
// compared, and every key is looked up through the point index.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "table/table_reader.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/test_table.h"
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
  uint64_t versions = 3;    ///< Of one user key, up to.
};

std::string RandomBytes(Random* random, int max_bits, uint64_t alphabet) {
  std::string bytes(random->Skewed(max_bits), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Uniform(alphabet));
  return bytes;
}

std::vector<TestEntry> RandomEntries(Random* random, const Shape& shape,
                                     const InternalKeyComparator& comparator) {
  std::map<std::string, bool> seen;
  std::vector<TestEntry> entries;
  uint64_t sequence = 1 + random->Uniform(1000);
  while (entries.size() < shape.entries) {
    const std::string key = RandomBytes(random, shape.key_bits, shape.alphabet);
    if (!seen.emplace(key, true).second) continue;
    for (uint64_t version = 1 + random->Uniform(shape.versions); version > 0; --version) {
      const bool deletion = random->OneIn(5);
      sequence += 1 + random->Uniform(3);
      entries.push_back({key,
                         PackTag(sequence, deletion ? ValueType::kDeletion : ValueType::kValue),
                         deletion ? "" : RandomBytes(random, shape.value_bits, 256)});
    }
  }
  SortEntries(comparator, &entries);
  return entries;
}

void ExpectAt(const InternalIterator& iterator, const std::vector<TestEntry>& entries, size_t i) {
  ASSERT_TRUE(iterator.status().ok()) << iterator.status().ToString();
  ASSERT_EQ(iterator.Valid(), i < entries.size());
  if (!iterator.Valid()) return;
  ASSERT_EQ(iterator.user_key(), Slice(entries[i].user_key));
  ASSERT_EQ(iterator.tag(), entries[i].tag);
  ASSERT_EQ(iterator.value(), Slice(entries[i].value));
}

/// Random moves; `at` is where the model stands (size() or more: not valid).
void WalkAtRandom(Random* random, const InternalKeyComparator& comparator,
                  const std::vector<TestEntry>& entries, InternalIterator* iterator, int moves) {
  size_t at = entries.size();
  for (int move = 0; move < moves; ++move) {
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
      if (random->OneIn(3)) target.user_key = RandomBytes(random, 5, 256);
      if (random->OneIn(6) && !target.user_key.empty()) target.user_key.pop_back();
      if (random->OneIn(6)) target.user_key.push_back('\0');
      const auto before = [&](const TestEntry& a, const TestEntry& b) {
        const int r = comparator.CompareUserKeys(a.user_key, b.user_key);
        return r != 0 ? r < 0 : a.tag > b.tag;
      };
      const std::string key = InternalKey(target.user_key, target.tag);
      if (random->OneIn(2)) {
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
  return options;
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
      const auto match =
          table.reader->MatchRecord(bytes, entries[i].user_key, kMaxSequenceNumber, true, &record);
      if (match == TableReader::Match::kNo) continue;
      ASSERT_EQ(match, TableReader::Match::kYes);
      ASSERT_EQ(record.tag, entries[i].tag);
      ASSERT_EQ(record.value, Slice(entries[i].value));
      const SequenceNumber sequence = TagSequence(record.tag);
      ASSERT_EQ(table.reader->MatchRecord(bytes, entries[i].user_key, sequence - 1, true, &record),
                TableReader::Match::kOlder);
      found = true;
    }
    ASSERT_TRUE(found) << "entry " << i;
  }
}

class TableTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Places, TableTest, ::testing::Bool(),
                         [](const auto& place) { return place.param ? "InPlace" : "Fetched"; });

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
  WalkAtRandom(random, comparator, entries, walker.get(), 100);
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
    options.in_place = GetParam();
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

}  // namespace
}  // namespace nacre
