// Goal: the cache of records never gives anything but the bytes that were admitted under a name,
// stays within its memory, keeps what is asked for often and lets a scan pass by. Method: records
// whose bytes follow from their names, in rings so small that they turn over many times; hits
// beside those of a cache that lets the least recently used go; readers beside threads that admit.

#include "db/cache/record_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/cache/record_index.h"
#include "db/cache/record_ring.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

/// The record of a name, of `size_max` bytes at most.
std::string RecordOf(const RecordName& name, size_t size_max) {
  const uint64_t seed = name.table_id * 1'000'003 + name.offset;
  return TestValue(seed, seed % (size_max + 1));
}

// ---- The ring -----------------------------------------------------------------------------------

struct Memory {
  explicit Memory(size_t bytes) : words(bytes / sizeof(uint64_t)) {}
  char* data() { return reinterpret_cast<char*>(words.data()); }
  std::vector<uint64_t> words;
};

TEST(RecordRingTest, HoldsTheLatestInTheirOrder) {
  Random random(TestSeed(1));
  for (const size_t bytes : {64, 80, 512, 4096}) {
    Memory memory(bytes);
    RecordRing ring(memory.data(), bytes);
    std::deque<std::pair<RecordName, uint64_t>> expected;
    const size_t size_max = bytes / 2 - 32;
    std::unique_ptr<char[]> buffer;
    Slice found;
    for (uint64_t i = 0; i < 2000; ++i) {
      const RecordName name{random.Uniform(5), i};
      const std::string record = RecordOf(name, size_max);
      while (!ring.Fits(record.size())) {
        const auto oldest = ring.Oldest();
        ASSERT_TRUE(oldest.has_value());
        const auto [gone, position] = expected.front();
        EXPECT_EQ(oldest->name, gone);
        EXPECT_EQ(oldest->position, position);
        EXPECT_EQ(oldest->record.ToString(), RecordOf(gone, size_max));
        ring.DropOldest();
        expected.pop_front();
        EXPECT_FALSE(ring.Read(position, gone, &buffer, &found));
      }
      expected.emplace_back(name, ring.Append(name, record));
      EXPECT_LE(ring.used(), bytes);
      for (const auto& [there, position] : expected) {
        ASSERT_TRUE(ring.Read(position, there, &buffer, &found));
        EXPECT_EQ(found.ToString(), RecordOf(there, size_max));
        EXPECT_TRUE(ring.Has(position, there));
        EXPECT_FALSE(ring.Read(position, {there.table_id + 1, there.offset}, &buffer, &found));
        EXPECT_FALSE(ring.Read(position, {there.table_id, there.offset + 1}, &buffer, &found));
      }
    }
    while (ring.Oldest().has_value()) ring.DropOldest();
    EXPECT_EQ(ring.used(), 0u);
  }
}

TEST(RecordRingTest, KnowsWhatItsHeadersCannotName) {
  EXPECT_TRUE(RecordRing::CanHold({1, (uint64_t{1} << 40) - 1}, (1 << 24) - 1));
  EXPECT_FALSE(RecordRing::CanHold({1, uint64_t{1} << 40}, 1));
  EXPECT_FALSE(RecordRing::CanHold({1, 0}, 1 << 24));
  EXPECT_FALSE(RecordRing::CanHold({UINT64_MAX, 0}, 1));
}

// ---- The index and the ghosts -------------------------------------------------------------------

TEST(RecordIndexTest, AFullBucketLosesWhatWasUsedLeast) {
  alignas(64) RecordIndex::Word words[RecordIndex::kBucketWords] = {};
  RecordIndex index(words, std::size(words));
  const auto hash_of = [](uint64_t i) { return i << 40; };
  for (uint64_t i = 0; i < 8; ++i) index.Put(hash_of(i), i % 2 == 0, 100 + i, i == 5 ? 0 : 1);
  index.Put(hash_of(8), false, 108, 0);
  EXPECT_EQ(index.Remove(hash_of(5), false, 105), -1);
  EXPECT_EQ(index.Remove(hash_of(8), false, 108), 0);
  EXPECT_EQ(index.Remove(hash_of(4), true, 105), -1);
  EXPECT_EQ(index.Remove(hash_of(4), false, 104), -1);
  EXPECT_EQ(index.Remove(hash_of(4), true, 104), 1);
  EXPECT_EQ(index.Remove(hash_of(4), true, 104), -1);
}

