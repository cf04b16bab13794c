// Goal: a merge changes nothing that any snapshot sees, keeps nothing that none sees, and puts it
// into tables of the right size; failures come back as they are.
// Method: random histories of versions, some in the input, the older ones of some keys in a level
// below, under random snapshots, `deeper` ranges and bounds; what every snapshot sees is computed
// by brute force before and after.

#include "table/merge/merge_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Takes the kernel's outputs.
struct Outputs {
  size_t chunk_size = 256;
  uint64_t capacity = 16 << 20;
  std::deque<MemoryTable> tables;
  std::vector<TableMeta> metas;
  MergeStats stats;

  Status Merge(InternalIterator* input, const MergeOptions& options) {
    return MergeTables(
        input, options,
        [this](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
          identity->id = 100 + tables.size();
          tables.emplace_back();
          *writer = std::make_unique<MemoryExtentWriter>(&tables.back(), chunk_size, capacity);
          return Status::OK();
        },
        &metas, &stats);
  }
  std::vector<TestEntry> Entries(size_t table, const Comparator* comparator) const {
    TestTableOptions options;
    options.comparator = comparator;
    TestTable opened;
    const Status status = OpenTable(tables[table], metas[table], options, &opened);
    EXPECT_TRUE(status.ok()) << status.ToString();
    auto iterator = opened.reader->NewIterator({});
    iterator->SeekToFirst();
    return ReadAll(iterator.get());
  }
  std::vector<TestEntry> AllEntries(const Comparator* comparator) const {
    std::vector<TestEntry> all;
    for (size_t i = 0; i < metas.size(); ++i) {
      for (TestEntry& entry : Entries(i, comparator)) all.push_back(std::move(entry));
    }
    return all;
  }
};

/// What a reader at `snapshot` sees: the newest version of each key that is not newer.
std::map<std::string, std::string> Visible(const std::vector<TestEntry>& above,
                                           const std::vector<TestEntry>& below,
                                           SequenceNumber snapshot) {
  std::map<std::string, TestEntry> newest;
  // A level above hides one below, whatever the sequences say: so do reads.
  for (const auto* level : {&below, &above}) {
    std::map<std::string, TestEntry> in_level;
    for (const TestEntry& entry : *level) {
      if (TagSequence(entry.tag) > snapshot) continue;
      const auto found = in_level.find(entry.user_key);
      if (found == in_level.end() || found->second.tag < entry.tag) {
        in_level[entry.user_key] = entry;
      }
    }
    for (const auto& [key, entry] : in_level) newest[key] = entry;
  }
  std::map<std::string, std::string> visible;
  for (const auto& [key, entry] : newest) {
    if (TagType(entry.tag) == ValueType::kValue) visible[key] = entry.value;
  }
  return visible;
}

struct Scenario {
  std::vector<TestEntry> input;  ///< Sorted.
  std::vector<TestEntry> below;
  MergeOptions options;
};

bool InDeeper(const InternalKeyComparator& comparator, const MergeOptions& options,
              const std::string& key) {
  return std::any_of(options.deeper.begin(), options.deeper.end(), [&](const KeyRange& range) {
    return comparator.CompareUserKeys(range.smallest, key) <= 0 &&
           comparator.CompareUserKeys(key, range.largest) <= 0;
  });
}

bool InBounds(const InternalKeyComparator& comparator, const MergeOptions& options,
              const std::string& key) {
  return (!options.begin || comparator.CompareUserKeys(*options.begin, key) <= 0) &&
         (!options.end || comparator.CompareUserKeys(key, *options.end) < 0);
}

std::string RandomKey(Random* random) {
  std::string key = "k";
  for (uint64_t n = random->Uniform(4); n > 0; --n) {
    key.push_back(static_cast<char>('a' + random->Uniform(5)));
  }
  return key;
}

