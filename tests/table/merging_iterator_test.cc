// Goal: a merging (and a concatenating) iterator is indistinguishable from one iterator over all
// entries, in any sequence of moves, and a child's failure fails it.
// Method: random entries dealt to random children, of memory and of tables, against one sorted
// list; every child failed after every number of moves.

#include "table/iterator/merging_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "table/concatenating_iterator.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {
namespace {

std::string RandomMergeKey(Random* random) {
  std::string key(random->OneIn(2) ? "a common prefix " : "");
  for (uint64_t n = random->Uniform(12); n > 0; --n) {
    key.push_back(static_cast<char>(random->Uniform(4)));
  }
  return key;
}

std::vector<TestEntry> RandomEntries(Random* random, const InternalKeyComparator& comparator) {
  std::vector<TestEntry> entries;
  SequenceNumber sequence = 0;
  for (size_t i = 1 + random->Skewed(9); i > 0; --i) {
    const std::string key = RandomMergeKey(random);
    for (uint64_t versions = 1 + random->Skewed(3); versions > 0; --versions) {
      entries.push_back({key, PackTag(++sequence, ValueType::kValue), std::to_string(sequence)});
    }
  }
  SortEntries(comparator, &entries);
  return entries;
}

/// The same random moves on both. A VectorIterator over all entries is the model of the seeks.
void CompareMoves(Random* random, const InternalKeyComparator& comparator,
                  const std::vector<TestEntry>& entries, InternalIterator* iterator, int moves) {
  size_t at = entries.size();
  const auto before = [&](const TestEntry& a, const TestEntry& b) {
    const int r = comparator.CompareUserKeys(a.user_key, b.user_key);
    return r != 0 ? r < 0 : a.tag > b.tag;
  };
  for (int move = 0; move < moves; ++move) {
    const uint64_t choice = at >= entries.size() ? random->Uniform(4) : random->Uniform(16);
    TestEntry target{RandomMergeKey(random), PackTag(random->Uniform(300), kValueTypeForSeek), ""};
    if (random->OneIn(2)) target = entries[random->Uniform(entries.size())];
    const std::string key = InternalKey(target.user_key, target.tag);
    if (choice == 0) {
      iterator->SeekToFirst();
      at = 0;
    } else if (choice == 1) {
      iterator->SeekToLast();
      at = entries.size() - 1;
    } else if (choice == 2) {
      const std::string bound = RandomMergeKey(random);
      const Slice upper(bound);
      if (random->OneIn(2)) iterator->PrepareSeek(key, random->OneIn(2) ? &upper : nullptr);
      iterator->Seek(key);
      at = static_cast<size_t>(std::lower_bound(entries.begin(), entries.end(), target, before) -
                               entries.begin());
    } else if (choice == 3) {
      iterator->SeekForPrev(key);
      at = static_cast<size_t>(std::upper_bound(entries.begin(), entries.end(), target, before) -
                               entries.begin()) -
           1;
    } else if (choice < 10) {
      iterator->Next();
      ++at;
    } else {
      iterator->Prev();
      --at;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, entries, at)) << "move " << move;
  }
}

const Comparator* RandomComparator(Random* random) {
  static const BackwardsComparator backwards;
  const Comparator* const comparators[] = {BytewiseComparator(), BytewiseComparator(),
                                           ReverseBytewiseComparator(), &backwards};
  return comparators[random->Uniform(std::size(comparators))];
}

