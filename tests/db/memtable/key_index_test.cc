// Goal: the index finds the newest entry of each key, and from there all older ones in the order of
// their tags, at every moment, for all that was inserted before, however often it has grown.
//
// Method: random entries against a map, in an index that begins with 32 places, with hashes that
// are made to collide in their places, in their kept bits, and in both. For threads: writers insert
// versions of few keys out of order while readers check that all whose insert has returned are
// there, in order. Run under ThreadSanitizer too.

#include "db/memtable/key_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/seed.h"
#include "util/hash.h"
#include "util/random.h"

namespace nacre {
namespace {

MemTableEntry* NewEntry(ConcurrentArena* arena, const std::string& key, uint64_t tag) {
  bool new_chunk = false;
  return MemTableEntry::New(arena, key, tag, std::to_string(tag), ValuePlace::kCopied, &new_chunk);
}

std::vector<uint64_t> TagsOf(const KeyIndex& index, const std::string& key, uint64_t hash) {
  std::vector<uint64_t> tags;
  for (const MemTableEntry* entry = index.Newest(key, hash); entry != nullptr;
       entry = entry->older()) {
    EXPECT_EQ(entry->key(), Slice(key));
    EXPECT_EQ(entry->value().ToString(), std::to_string(entry->tag()));
    tags.push_back(entry->tag());
  }
  return tags;
}

struct Hashing {
  const char* name;
  bool spread;  ///< Keys do not crowd in few places, so the index takes all.
  std::function<uint64_t(const std::string&)> hash;
};

class KeyIndexTest : public testing::TestWithParam<Hashing> {};

TEST_P(KeyIndexTest, FindsAllVersionsNewestFirst) {
  Random random(TestSeed(701));
  ConcurrentArena arena;
  KeyIndex index(/*bytes=*/0);
  std::map<std::string, std::set<uint64_t, std::greater<>>> model;
  MemTableEntry* last = nullptr;
  bool grown = false;
  uint64_t refused = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const std::string key = "key" + std::to_string(random.Uniform(1500));
    // Most come in the order of their tags, some late.
    const uint64_t tag = random.OneIn(5) ? random.Uniform(2 * i + 2) : 2 * i + 1;
    if (!model[key].insert(tag).second) continue;
    MemTableEntry* const entry = NewEntry(&arena, key, tag);
    if (index.Insert(GetParam().hash(key), entry, last, &grown)) {
      last = entry;
    } else {
      ASSERT_FALSE(GetParam().spread);
      model[key].erase(tag);
      ++refused;
    }
    if (random.OneIn(3)) {
      const std::string other = "key" + std::to_string(random.Uniform(3000));
      const auto expected = model.find(other);
      ASSERT_EQ(index.Newest(other, GetParam().hash(other)) == nullptr,
                expected == model.end() || expected->second.empty());
    }
  }
  EXPECT_TRUE(grown);
  EXPECT_EQ(refused > 0, !GetParam().spread);
  EXPECT_LT(index.MemoryUsage(), size_t{128} << 10) << "about ten times what the keys take";
  for (const auto& [key, tags] : model) {
    EXPECT_EQ(TagsOf(index, key, GetParam().hash(key)),
              std::vector<uint64_t>(tags.begin(), tags.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Hashes, KeyIndexTest,
    testing::Values(Hashing{"Good", true, [](const std::string& key) { return Hash64(key); }},
                    Hashing{"SamePlaces", false,
                            [](const std::string& key) { return Hash64(key) >> 40 << 40; }},
                    Hashing{"SameKeptBits", true,
                            [](const std::string& key) { return Hash64(key) << 16 >> 16; }},
                    Hashing{"FewHashes", false,
                            [](const std::string& key) { return Hash64(key) % 100; }}),
    [](const auto& hashing) { return hashing.param.name; });

TEST(HotKeyIndexTest, DescendingVersionsOfAKeyTakeOneStepEach) {
  // As a replay of a sorted log inserts them; a walk from the newest each time would take minutes.
  ConcurrentArena arena;
  KeyIndex index(1 << 10);
  constexpr uint64_t kVersions = 300'000;
  const uint64_t hash = Hash64(Slice("key"));
  bool grown = false;
  MemTableEntry* last = nullptr;
  for (uint64_t tag = kVersions; tag > 0; --tag) {
    MemTableEntry* const entry = NewEntry(&arena, "key", tag);
    ASSERT_TRUE(index.Insert(hash, entry, last, &grown));
    last = entry;
  }
  const std::vector<uint64_t> tags = TagsOf(index, "key", hash);
  ASSERT_EQ(tags.size(), kVersions);
  EXPECT_EQ(tags.front(), kVersions);
  EXPECT_EQ(tags.back(), 1U);
}

TEST(ConcurrentKeyIndexTest, ReadersFindWhatWasInsertedWhileItGrows) {
  const uint64_t seed = TestSeed(702);
  constexpr uint64_t kWriters = 3;
  constexpr uint64_t kInserts = 6000;
  ConcurrentArena arena;
  KeyIndex index(/*bytes=*/0);
  // Some keys are of all writers, some of one.
  const auto key_of = [](uint64_t writer, uint64_t i) {
    return i % 2 == 0 ? "shared" + std::to_string(i % 40)
                      : "own" + std::to_string(writer) + "-" + std::to_string(i);
  };
  // Tags of a writer ascend in pairs that are swapped.
  const auto tag_of = [](uint64_t writer, uint64_t i) { return (i ^ 1) * kWriters + writer + 1; };
  std::atomic<uint64_t> done[kWriters] = {};
  std::barrier start(kWriters + 1);
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      start.arrive_and_wait();
      MemTableEntry* last = nullptr;
      bool grown = false;
      for (uint64_t i = 0; i < kInserts; ++i) {
        const std::string key = key_of(writer, i);
        MemTableEntry* const entry = NewEntry(&arena, key, tag_of(writer, i));
        ASSERT_TRUE(index.Insert(Hash64(key), entry, last, &grown));
        last = entry;
        done[writer].store(i + 1, std::memory_order_release);
      }
    });
  }
  Random random(seed);
  start.arrive_and_wait();
  for (bool all_done = false; !all_done;) {
    all_done = true;
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      const uint64_t known = done[writer].load(std::memory_order_acquire);
      all_done = all_done && known == kInserts;
      if (known == 0) continue;
      const uint64_t i = random.Uniform(known);
      const std::string key = key_of(writer, i);
      const std::vector<uint64_t> tags = TagsOf(index, key, Hash64(key));
      ASSERT_TRUE(std::is_sorted(tags.rbegin(), tags.rend()));
      ASSERT_TRUE(std::find(tags.begin(), tags.end(), tag_of(writer, i)) != tags.end()) << key;
    }
  }
  for (std::thread& thread : threads) thread.join();
  size_t entries = 0;
  std::set<std::string> keys;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    for (uint64_t i = 0; i < kInserts; ++i) keys.insert(key_of(writer, i));
  }
  for (const std::string& key : keys) {
    const std::vector<uint64_t> tags = TagsOf(index, key, Hash64(key));
    EXPECT_TRUE(std::is_sorted(tags.rbegin(), tags.rend()));
    entries += tags.size();
  }
  EXPECT_EQ(entries, kWriters * kInserts);
}

}  // namespace
}  // namespace nacre
