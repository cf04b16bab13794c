// Goal: a MemTable answers, for every key and snapshot, what a map of all versions answers; its
// iterators walk all versions in order in both directions; its counters are exact.
//
// Method: random versions against a model, under three comparators. For threads: writers publish
// sequence numbers; readers check that each snapshot they take keeps giving the same answer while
// writes go on. Run under ThreadSanitizer too.

#include "db/memtable/memtable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "table/iterator/internal_iterator.h"
#include "tests/support/seed.h"
#include "util/hash.h"
#include "util/memory/arena.h"
#include "util/memory/arena_block_pool.h"
#include "util/random.h"

namespace nacre {
namespace {

using LookupResult = MemTable::LookupResult;

struct EntryVersion {
  ValueType type;
  std::string value;
};

struct UserOrder {
  const Comparator* comparator;
  bool operator()(const std::string& a, const std::string& b) const {
    return comparator->Compare(a, b) < 0;
  }
};
/// Each key's versions, newest first.
using Model =
    std::map<std::string, std::map<SequenceNumber, EntryVersion, std::greater<>>, UserOrder>;

/// Orders by length first: an order that no prefix of bytes decides.
class ShortestFirst : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  const char* Name() const override { return "test.ShortestFirst"; }
  void FindShortestSeparator(std::string* /*start*/, const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
};

const Comparator* ShortestFirstComparator() {
  static const ShortestFirst order;
  return &order;
}

std::string RandomKey(Random* random) {
  std::string key(random->Skewed(4), 'k');
  for (char& c : key) c = static_cast<char>(random->Skewed(8));
  return key;
}

class MemTableTest : public testing::TestWithParam<const Comparator*> {
 protected:
  void Add(SequenceNumber sequence, ValueType type, const std::string& key,
           const std::string& value) {
    bool new_chunk = false;
    if (sequence % 3 == 0) {
      char* const kept = table_.arena()->Allocate(value.size(), &new_chunk);
      value.copy(kept, value.size());
      table_.AddKept(sequence, type, key, Hash64(key), Slice(kept, value.size()), &new_chunk);
    } else {
      table_.Add(sequence, type, key, value, &new_chunk);
    }
    model_[key][sequence] = {type, value};
    ++entries_;
    deletions_ += type == ValueType::kDeletion;
    data_bytes_ += key.size() + value.size();
  }

  void AddRandom(Random* random, int count) {
    for (int i = 0; i < count; ++i) {
      if (random->OneIn(4)) {
        Add(next_sequence_++, ValueType::kDeletion, RandomKey(random), "");
      } else {
        const std::string value(random->Skewed(9), static_cast<char>('a' + random->Uniform(26)));
        Add(next_sequence_++, ValueType::kValue, RandomKey(random), value);
      }
    }
  }

  void ExpectGet(const std::string& key, SequenceNumber snapshot) const {
    Slice value = "untouched";
    SequenceNumber sequence = 77;
    const LookupResult result = table_.Get(key, Hash64(key), snapshot, &value, &sequence);
    const auto versions = model_.find(key);
    if (versions != model_.end()) {
      const auto version = versions->second.lower_bound(snapshot);
      if (version != versions->second.end()) {
        ASSERT_EQ(version->first, sequence);
        if (version->second.type == ValueType::kDeletion) {
          ASSERT_EQ(LookupResult::kDeleted, result);
          ASSERT_EQ("untouched", value.ToString());
        } else {
          ASSERT_EQ(LookupResult::kFound, result);
          ASSERT_EQ(version->second.value, value.ToString());
        }
        return;
      }
    }
    ASSERT_EQ(LookupResult::kAbsent, result);
    ASSERT_EQ(77U, sequence);
  }

  /// All entries as "key/tag/value", in order.
  std::vector<std::string> ExpectedEntries() const {
    std::vector<std::string> entries;
    for (const auto& [key, versions] : model_) {
      for (const auto& [sequence, version] : versions) {
        entries.push_back(Describe(key, PackTag(sequence, version.type), version.value));
      }
    }
    return entries;
  }
  static std::string Describe(const Slice& key, uint64_t tag, const Slice& value) {
    return key.ToString(true) + "/" + std::to_string(tag) + "/" + value.ToString();
  }
  static std::string Describe(const InternalIterator& iterator) {
    return Describe(iterator.user_key(), iterator.tag(), iterator.value());
  }

  /// From end to end and back, an iterator shows what was added.
  void ExpectWalksBothWays() const {
    const std::vector<std::string> expected = ExpectedEntries();
    const auto iterator = table_.NewIterator();
    size_t at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
      ASSERT_EQ(expected.at(at), Describe(*iterator));
    }
    ASSERT_EQ(expected.size(), at);
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      ASSERT_EQ(expected.at(--at), Describe(*iterator));
    }
    ASSERT_EQ(0U, at);
  }