TEST(RecordIndexTest, CountsUsesUpToItsMost) {
  alignas(64) RecordIndex::Word words[RecordIndex::kBucketWords] = {};
  RecordIndex index(words, std::size(words));
  index.Put(7, true, 1, 0);
  for (int i = 0; i < 10; ++i) {
    for (RecordIndex::Word& slot : index.Bucket(7)) {
      if (RecordIndex::Matches(slot, 7)) RecordIndex::CountUse(&slot, slot);
    }
  }
  EXPECT_EQ(index.Remove(7, true, 1), RecordIndex::kUsesMax);
}

TEST(GhostListTest, RemembersAsFarAsItIsAsked) {
  uint64_t words[64] = {};
  GhostList ghosts(words, std::size(words));
  const auto hash_of = [](uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; };
  for (uint64_t i = 0; i < 20; ++i) ghosts.Add(hash_of(i));
  EXPECT_FALSE(ghosts.Take(hash_of(9), 10));  // Ten came after it.
  EXPECT_TRUE(ghosts.Take(hash_of(10), 10));
  EXPECT_FALSE(ghosts.Take(hash_of(10), 10)) << "taken twice";
  EXPECT_FALSE(ghosts.Take(hash_of(20), 1000)) << "never added";
}

// ---- The cache ----------------------------------------------------------------------------------

class RecordCacheTest : public testing::Test {
 protected:
  static constexpr size_t kRecordMax = 600;

  /// As a lookup does: whether it was there, and else it is admitted.
  static bool Use(RecordCache* cache, const RecordName& name, size_t size_max = kRecordMax) {
    std::unique_ptr<char[]> buffer;
    Slice record;
    if (cache->Find(name, &buffer, &record)) {
      EXPECT_EQ(record.ToString(), RecordOf(name, size_max)) << name.table_id << " " << name.offset;
      return true;
    }
    cache->Admit(name, RecordOf(name, size_max));
    return false;
  }
};

TEST_F(RecordCacheTest, GivesWhatWasAdmittedAndNothingElse) {
  RecordCache cache(1 << 20, nullptr);
  std::unique_ptr<char[]> buffer;
  Slice record;
  EXPECT_FALSE(cache.Find({1, 0}, &buffer, &record));
  cache.Admit({1, 0}, "one");
  cache.Admit({1, 64}, "");
  cache.Admit({2, 0}, "two");
  cache.Admit({2, 0}, "two");
  ASSERT_TRUE(cache.Find({1, 0}, &buffer, &record));
  EXPECT_EQ(record, "one");
  ASSERT_TRUE(cache.Find({1, 64}, &buffer, &record));
  EXPECT_EQ(record, "");
  ASSERT_TRUE(cache.Find({2, 0}, &buffer, &record));
  EXPECT_EQ(record, "two");
  EXPECT_FALSE(cache.Find({2, 64}, &buffer, &record));
  EXPECT_FALSE(cache.Find({0, 1}, &buffer, &record));
  EXPECT_EQ(cache.counts().hits, 3u);
  EXPECT_EQ(cache.counts().misses, 3u);
}

