// Goal: keys are drawn as often as theory says, and a seed gives the same keys again.
// Method: frequencies of many draws against the probabilities, by a chi-squared statistic whose
// bound a right generator exceeds once in a million seeds or less; hashes against YCSB's own.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/keys/key_chooser.h"
#include "db_bench/keys/zipf_distribution.h"
#include "db_bench/ycsb/ycsb_keys.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

/// 1 / (rank + 1)^theta of each rank, scaled to a sum of 1.
std::vector<double> ZipfProbabilities(uint64_t items, double theta) {
  std::vector<double> shares(items);
  double sum = 0;
  for (uint64_t rank = 0; rank < items; ++rank) {
    shares[rank] = std::pow(static_cast<double>(rank + 1), -theta);
    sum += shares[rank];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

/// Expects that `counts` are frequencies of draws with these probabilities. Neighbours of which too
/// few are expected are taken together.
void ExpectFrequencies(const std::vector<uint64_t>& counts,
                       const std::vector<double>& probabilities, uint64_t draws) {
  constexpr double kExpectedMin = 50;
  double statistic = 0;
  double degrees = -1;
  double expected = 0;
  double counted = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    expected += probabilities[i] * static_cast<double>(draws);
    counted += static_cast<double>(counts[i]);
    if (expected < kExpectedMin && i + 1 < counts.size()) continue;
    if (expected == 0) continue;
    statistic += (counted - expected) * (counted - expected) / expected;
    ++degrees;
    expected = counted = 0;
  }
  // Mean and standard deviation of the statistic are those of the chi-squared distribution.
  EXPECT_LT(statistic, degrees + 6 * std::sqrt(2 * degrees) + 20) << degrees << " degrees";
}

TEST(ZipfDistributionTest, RanksAreAsFrequentAsInTheory) {
  constexpr uint64_t kDraws = 1'000'000;
  for (const uint64_t items : {1, 2, 10, 1000, 100000}) {
    for (const double theta : {0.2, 0.5, 0.99, 1.0, 1.2, 2.5}) {
      SCOPED_TRACE(testing::Message() << items << " items, theta " << theta);
      const ZipfDistribution zipf(items, theta);
      Random random(TestSeed(1));
      std::vector<uint64_t> counts(items);
      for (uint64_t i = 0; i < kDraws; ++i) {
        const uint64_t rank = zipf.Next(&random);
        ASSERT_LT(rank, items);
        ++counts[rank];
      }
      ExpectFrequencies(counts, ZipfProbabilities(items, theta), kDraws);
    }
  }
}

TEST(ZipfDistributionTest, HottestRankOfManyItems) {
  // The sum for 10^10 items that YCSB has compiled in.
  constexpr double kZeta = 26.46902820178302;
  constexpr uint64_t kDraws = 1'000'000;
  const ZipfDistribution zipf(10'000'000'000, 0.99);
  Random random(TestSeed(1));
  uint64_t hottest = 0;
  for (uint64_t i = 0; i < kDraws; ++i) hottest += zipf.Next(&random) == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(hottest) / kDraws, 1 / kZeta, 6 * std::sqrt(0.04 / kDraws));
}

BenchConfig Config(KeyDistribution distribution, uint64_t num) {
  BenchConfig config;
  config.key_dist = distribution;
  config.num = num;
  return config;
}

std::vector<uint64_t> CountNumbers(const BenchConfig& config, uint64_t draws, uint64_t seed) {
  const KeyChooser chooser(config);
  Random random(seed);
  std::vector<uint64_t> counts(config.num);
  for (uint64_t i = 0; i < draws; ++i) ++counts.at(chooser.Next(&random));
  return counts;
}

TEST(KeyChooserTest, ZipfScattersItsRanks) {
  constexpr uint64_t kDraws = 500'000;
  for (const uint64_t num : {1, 2, 1000, 1024}) {
    SCOPED_TRACE(num);
    BenchConfig config = Config(KeyDistribution::kZipf, num);
    config.zipf_theta = 0.8;
    std::vector<uint64_t> counts = CountNumbers(config, kDraws, TestSeed(1));
    std::vector<uint64_t> by_rank = counts;
    std::sort(by_rank.begin(), by_rank.end(), std::greater<>());
    // Sorting favours large counts a little; the frequent ranks are far enough from one another.
    const std::vector<double> theory = ZipfProbabilities(num, config.zipf_theta);
    for (uint64_t rank = 0; rank < std::min<uint64_t>(num, 5); ++rank) {
      const double expected = theory[rank] * kDraws;
      EXPECT_NEAR(static_cast<double>(by_rank[rank]), expected, 6 * std::sqrt(expected));
    }
    EXPECT_NE(by_rank.back(), 0u) << "a number that is never drawn";
    if (num < 1000) continue;
    // Neighbours of the hottest number are not the next hottest ones.
    const auto hottest =
        static_cast<uint64_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    EXPECT_LT(counts[(hottest + 1) % num], by_rank[5]);
    EXPECT_LT(counts[(hottest + num - 1) % num], by_rank[5]);
  }
}

TEST(KeyChooserTest, LatestFavoursTheHighestNumbers) {
  constexpr uint64_t kDraws = 500'000;
  constexpr uint64_t kNum = 1000;
  std::vector<uint64_t> counts =
      CountNumbers(Config(KeyDistribution::kLatest, kNum), kDraws, TestSeed(1));
  std::reverse(counts.begin(), counts.end());
  ExpectFrequencies(counts, ZipfProbabilities(kNum, 0.99), kDraws);
}

TEST(KeyChooserTest, HotspotHasTwoUniformParts) {
  constexpr uint64_t kDraws = 500'000;
  constexpr uint64_t kNum = 1000;
  BenchConfig config = Config(KeyDistribution::kHotspot, kNum);
  config.hotspot_set_fraction = 0.1;
  config.hotspot_op_fraction = 0.7;
  std::vector<double> theory(kNum, 0.3 / 900);
  std::fill_n(theory.begin(), 100, 0.7 / 100);
  ExpectFrequencies(CountNumbers(config, kDraws, TestSeed(1)), theory, kDraws);
  // All keys are hot.
  config.hotspot_set_fraction = 1;
  ExpectFrequencies(CountNumbers(config, kDraws, TestSeed(1)),
                    std::vector<double>(kNum, 1.0 / kNum), kDraws);
}

TEST(KeyChooserTest, UniformIsAsWithoutDistributions) {
  const KeyChooser chooser(Config(KeyDistribution::kUniform, 1000));
  Random chosen(7);
  Random plain(7);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(chooser.Next(&chosen), plain.Uniform(1000));
}

TEST(KeyChooserTest, SeedReplays) {
  for (const KeyDistribution distribution :
       {KeyDistribution::kZipf, KeyDistribution::kLatest, KeyDistribution::kHotspot}) {
    const BenchConfig config = Config(distribution, 5000);
    EXPECT_EQ(CountNumbers(config, 10000, 3), CountNumbers(config, 10000, 3));
    EXPECT_NE(CountNumbers(config, 10000, 3), CountNumbers(config, 10000, 4));
  }
}

TEST(YcsbKeysTest, HashIsYcsbs) {
  // By its Utils.hash.
  EXPECT_EQ(YcsbHash(0), 6284781860667377211u);
  EXPECT_EQ(YcsbHash(1), 8517097267634966620u);
  EXPECT_EQ(YcsbHash(2), 1820151046732198393u);
}

TEST(YcsbKeysTest, ZipfianFollowsTheHashedRanks) {
  constexpr uint64_t kDraws = 500'000;
  constexpr uint64_t kItems = 1000;
  constexpr uint64_t kRanks = 200'000;
  const YcsbZipfian zipfian;
  Random random(TestSeed(1));
  std::vector<uint64_t> counts(kItems);
  for (uint64_t i = 0; i < kDraws; ++i) ++counts[zipfian.Next(&random, kItems)];
  // The first ranks by themselves; all others, whose hashes are even, together.
  constexpr double kZeta = 26.46902820178302;
  std::vector<double> theory(kItems);
  double rest = 1;
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    const double share = std::pow(static_cast<double>(rank + 1), -0.99) / kZeta;
    theory[YcsbHash(rank) % kItems] += share;
    rest -= share;
  }
  for (double& share : theory) share += rest / kItems;
  ExpectFrequencies(counts, theory, kDraws);
}