  const std::shared_ptr<ArenaBlockPool> blocks_ =
      std::make_shared<ArenaBlockPool>(2 * ArenaBlockPool::kBlockSize);
  MemTable table_{GetParam(), 42, 256, blocks_};
  Model model_{UserOrder{GetParam()}};
  SequenceNumber next_sequence_ = 1;
  uint64_t entries_ = 0;
  uint64_t deletions_ = 0;
  uint64_t data_bytes_ = 0;
};

TEST_P(MemTableTest, Empty) {
  EXPECT_EQ(42U, table_.generation());
  EXPECT_EQ(0U, table_.entries());
  EXPECT_EQ(0U, table_.deletions());
  EXPECT_EQ(0U, table_.data_bytes());
  ExpectGet("", kMaxSequenceNumber);
  ExpectGet("key", kMaxSequenceNumber);
  const auto iterator = table_.NewIterator();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST_P(MemTableTest, GetAnswersAsOfEverySnapshot) {
  Random random(TestSeed(601));
  AddRandom(&random, 5000);
  for (int i = 0; i < 20'000; ++i) {
    ExpectGet(RandomKey(&random), random.Uniform(next_sequence_ + 10));
    if (HasFatalFailure()) return;
  }
  for (const auto& [key, versions] : model_) {
    for (const auto& [sequence, version] : versions) {
      ExpectGet(key, sequence);
      ExpectGet(key, sequence - 1);
      ExpectGet(key, sequence + 1);
    }
    ExpectGet(key, 0);
    ExpectGet(key, kMaxSequenceNumber);
  }
  EXPECT_EQ(entries_, table_.entries());
  EXPECT_EQ(deletions_, table_.deletions());
  EXPECT_EQ(data_bytes_, table_.data_bytes());
  EXPECT_GE(table_.MemoryUsage(), data_bytes_);
}

TEST_P(MemTableTest, IteratorsWalkBothWays) {
  Random random(TestSeed(602));
  AddRandom(&random, 1500);
  ASSERT_NO_FATAL_FAILURE(ExpectWalksBothWays());
}

TEST_P(MemTableTest, SeeksLandWhereTheModelSays) {
  Random random(TestSeed(603));
  AddRandom(&random, 800);
  // All entries with their position, in order.
  std::vector<std::pair<std::string, uint64_t>> entries;
  for (const auto& [key, versions] : model_) {
    for (const auto& [sequence, version] : versions) {
      entries.emplace_back(key, PackTag(sequence, version.type));
    }
  }
  const std::vector<std::string> expected = ExpectedEntries();
  const InternalKeyComparator order(GetParam());
  const auto iterator = table_.NewIterator();
  for (int i = 0; i < 3000; ++i) {
    std::pair<std::string, uint64_t> target = {
        RandomKey(&random), PackTag(random.Uniform(next_sequence_ + 2), ValueType::kValue)};
    if (random.OneIn(2)) target = entries[random.Uniform(entries.size())];
    std::string internal_key;
    AppendInternalKey(&internal_key, target.first, target.second);
    size_t at = 0;
    bool exact = false;
    for (; at < entries.size(); ++at) {
      std::string other;
      AppendInternalKey(&other, entries[at].first, entries[at].second);
      const int r = order.Compare(other, internal_key);
      exact = r == 0;
      if (r >= 0) break;
    }
    iterator->Seek(internal_key);
    ASSERT_EQ(at < entries.size(), iterator->Valid());
    if (iterator->Valid()) {
      ASSERT_EQ(expected[at], Describe(*iterator));
    }
    iterator->SeekForPrev(internal_key);
    ASSERT_EQ(exact || at > 0, iterator->Valid());
    if (iterator->Valid()) {
      ASSERT_EQ(expected[exact ? at : at - 1], Describe(*iterator));
    }
  }
}

TEST_P(MemTableTest, LargeAndEmptyKeysAndValues) {
  Add(1, ValueType::kValue, "", "");
  Add(2, ValueType::kValue, std::string(1 << 20, 'k'), "value");
  // More than a chunk, a quarter of a block, and a block.
  Add(3, ValueType::kValue, "large", std::string(ConcurrentArena::kChunkSize + 1, 'a'));
  Add(4, ValueType::kValue, "larger", std::string(ArenaBlockPool::kBlockSize / 2, 'b'));
  Add(5, ValueType::kValue, "largest", std::string(2 * ArenaBlockPool::kBlockSize, 'c'));
  Add(6, ValueType::kDeletion, "large", "");
  for (const auto& [key, versions] : model_) {
    ExpectGet(key, kMaxSequenceNumber);
    ExpectGet(key, 5);
  }
  EXPECT_GE(table_.MemoryUsage(), data_bytes_);
  EXPECT_EQ(data_bytes_, table_.data_bytes());
}

TEST_P(MemTableTest, EntriesAreInOrderHoweverOftenAndWheneverItIsAskedFor) {
  // Some seeds ask before all entries and between them, the others only once all are there.
  for (const uint64_t seed : {605, 606, 607, 608, 609, 610}) {
    Random random(TestSeed(seed));
    MemTable table(GetParam(), 1, 64, blocks_);
    if (seed % 2 == 0) table.ExpectIterators();
    Model model{UserOrder{GetParam()}};
    SequenceNumber sequence = 0;
    const auto check = [&] {
      const auto iterator = table.NewIterator();
      iterator->SeekToFirst();
      uint64_t count = 0;
      for (const auto& [key, versions] : model) {
        for (const auto& [of, version] : versions) {
          ASSERT_TRUE(iterator->Valid());
          ASSERT_EQ(Describe(key, PackTag(of, version.type), version.value), Describe(*iterator));
          iterator->Next();
          ++count;
        }
      }
      ASSERT_FALSE(iterator->Valid());
      ASSERT_EQ(count, table.entries());
    };
    for (int round = 0; round < 4; ++round) {
      if (seed <= 607) check();
      for (uint64_t left = random.Uniform(1200); left > 0; --left) {
        const std::string key = random.OneIn(3) ? "one" : RandomKey(&random);
        const std::string value = std::to_string(random.Next());
        bool new_chunk = false;
        table.Add(++sequence, ValueType::kValue, key, value, &new_chunk);
        model[key][sequence] = {ValueType::kValue, value};
      }
    }
    EXPECT_EQ(table.iterated(), seed <= 607);
    table.Seal();
    check();
    table.Seal();
    check();
  }
}

TEST_P(MemTableTest, ASealedOneThatWasNeverIteratedIsSorted) {
  Random random(TestSeed(611));
  AddRandom(&random, 3000);
  EXPECT_FALSE(table_.iterated());
  table_.Seal();
  ASSERT_NO_FATAL_FAILURE(ExpectWalksBothWays());
  const std::vector<std::string> expected = ExpectedEntries();
  const auto iterator = table_.NewIterator();
  size_t at = 0;
  // Each place, and what lies right before and behind it.
  for (const auto& [key, versions] : model_) {
    for (const auto& [sequence, version] : versions) {
      std::string target;
      AppendInternalKey(&target, key, PackTag(sequence, version.type));
      iterator->Seek(target);
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(expected.at(at), Describe(*iterator));
      iterator->SeekForPrev(target);
      ASSERT_EQ(expected.at(at), Describe(*iterator));
      target.clear();
      AppendInternalKey(&target, key, PackTag(sequence, version.type) + 1);
      iterator->SeekForPrev(target);
      ASSERT_EQ(at > 0, iterator->Valid());
      if (at > 0) {
        ASSERT_EQ(expected.at(at - 1), Describe(*iterator));
      }
      ++at;
      ExpectGet(key, sequence);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MemTableTest, OldVersionsOfAKeyThatHasManyAreFound) {
  for (int i = 0; i < 3000; ++i) {
    Add(next_sequence_++, ValueType::kValue, "hot", std::to_string(i));
    if (i % 10 == 0) Add(next_sequence_++, ValueType::kValue, std::to_string(i), "cold");
  }
  for (SequenceNumber snapshot = 0; snapshot < next_sequence_ + 2; snapshot += 7) {
    ExpectGet("hot", snapshot);
    ExpectGet("10", snapshot);
    if (HasFatalFailure()) return;
  }
}

TEST_P(MemTableTest, KeysWithOneHashAreFoundByTheirOrder) {
  MemTable table(GetParam(), 1, 1 << 10, blocks_);
  constexpr uint64_t kHash = 77;
  constexpr int kKeys = 500;
  bool new_chunk = false;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key" + std::to_string(i);
    table.AddKept(static_cast<SequenceNumber>(i) + 1, ValueType::kValue, key, kHash, key,
                  &new_chunk);
    for (int j = 0; j <= i + 1; j += 37) {
      const std::string looked_up = "key" + std::to_string(j);
      Slice value;
      SequenceNumber sequence = 0;
      const LookupResult result =
          table.Get(looked_up, kHash, kMaxSequenceNumber, &value, &sequence);
      ASSERT_EQ(j <= i ? LookupResult::kFound : LookupResult::kAbsent, result);
      if (j <= i) {
        ASSERT_EQ(value, Slice(looked_up));
      }
    }
  }
}

TEST_P(MemTableTest, DividesIntoPartsOfAboutOneSize) {
  EXPECT_TRUE(table_.Divide(4).empty()) << "nothing to divide";
  Random random(TestSeed(24));
  for (int i = 0; i < 50; ++i) Add(next_sequence_++, ValueType::kValue, "one key", "");
  EXPECT_TRUE(table_.Divide(4).empty()) << "versions of one key stay together";
  for (int i = 0; i < 40'000; ++i) {
    Add(next_sequence_++, ValueType::kValue, "key" + std::to_string(random.Next()), "");
  }
  for (const size_t parts : {1, 2, 3, 8}) {
    const std::vector<std::string> cuts = table_.Divide(parts);
    ASSERT_EQ(cuts.size(), parts - 1);
    std::vector<size_t> sizes(parts);
    for (const auto& [key, versions] : model_) {
      size_t part = 0;
      while (part < cuts.size() && GetParam()->Compare(key, cuts[part]) >= 0) ++part;
      sizes[part] += versions.size();
    }
    for (const size_t size : sizes) {
      EXPECT_GT(size, entries_ / parts / 2);
      EXPECT_LT(size, entries_ / parts * 3 / 2);
    }
  }
}

TEST_P(MemTableTest, TellsWhenItTookMemory) {
  size_t usage = table_.MemoryUsage();
  SequenceNumber sequence = 1;
  int grown = 0;
  for (int i = 0; i < 20'000; ++i) {
    bool new_chunk = false;
    table_.Add(sequence++, ValueType::kValue, "key", std::string(100, 'v'), &new_chunk);
    ASSERT_EQ(new_chunk, table_.MemoryUsage() != usage);
    grown += new_chunk;
    usage = table_.MemoryUsage();
  }
  EXPECT_GT(grown, 10);
  bool stays_set = true;
  table_.Add(sequence++, ValueType::kValue, "key", "", &stays_set);
  EXPECT_TRUE(stays_set);
}

INSTANTIATE_TEST_SUITE_P(Comparators, MemTableTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator(),
                                         ShortestFirstComparator()));

// ---- Threads
// -------------------------------------------------------------------------------------

TEST(ConcurrentMemTableTest, SnapshotsGiveTheSameAnswerWhileWritesGoOn) {
  const uint64_t seed = TestSeed(604);
  constexpr uint64_t kWriters = 3;
  constexpr uint64_t kWrites = 4000;
  constexpr uint64_t kKeys = 50;
  MemTable table(BytewiseComparator(), 1, 1 << 10);
  std::atomic<SequenceNumber> next = 1;
  // The engine publishes in order, once all smaller sequences are in.
  std::atomic<SequenceNumber> published = 0;
  std::barrier start(kWriters + 2);
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      Random random(seed + w);
      start.arrive_and_wait();
      for (uint64_t i = 0; i < kWrites; ++i) {
        const SequenceNumber sequence = next.fetch_add(1);
        const std::string key = "key" + std::to_string(random.Uniform(kKeys));
        bool new_chunk = false;
        if (random.OneIn(5)) {
          table.Add(sequence, ValueType::kDeletion, key, "", &new_chunk);
        } else {
          table.Add(sequence, ValueType::kValue, key, std::to_string(sequence), &new_chunk);
        }
        while (published.load(std::memory_order_acquire) != sequence - 1) {
          std::this_thread::yield();
        }
        published.store(sequence, std::memory_order_release);
      }
    });
  }
  const auto answer = [&table](const std::string& key, SequenceNumber snapshot) {
    Slice value;
    SequenceNumber sequence = 0;
    const LookupResult result = table.Get(key, Hash64(key), snapshot, &value, &sequence);
    EXPECT_LE(sequence, snapshot);
    if (result == LookupResult::kFound) {
      EXPECT_EQ(std::to_string(sequence), value.ToString());
    }
    return std::pair(result, sequence);
  };
  for (uint64_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Random random(seed + 100 + r);
      start.arrive_and_wait();
      SequenceNumber snapshot = 0;
      do {
        snapshot = published.load(std::memory_order_acquire);
        const std::string key = "key" + std::to_string(random.Uniform(kKeys));
        const auto first = answer(key, snapshot);
        // The same as the iterator's view of this snapshot.
        std::string target;
        AppendInternalKey(&target, key, PackTag(snapshot, kValueTypeForSeek));
        const auto iterator = table.NewIterator();
        iterator->Seek(target);
        const bool there = iterator->Valid() && iterator->user_key() == Slice(key);
        ASSERT_EQ(first.first != LookupResult::kAbsent, there);
        if (there) {
          ASSERT_EQ(first.second, TagSequence(iterator->tag()));
        }
        std::this_thread::yield();
        ASSERT_EQ(first, answer(key, snapshot));
      } while (snapshot < kWriters * kWrites);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kWriters * kWrites, table.entries());
  uint64_t entries = 0;
  const auto iterator = table.NewIterator();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++entries;
  EXPECT_EQ(kWriters * kWrites, entries);
}

}  // namespace
}  // namespace nacre