TEST(MergingIteratorTest, SameAsOneSortedList) {
  Random random(TestSeed(51));
  for (size_t round = 0; round < Scaled(500); ++round) {
    const InternalKeyComparator comparator(RandomComparator(&random));
    const auto entries = RandomEntries(&random, comparator);
    const size_t children = 1 + random.Uniform(9);
    std::vector<std::vector<TestEntry>> dealt(children);
    // In runs, so that one child stays the least for a while.
    size_t child = 0;
    for (const TestEntry& entry : entries) {
      if (random.OneIn(1 + round % 8)) child = random.Uniform(children);
      dealt[child].push_back(entry);
    }
    std::vector<TestTable> tables;
    std::vector<std::unique_ptr<InternalIterator>> iterators;
    for (size_t i = 0; i < children; ++i) {
      if (dealt[i].empty() || random.OneIn(2)) {
        const size_t run_length = 1 + random.Skewed(4);
        iterators.push_back(std::make_unique<VectorIterator>(comparator, dealt[i], run_length));
        continue;
      }
      TestTableOptions options;
      options.comparator = comparator.user_comparator();
      options.chunk_size = 256;
      options.range_index_interval = 64;
      constexpr BytesPlace kPlaces[] = {BytesPlace::kInPlace, BytesPlace::kFetched,
                                        BytesPlace::kLoadable, BytesPlace::kLoadableByChunk};
      options.place = kPlaces[random.Uniform(std::size(kPlaces))];
      tables.push_back(MakeTable(dealt[i], options));
      iterators.push_back(tables.back().reader->NewIterator({true, 64, 512, 2}));
    }
    const auto merged = NewMergingIterator(comparator, std::move(iterators));
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(CompareMoves(&random, comparator, entries, merged.get(), 200));
    merged->SeekToFirst();
    ASSERT_EQ(ReadAll(merged.get()), entries);
  }
}

TEST(MergingIteratorTest, PreparedSeekHasTheReadsOfAllChildrenUnderWayTogether) {
  const InternalKeyComparator comparator(BytewiseComparator());
  TestTableOptions options;
  options.place = BytesPlace::kFetched;
  options.chunk_size = 64 << 10;
  std::vector<TestTable> tables;
  std::vector<std::unique_ptr<InternalIterator>> iterators;
  for (int child = 0; child < 4; ++child) {
    std::vector<TestEntry> entries;
    for (int i = 10'000; i < 11'000; ++i) {
      entries.push_back({std::to_string(i), PackTag(child + 1, ValueType::kValue), "value"});
    }
    tables.push_back(MakeTable(entries, options));
    const auto& reader = tables.back().reader;
    // The last one is the level's only table, behind a run.
    std::vector<const TableReader*> run(child == 3 ? 2 : 1, reader.get());
    iterators.push_back(NewConcatenatingIterator(comparator, std::move(run), {}));
  }
  const auto merged = NewMergingIterator(comparator, std::move(iterators));
  for (const char* key : {"10500", "10100", "10900"}) {
    const std::string target = InternalKey(key, kGreatestTag);
    std::vector<uint64_t> reads;
    for (const TestTable& table : tables) reads.push_back(table.extent->reads_started());
    merged->PrepareSeek(target, nullptr);
    for (size_t i = 0; i < tables.size(); ++i) {
      EXPECT_EQ(tables[i].extent->reads_started(), reads[i] + 1) << "child " << i;
    }
    merged->Seek(target);
    ASSERT_TRUE(merged->Valid());
    EXPECT_EQ(merged->user_key(), Slice(key));
    EXPECT_EQ(merged->tag(), PackTag(4, ValueType::kValue));
    for (size_t i = 0; i < tables.size(); ++i) {
      EXPECT_EQ(tables[i].extent->reads_started(), reads[i] + 1) << "child " << i;
    }
  }
}

TEST(MergingIteratorTest, EqualEntriesOfSeveralChildrenAllAppear) {
  // Sequences are unique in a database, but a merge must not lose or repeat anything anyhow.
  Random random(TestSeed(52));
  const InternalKeyComparator comparator(BytewiseComparator());
  for (size_t round = 0; round < Scaled(200); ++round) {
    const auto entries = RandomEntries(&random, comparator);
    std::vector<std::unique_ptr<InternalIterator>> iterators;
    std::vector<TestEntry> all;
    for (int child = 0; child < 3; ++child) {
      auto mine = entries;
      for (TestEntry& entry : mine) entry.value.append(" of child " + std::to_string(child));
      all.insert(all.end(), mine.begin(), mine.end());
      iterators.push_back(std::make_unique<VectorIterator>(comparator, std::move(mine)));
    }
    std::stable_sort(all.begin(), all.end(), [&](const TestEntry& a, const TestEntry& b) {
      const int r = a.user_key.compare(b.user_key);
      return r != 0 ? r < 0 : a.tag > b.tag;
    });
    const auto merged = NewMergingIterator(comparator, std::move(iterators));
    ASSERT_NO_FATAL_FAILURE(CompareMoves(&random, comparator, all, merged.get(), 200));
  }
}

