// Goal: every engine sees the same keys, and they look as RocksDB's db_bench makes them.
// Method: keys byte by byte; sizes and contents of values; same seed, same sequence.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "db_bench/config.h"
#include "db_bench/key_generator.h"
#include "db_bench/value_generator.h"
#include "db_bench/value_sizes.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

TEST(KeyGeneratorTest, NumberThenZeros) {
  KeyGenerator keys(20);
  EXPECT_EQ(keys.Set(0x0102030405060708).ToString(),
            std::string("\x01\x02\x03\x04\x05\x06\x07\x08", 8) + std::string(12, '0'));
  EXPECT_EQ(keys.Set(1).ToString(), std::string("\0\0\0\0\0\0\0\x01", 8) + std::string(12, '0'));
}

TEST(KeyGeneratorTest, ShortKeysHoldTheLowBytes) {
  EXPECT_EQ(KeyGenerator(1).Set(0xab).ToString(), "\xab");
  EXPECT_EQ(KeyGenerator(3).Set(0x010203).ToString(), "\x01\x02\x03");
  EXPECT_EQ(KeyGenerator(8).Set(UINT64_MAX).ToString(), std::string(8, '\xff'));
}

TEST(KeyGeneratorTest, CapacityIsTheNumberOfKeys) {
  EXPECT_EQ(KeyGenerator::Capacity(1), 256u);
  EXPECT_EQ(KeyGenerator::Capacity(4), uint64_t{1} << 32);
  EXPECT_EQ(KeyGenerator::Capacity(8), UINT64_MAX);
  EXPECT_EQ(KeyGenerator::Capacity(20), UINT64_MAX);
  for (const size_t key_size : {1, 2}) {
    KeyGenerator keys(key_size);
    std::set<std::string> seen;
    const uint64_t capacity = KeyGenerator::Capacity(key_size);
    for (uint64_t i = 0; i < capacity; ++i) seen.insert(keys.Set(i).ToString());
    EXPECT_EQ(seen.size(), capacity);
  }
}

TEST(KeyGeneratorTest, OrderIsThatOfNumbers) {
  Random random(TestSeed(1));
  for (const size_t key_size : {4, 8, 20}) {
    KeyGenerator keys(key_size, 2);
    for (int i = 0; i < 10000; ++i) {
      const uint64_t a = random.Skewed(31);
      const uint64_t b = random.Skewed(31);
      EXPECT_EQ(keys.Set(a, 0).compare(keys.Set(b, 1)) < 0, a < b);
    }
  }
}

TEST(KeyGeneratorTest, MissingKeysLieBetweenKeys) {
  for (const size_t key_size : {2, 8, 20}) {
    KeyGenerator keys(key_size, 2);
    KeyGenerator missing(key_size, 1, true);
    for (uint64_t i = 0; i < 1000; ++i) {
      const Slice between = missing.Set(i);
      EXPECT_LT(keys.Set(i, 0).compare(between), 0);
      EXPECT_GT(keys.Set(i + 1, 1).compare(between), 0);
    }
  }
}

TEST(KeyGeneratorTest, KeysOfABatchDoNotOverlap) {
  KeyGenerator keys(5, 100);
  for (uint64_t i = 0; i < 100; ++i) keys.Set(i * 7, i);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(keys.keys()[i].ToString(), KeyGenerator(5).Set(i * 7).ToString());
  }
}

TEST(ValueGeneratorTest, FixedSizeAndRepeatable) {
  BenchConfig config;
  config.value_size_min = config.value_size_max = 400;
  const ValuePool pool(config);
  ValueGenerator a(config, &pool, 1);
  ValueGenerator b(config, &pool, 2);
  for (int i = 0; i < 10000; ++i) {
    const Slice value = a.Next();
    ASSERT_EQ(value.size(), 400u);
    ASSERT_EQ(value, b.Next());
  }
}