Scenario RandomScenario(Random* random, const InternalKeyComparator& comparator) {
  Scenario scenario;
  scenario.options.comparator = comparator.user_comparator();

  // Disjoint ascending ranges from sorted random keys, taken in pairs.
  std::set<std::string> ends;
  for (uint64_t n = 2 * random->Uniform(5); ends.size() < n;) ends.insert(RandomKey(random));
  std::vector<std::string> sorted(ends.begin(), ends.end());
  std::sort(sorted.begin(), sorted.end(), [&](const std::string& a, const std::string& b) {
    return comparator.CompareUserKeys(a, b) < 0;
  });
  for (size_t i = 0; i + 1 < sorted.size(); i += 2) {
    scenario.options.deeper.push_back({sorted[i], random->OneIn(4) ? sorted[i] : sorted[i + 1]});
  }

  SequenceNumber sequence = 0;
  const auto random_entry = [&](const std::string& key) {
    const bool deletion = random->OneIn(3);
    ++sequence;
    return TestEntry{
        key, PackTag(sequence, deletion ? ValueType::kDeletion : ValueType::kValue),
        deletion ? "" : "v" + std::to_string(sequence) + std::string(random->Skewed(7), 'x')};
  };
  // Below there is only what `deeper` admits.
  std::set<std::string> seen_below;
  for (uint64_t n = random->Skewed(7); n > 0; --n) {
    const std::string key = RandomKey(random);
    if (InDeeper(comparator, scenario.options, key)) scenario.below.push_back(random_entry(key));
  }
  for (uint64_t n = 1 + random->Skewed(9); n > 0; --n) {
    scenario.input.push_back(random_entry(RandomKey(random)));
  }
  SortEntries(comparator, &scenario.input);

  std::set<SequenceNumber> snapshots;
  for (uint64_t n = random->Uniform(5); n > 0; --n) snapshots.insert(random->Uniform(sequence + 2));
  scenario.options.snapshots.assign(snapshots.begin(), snapshots.end());
  if (random->OneIn(3)) scenario.options.begin = RandomKey(random);
  if (random->OneIn(3)) scenario.options.end = RandomKey(random);
  scenario.options.target_table_bytes = random->OneIn(2) ? 500 + random->Uniform(2000) : 1 << 20;
  return scenario;
}

size_t StripeOf(const MergeOptions& options, SequenceNumber sequence) {
  size_t stripe = 0;
  for (const SequenceNumber snapshot : options.snapshots) stripe += snapshot < sequence;
  return stripe;
}

/// Nothing is kept that could go.
void ExpectMinimal(const InternalKeyComparator& comparator, const Scenario& scenario,
                   const std::vector<TestEntry>& output) {
  for (size_t i = 0; i < output.size(); ++i) {
    const TestEntry& entry = output[i];
    const size_t stripe = StripeOf(scenario.options, TagSequence(entry.tag));
    if (i > 0 && output[i - 1].user_key == entry.user_key) {
      EXPECT_NE(StripeOf(scenario.options, TagSequence(output[i - 1].tag)), stripe);
    }
    if (stripe > 0 || InDeeper(comparator, scenario.options, entry.user_key)) continue;
    EXPECT_NE(TagType(entry.tag), ValueType::kDeletion) << entry.user_key;
    EXPECT_EQ(TagSequence(entry.tag), 0u) << entry.user_key;
  }
}

void ExpectSortedTables(const InternalKeyComparator& comparator, const Scenario& scenario,
                        const Outputs& outputs) {
  const Comparator* const user = scenario.options.comparator;
  for (size_t i = 0; i < outputs.metas.size(); ++i) {
    const TableMeta& meta = outputs.metas[i];
    const auto entries = outputs.Entries(i, user);
    ASSERT_EQ(meta.entries, entries.size());
    ASSERT_EQ(meta.smallest, InternalKey(entries.front().user_key, entries.front().tag));
    ASSERT_EQ(meta.largest, InternalKey(entries.back().user_key, entries.back().tag));
    uint64_t tombstones = 0;
    SequenceNumber smallest = kMaxSequenceNumber;
    SequenceNumber largest = 0;
    for (const TestEntry& entry : entries) {
      tombstones += TagType(entry.tag) == ValueType::kDeletion;
      smallest = std::min(smallest, TagSequence(entry.tag));
      largest = std::max(largest, TagSequence(entry.tag));
    }
    EXPECT_EQ(meta.tombstones, tombstones);
    EXPECT_EQ(meta.smallest_sequence, smallest);
    EXPECT_EQ(meta.largest_sequence, largest);
    if (i == 0) continue;
    // No user key in two tables, and a table is cut only when it has its size.
    EXPECT_LT(comparator.CompareUserKeys(outputs.metas[i - 1].largest_user_key(),
                                         meta.smallest_user_key()),
              0);
    EXPECT_GE(outputs.metas[i - 1].size + 1000, scenario.options.target_table_bytes);
  }
}

