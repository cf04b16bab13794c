// Goal: the filter passes every key that was added, and few others.
// Method: random hashes from several threads; the share of others that pass, at the loads of large
// and of small entries.

#include "db/memtable/memtable_filter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Hashes of "keys" that no other salt has.
std::vector<uint64_t> Hashes(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random.Next();
  return hashes;
}

double FalsePositives(const MemTableFilter& filter, uint64_t seed) {
  constexpr size_t kProbes = 200'000;
  size_t passed = 0;
  for (const uint64_t hash : Hashes(seed, kProbes)) passed += filter.MayContain(hash);
  return static_cast<double>(passed) / kProbes;
}

TEST(MemTableFilterTest, PassesWhatWasAddedByManyThreads) {
  const uint64_t seed = TestSeed(611);
  constexpr size_t kThreads = 4;
  constexpr size_t kKeys = 20'000;
  MemTableFilter filter(kThreads * kKeys);  // Eight keys a word: threads meet in words.
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (const uint64_t hash : Hashes(seed + i, kKeys)) {
        filter.Add(hash);
        ASSERT_TRUE(filter.MayContain(hash));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    for (const uint64_t hash : Hashes(seed + i, kKeys)) ASSERT_TRUE(filter.MayContain(hash));
  }
}

TEST(MemTableFilterTest, StopsMostOthers) {
  const uint64_t seed = TestSeed(612);
  constexpr size_t kWords = 1 << 14;
  struct Load {
    double keys_per_word;
    double most;
  };
  for (const Load& load : {Load{0, 0}, Load{1, 0.002}, Load{8, 0.05}}) {
    MemTableFilter filter(kWords * 8);
    const auto keys = static_cast<size_t>(load.keys_per_word * kWords);
    for (const uint64_t hash : Hashes(seed, keys)) filter.Add(hash);
    EXPECT_LE(FalsePositives(filter, seed + 1), load.most) << load.keys_per_word;
  }
}

TEST(MemTableFilterTest, WithoutMemoryEveryKeyPasses) {
  for (const size_t bytes : {size_t{0}, size_t{7}}) {
    MemTableFilter filter(bytes);
    EXPECT_FALSE(filter.MayContain(2));
    filter.Add(1);
    filter.Prefetch(2);
    EXPECT_TRUE(filter.MayContain(2));
    EXPECT_EQ(filter.MemoryUsage(), 0u);
  }
  MemTableFilter word(15);
  EXPECT_EQ(word.MemoryUsage(), 8u);
  EXPECT_FALSE(word.MayContain(2));
}

}  // namespace
}  // namespace nacre