TEST(MergingIteratorTest, NoChildIsAnEmptyIterator) {
  const auto merged = NewMergingIterator(InternalKeyComparator(BytewiseComparator()), {});
  merged->SeekToFirst();
  EXPECT_FALSE(merged->Valid());
  merged->Seek(InternalKey("k", 1));
  EXPECT_FALSE(merged->Valid());
  EXPECT_TRUE(merged->status().ok());
}

TEST(MergingIteratorTest, OneChildIsPassedThrough) {
  const InternalKeyComparator comparator(BytewiseComparator());
  std::vector<std::unique_ptr<InternalIterator>> children;
  children.push_back(std::make_unique<VectorIterator>(comparator, std::vector<TestEntry>()));
  const InternalIterator* const child = children.front().get();
  EXPECT_EQ(NewMergingIterator(comparator, std::move(children)).get(), child);
}

TEST(MergingIteratorTest, FailureOfAChildIsTheFailureOfTheWhole) {
  Random random(TestSeed(53));
  const InternalKeyComparator comparator(BytewiseComparator());
  const auto entries = RandomEntries(&random, comparator);
  for (const bool forward : {true, false}) {
    bool passed = false;
    for (size_t n = 0; !passed; ++n) {
      ASSERT_LE(n, entries.size() + 2);
      std::vector<std::vector<TestEntry>> dealt(3);
      for (size_t i = 0; i < entries.size(); ++i) dealt[i % 3].push_back(entries[i]);
      std::vector<std::unique_ptr<InternalIterator>> iterators;
      for (size_t i = 0; i < 3; ++i) {
        auto child = std::make_unique<VectorIterator>(comparator, dealt[i]);
        if (i == 1) child->FailAfter(n, Status::Unavailable("node 3 is lost"));
        iterators.push_back(std::move(child));
      }
      const auto merged = NewMergingIterator(comparator, std::move(iterators));
      size_t count = 0;
      for (forward ? merged->SeekToFirst() : merged->SeekToLast(); merged->Valid();
           forward ? merged->Next() : merged->Prev(), ++count) {
        const TestEntry& expected = entries[forward ? count : entries.size() - 1 - count];
        ASSERT_EQ(merged->user_key(), Slice(expected.user_key));
        ASSERT_EQ(merged->tag(), expected.tag);
      }
      passed = merged->status().ok();
      if (passed) {
        EXPECT_EQ(count, entries.size());
      } else {
        EXPECT_TRUE(merged->status().IsUnavailable());
      }
    }
  }
}

TEST(ConcatenatingIteratorTest, SameAsOneTable) {
  Random random(TestSeed(54));
  for (size_t round = 0; round < Scaled(200); ++round) {
    const InternalKeyComparator comparator(RandomComparator(&random));
    const auto entries = RandomEntries(&random, comparator);
    std::vector<TestTable> tables;
    std::vector<const TableReader*> readers;
    for (size_t begin = 0; begin < entries.size();) {
      const size_t end = std::min<size_t>(entries.size(), begin + 1 + random.Skewed(7));
      TestTableOptions options;
      options.comparator = comparator.user_comparator();
      options.place = random.OneIn(2) ? BytesPlace::kInPlace : BytesPlace::kFetched;
      tables.push_back(MakeTable({entries.begin() + static_cast<std::ptrdiff_t>(begin),
                                  entries.begin() + static_cast<std::ptrdiff_t>(end)},
                                 options));
      begin = end;
    }
    readers.reserve(tables.size());
    for (const TestTable& table : tables) readers.push_back(table.reader.get());
    const auto iterator = NewConcatenatingIterator(comparator, readers, {});
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(CompareMoves(&random, comparator, entries, iterator.get(), 200));
  }
}

}  // namespace
}  // namespace nacre