TEST(ValueGeneratorTest, UniformSizesReachBothEnds) {
  BenchConfig config;
  config.value_size_distribution = ValueSizeDistribution::kUniform;
  config.value_size_min = 0;
  config.value_size_max = 9;
  const ValuePool pool(config);
  ValueGenerator values(config, &pool, TestSeed(1));
  std::set<size_t> sizes;
  for (int i = 0; i < 10000; ++i) sizes.insert(values.Next().size());
  EXPECT_EQ(sizes.size(), 10u);
  EXPECT_EQ(*sizes.rbegin(), 9u);
}

TEST(ValueSizesTest, MeansAndEnds) {
  constexpr int kDraws = 200'000;
  BenchConfig config;
  config.value_size_min = 10;
  config.value_size_max = 5000;
  for (const ValueSizeDistribution distribution :
       {ValueSizeDistribution::kUniform, ValueSizeDistribution::kNormal,
        ValueSizeDistribution::kPareto}) {
    SCOPED_TRACE(static_cast<int>(distribution));
    config.value_size_distribution = distribution;
    const ValueSizes sizes(config);
    Random random(TestSeed(1));
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) {
      const size_t size = sizes.Next(&random);
      ASSERT_GE(size, 10u);
      ASSERT_LE(size, 5000u);
      sum += static_cast<double>(size);
    }
    // A size that is not rounded loses half a byte.
    EXPECT_NEAR(sum / kDraws, sizes.Mean(), 0.015 * sizes.Mean() + 0.5);
  }
}

TEST(ValueSizesTest, NormalAndParetoHaveTheirShapes) {
  constexpr int kDraws = 200'000;
  BenchConfig config;
  config.value_size_max = 100'000;
  const auto share_below = [&config](double bound) {
    const ValueSizes sizes(config);
    Random random(TestSeed(1));
    int below = 0;
    for (int i = 0; i < kDraws; ++i) {
      below += static_cast<double>(sizes.Next(&random)) < bound ? 1 : 0;
    }
    return static_cast<double>(below) / kDraws;
  };
  const double deviation = 6 * std::sqrt(0.25 / kDraws);
  config.value_size_distribution = ValueSizeDistribution::kNormal;
  for (const double z : {-2.0, -1.0, 0.0, 1.5}) {
    EXPECT_NEAR(share_below(50'000 + z * 100'000 / 6), std::erfc(-z / std::sqrt(2)) / 2, deviation);
  }
  config.value_size_distribution = ValueSizeDistribution::kPareto;
  for (const double k : {0.0, 0.2615, 0.5}) {
    config.value_k = k;
    config.value_sigma = 1000;
    for (const double bound : {100.0, 1000.0, 10'000.0}) {
      const double tail = k == 0 ? std::exp(-bound / 1000) : std::pow(1 + k * bound / 1000, -1 / k);
      EXPECT_NEAR(share_below(bound), 1 - tail, deviation) << k;
    }
  }
}

TEST(ValueGeneratorTest, OneValueMayBeLargerThanThePoolsUsualSize) {
  BenchConfig config;
  config.value_size_min = config.value_size_max = 3 << 20;
  const ValuePool pool(config);
  ValueGenerator values(config, &pool, 1);
  EXPECT_EQ(values.Next().size(), 3u << 20);
  EXPECT_EQ(values.Next().size(), 3u << 20);
}

/// Each piece of 100 bytes repeats its beginning.
TEST(ValuePoolTest, CompressionRatioIsTheFreshPart) {
  BenchConfig config;
  config.value_size_max = 100;
  for (const int percent : {25, 50, 100}) {
    config.compression_ratio = percent / 100.0;
    const std::string bytes = ValuePool(config).bytes();
    const auto fresh = static_cast<size_t>(percent);
    for (size_t i = fresh; i < 100; ++i) ASSERT_EQ(bytes[i], bytes[i - fresh]);
    const std::set<char> letters(bytes.begin(), bytes.begin() + percent);
    EXPECT_GT(letters.size(), fresh / 4);
  }
}

}  // namespace
}  // namespace nacre::bench