TEST_F(RecordCacheTest, StaysWithinItsMemory) {
  Random random(TestSeed(2));
  for (const size_t bytes : {RecordCache::kMinBytes, size_t{300'000}, size_t{9} << 20}) {
    RecordCache cache(bytes, nullptr);
    EXPECT_EQ(cache.capacity(), bytes);
    const size_t empty = cache.used();
    EXPECT_LE(empty, bytes / 8) << "tables take more than the documentation says";
    for (size_t i = 0; i < Scaled(200'000); ++i) {
      // Some tables have records so small that every bucket of the index overflows.
      const uint64_t table = i / 5000;
      const RecordName name{table, random.Uniform(20'000) * 8};
      Use(&cache, name, table % 2 == 0 ? 20 : kRecordMax);
      if (i % 100 == 0) {
        ASSERT_LE(cache.used(), bytes);
      }
    }
    EXPECT_GT(cache.used(), empty);
  }
}

TEST_F(RecordCacheTest, FillsMostOfItsMemory) {
  const size_t bytes = 8 << 20;
  RecordCache cache(bytes, nullptr);
  for (uint64_t i = 0; i < 100'000; ++i) Use(&cache, {1, i * 16});
  EXPECT_GE(cache.used(), bytes * 9 / 10);
  EXPECT_LE(cache.used(), bytes);
}

TEST_F(RecordCacheTest, RecordsThatAreTooLongDoNotEnter) {
  RecordCache cache(RecordCache::kMinBytes, nullptr);
  std::unique_ptr<char[]> buffer;
  Slice record;
  const size_t before = cache.used();
  cache.Admit({1, 0}, std::string(RecordCache::kMinBytes / 20, 'x'));
  cache.Admit({1, uint64_t{1} << 40}, "x");
  EXPECT_EQ(cache.used(), before);
  EXPECT_FALSE(cache.Find({1, 0}, &buffer, &record));
  cache.Admit({1, 0}, std::string(1000, 'x'));
  EXPECT_TRUE(cache.Find({1, 0}, &buffer, &record));
}

TEST_F(RecordCacheTest, AScanLeavesWhatIsHot) {
  RecordCache cache(1 << 20, nullptr);
  constexpr uint64_t kHot = 1000;  // Some 320 KB.
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < kHot; ++i) Use(&cache, {1, i * 16});
  }
  for (uint64_t i = 0; i < 100'000; ++i) Use(&cache, {2, i * 16});
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kHot; ++i) hits += Use(&cache, {1, i * 16}) ? 1 : 0;
  EXPECT_GE(hits, kHot * 9 / 10);
}

TEST_F(RecordCacheTest, WhatComesBackSoonStays) {
  RecordCache cache(RecordCache::kMinBytes, nullptr);
  // The main ring is full of others, so that what leaves the small one is gone.
  for (uint64_t i = 0; i < 2000; ++i) Use(&cache, {1, i * 16});
  EXPECT_FALSE(Use(&cache, {2, 0}));
  uint64_t other = 0;
  for (; other < 40; ++other) Use(&cache, {3, other * 16});
  EXPECT_FALSE(Use(&cache, {2, 0})) << "it has not left the small ring";
  for (; other < 80; ++other) Use(&cache, {3, other * 16});
  EXPECT_TRUE(Use(&cache, {2, 0})) << "it is in the small ring again";
}

/// A cache that lets the least recently used go, by bytes.
class LruModel {
 public:
  explicit LruModel(size_t bytes) : left_(static_cast<int64_t>(bytes)) {}
  bool Use(uint64_t key, size_t bytes) {
    const auto found = places_.find(key);
    if (found != places_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    order_.emplace_front(key, bytes);
    places_[key] = order_.begin();
    left_ -= static_cast<int64_t>(bytes);
    while (left_ < 0) {
      left_ += static_cast<int64_t>(order_.back().second);
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return false;
  }

 private:
  int64_t left_;
  std::list<std::pair<uint64_t, size_t>> order_;
  std::unordered_map<uint64_t, std::list<std::pair<uint64_t, size_t>>::iterator> places_;
};

TEST_F(RecordCacheTest, HitsMoreThanLeastRecentlyUsedWould) {
  // One in three is of a scan, the others are skewed: i with a probability of about 1 / i.
  const uint64_t keys = 20'000;
  const size_t bytes = 600'000;  // About a tenth of them.
  Random random(TestSeed(3));
  RecordCache cache(bytes, nullptr);
  LruModel model(bytes);  // It has all of the memory for records.
  uint64_t hits = 0;
  uint64_t model_hits = 0;
  uint64_t scanned = 0;
  for (size_t i = 0; i < 200'000; ++i) {
    const double skewed = std::exp(random.Uniform(1'000'000) / 1e6 * std::log(keys));
    const uint64_t key = i % 3 == 0 ? keys + scanned++ : static_cast<uint64_t>(skewed);
    const RecordName name{1, key * 16};
    hits += Use(&cache, name) ? 1 : 0;
    model_hits += model.Use(key, RecordOf(name, kRecordMax).size()) ? 1 : 0;
  }
  EXPECT_GT(hits, model_hits);
}

TEST_F(RecordCacheTest, ReadersMeetNoHalfWrittenRecord) {
  RecordCache cache(RecordCache::kMinBytes, nullptr);  // It turns over all the time.
  const uint64_t seed = TestSeed(4);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> hits{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &hits, seed, t] {
      Random random(seed + t);
      for (size_t i = 0; i < Scaled(200'000); ++i) {
        const uint64_t key = random.OneIn(2) ? random.Uniform(40) : random.Uniform(2000);
        if (Use(&cache, {key % 3, key * 16})) hits.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(hits.load(), 0u);
  EXPECT_EQ(cache.counts().hits, hits.load());
  EXPECT_LE(cache.used(), cache.capacity());
}

}  // namespace
}  // namespace nacre