TEST(YcsbKeysTest, LatestFollowsTheNewestRecord) {
  constexpr uint64_t kDraws = 200'000;
  YcsbLatest latest;
  Random random(TestSeed(1));
  for (const uint64_t items : {1, 50, 51, 1000}) {
    std::vector<uint64_t> counts(items);
    for (uint64_t i = 0; i < kDraws; ++i) ++counts.at(latest.Next(&random, items));
    std::reverse(counts.begin(), counts.end());
    ExpectFrequencies(counts, ZipfProbabilities(items, 0.99), kDraws);
  }
}

TEST(YcsbKeysTest, RecordsCountWhenAllBeforeThemAreThere) {
  YcsbRecords records(10);
  EXPECT_EQ(records.Begin(), 10u);
  EXPECT_EQ(records.Begin(), 11u);
  EXPECT_EQ(records.Begin(), 12u);
  records.End(12);
  records.End(11);
  EXPECT_EQ(records.count(), 10u);
  records.End(10);
  EXPECT_EQ(records.count(), 13u);
  records.Reset(0);
  EXPECT_EQ(records.count(), 0u);
  EXPECT_EQ(records.Begin(), 0u);
}

TEST(YcsbKeysTest, ThreadsInsertEachRecordOnce) {
  constexpr uint64_t kEach = 20'000;
  YcsbRecords records(0);
  std::vector<std::vector<uint64_t>> begun(4);
  std::vector<std::thread> threads;
  threads.reserve(begun.size());
  for (std::vector<uint64_t>& own : begun) {
    threads.emplace_back([&records, &own] {
      for (uint64_t i = 0; i < kEach; ++i) {
        own.push_back(records.Begin());
        records.End(own.back());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const std::vector<uint64_t>& own : begun) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), 4 * kEach);
  EXPECT_EQ(*all.rbegin(), 4 * kEach - 1);
  EXPECT_EQ(records.count(), 4 * kEach);
}

}  // namespace
}  // namespace nacre::bench