TEST(MergeKernelTest, NoSnapshotSeesADifference) {
  Random random(TestSeed(61));
  static const BackwardsComparator backwards;
  const Comparator* const comparators[] = {BytewiseComparator(), ReverseBytewiseComparator(),
                                           &backwards};
  for (size_t round = 0; round < Scaled(1500); ++round) {
    const InternalKeyComparator comparator(comparators[random.Uniform(3)]);
    const Scenario scenario = RandomScenario(&random, comparator);
    SCOPED_TRACE("round " + std::to_string(round));

    Outputs outputs;
    VectorIterator input(comparator, scenario.input);
    const Status merged = outputs.Merge(&input, scenario.options);
    ASSERT_TRUE(merged.ok()) << merged.ToString();
    const auto output = outputs.AllEntries(scenario.options.comparator);

    std::vector<TestEntry> considered;
    for (const TestEntry& entry : scenario.input) {
      if (InBounds(comparator, scenario.options, entry.user_key)) considered.push_back(entry);
    }
    std::vector<SequenceNumber> snapshots = scenario.options.snapshots;
    snapshots.push_back(kMaxSequenceNumber);
    for (const SequenceNumber snapshot : snapshots) {
      ASSERT_EQ(Visible(output, scenario.below, snapshot),
                Visible(considered, scenario.below, snapshot))
          << "at snapshot " << snapshot;
    }
    for (const TestEntry& entry : output) {
      ASSERT_TRUE(InBounds(comparator, scenario.options, entry.user_key));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectMinimal(comparator, scenario, output));
    ASSERT_NO_FATAL_FAILURE(ExpectSortedTables(comparator, scenario, outputs));

    const MergeStats& stats = outputs.stats;
    EXPECT_EQ(stats.entries_read, considered.size());
    EXPECT_EQ(stats.entries_written, output.size());
    EXPECT_EQ(stats.entries_read,
              stats.entries_written + stats.entries_shadowed + stats.tombstones_dropped);
    uint64_t written = 0;
    for (const TableMeta& meta : outputs.metas) written += meta.size;
    EXPECT_EQ(stats.bytes_written, written);
    if (HasFailure()) return;
  }
}

MergeOptions BytewiseOptions() {
  MergeOptions options;
  options.comparator = BytewiseComparator();
  return options;
}

const InternalKeyComparator kBytewise(BytewiseComparator());

TEST(MergeKernelTest, TombstonesDisappearAtTheBottom) {
  std::vector<TestEntry> entries;
  for (int i = 100; i < 200; ++i) {
    entries.push_back({std::to_string(i), PackTag(200, ValueType::kDeletion), ""});
    entries.push_back({std::to_string(i), PackTag(100, ValueType::kValue), "old"});
  }
  VectorIterator input(kBytewise, entries);
  Outputs outputs;
  ASSERT_TRUE(outputs.Merge(&input, BytewiseOptions()).ok());
  EXPECT_TRUE(outputs.tables.empty()) << "a table was begun for nothing";
  EXPECT_EQ(outputs.stats.tombstones_dropped, 100u);
  EXPECT_EQ(outputs.stats.entries_shadowed, 100u);

  // A snapshot between the two keeps both.
  MergeOptions options = BytewiseOptions();
  options.snapshots = {150};
  VectorIterator again(kBytewise, entries);
  Outputs kept;
  ASSERT_TRUE(kept.Merge(&again, options).ok());
  EXPECT_EQ(kept.stats.entries_written, 200u);
}

TEST(MergeKernelTest, OneKeyLargerThanATableIsContinued) {
  MergeOptions options = BytewiseOptions();
  std::vector<TestEntry> entries;
  for (SequenceNumber sequence = 200; sequence > 0; --sequence) {
    entries.push_back({"hot", PackTag(sequence, ValueType::kValue), std::string(100, 'v')});
    options.snapshots.push_back(201 - sequence);
  }
  options.target_table_bytes = 1000;
  VectorIterator input(kBytewise, entries);
  Outputs outputs;
  outputs.capacity = 8000;
  ASSERT_TRUE(outputs.Merge(&input, options).ok());
  EXPECT_GT(outputs.metas.size(), 2u);
  for (const TableMeta& meta : outputs.metas) EXPECT_LE(meta.size, outputs.capacity);
  auto output = outputs.AllEntries(BytewiseComparator());
  ASSERT_EQ(output.size(), entries.size());
  // The oldest is seen by all snapshots.
  EXPECT_EQ(output.back().tag, PackTag(0, ValueType::kValue));
  output.back().tag = entries.back().tag;
  EXPECT_EQ(output, entries);
}

TEST(MergeKernelTest, RecordLargerThanATableIsNoSpace) {
  VectorIterator input(kBytewise, {{"k", PackTag(1, ValueType::kValue), std::string(10'000, 'v')}});
  Outputs outputs;
  outputs.capacity = 8000;
  EXPECT_TRUE(outputs.Merge(&input, BytewiseOptions()).IsNoSpace());
}

std::vector<TestEntry> ManyEntries() {
  std::vector<TestEntry> entries;
  for (int i = 1000; i < 3000; ++i) {
    entries.push_back({std::to_string(i), PackTag(7, ValueType::kValue), std::string(100, 'v')});
  }
  return entries;
}

TEST(MergeKernelTest, CancelledMergeIsAborted) {
  const std::atomic<bool> cancelled{true};
  MergeOptions options = BytewiseOptions();
  options.cancelled = &cancelled;
  VectorIterator input(kBytewise, ManyEntries());
  Outputs outputs;
  EXPECT_TRUE(outputs.Merge(&input, options).IsAborted());
  EXPECT_LT(outputs.stats.entries_read, 1000u);
}

TEST(MergeKernelTest, OfLargeValuesFewAreReadBeforeACancellationCounts) {
  std::vector<TestEntry> entries;
  for (int i = 100; i < 140; ++i) {
    entries.push_back(
        {std::to_string(i), PackTag(7, ValueType::kValue), std::string(100 << 10, 'v')});
  }
  const std::atomic<bool> cancelled{true};
  MergeOptions options = BytewiseOptions();
  options.cancelled = &cancelled;
  VectorIterator input(kBytewise, entries);
  Outputs outputs;
  EXPECT_TRUE(outputs.Merge(&input, options).IsAborted());
  EXPECT_LT(outputs.stats.bytes_read, 2u << 20);
}

TEST(MergeKernelTest, FailuresComeBackAsTheyAre) {
  MergeOptions options = BytewiseOptions();
  options.target_table_bytes = 20'000;
  for (const size_t moves : {0, 1, 700, 1999}) {
    VectorIterator input(kBytewise, ManyEntries());
    input.FailAfter(moves, Status::Unavailable("node 2 is lost"));
    Outputs outputs;
    EXPECT_TRUE(outputs.Merge(&input, options).IsUnavailable()) << moves;
    EXPECT_EQ(outputs.metas.size() + 1 >= outputs.tables.size(), true);
  }
  // No place for the third table.
  VectorIterator input(kBytewise, ManyEntries());
  std::deque<MemoryTable> tables;
  std::vector<TableMeta> metas;
  MergeStats stats;
  const Status status = MergeTables(
      &input, options,
      [&](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
        if (tables.size() == 2) return Status::NoSpace("pool is full");
        identity->id = tables.size();
        tables.emplace_back();
        *writer = std::make_unique<MemoryExtentWriter>(&tables.back(), 4096, 1 << 20);
        return Status::OK();
      },
      &metas, &stats);
  EXPECT_TRUE(status.IsNoSpace());
  EXPECT_EQ(metas.size(), 2u);
}

TEST(MergeKernelTest, FailedWriterFailsTheMerge) {
  bool passed = false;
  for (uint64_t n = 0; !passed; ++n) {
    ASSERT_LT(n, 1000u);
    VectorIterator input(kBytewise, ManyEntries());
    CallCounter counter;
    counter.FailAfter(n);
    MemoryTable table;
    std::vector<TableMeta> metas;
    MergeStats stats;
    const Status status = MergeTables(
        &input, BytewiseOptions(),
        [&](TableMeta*, std::unique_ptr<ExtentWriter>* writer) {
          *writer = std::make_unique<MemoryExtentWriter>(&table, 16 << 10, 1 << 20, &counter);
          return Status::OK();
        },
        &metas, &stats);
    passed = status.ok();
    EXPECT_TRUE(passed || status.IsUnavailable()) << status.ToString();
    EXPECT_EQ(metas.size(), passed ? 1u : 0u);
  }
}

}  // namespace
}  // namespace nacre
