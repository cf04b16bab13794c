// Goal: no key that was added is denied; at 10 bits a key about one other key in a hundred is let
// through; malformed bytes deny nothing and are never read past their end.
// Method: sequential and random keys of many counts; every truncation and corruption of a trailer.

#include "util/codes/bloom.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tests/support/seed.h"
#include "util/coding.h"
#include "util/hash.h"
#include "util/random.h"

namespace nacre {
namespace {

uint64_t HashOfNumber(uint64_t number) {
  char bytes[8];
  EncodeFixed64(bytes, number);
  return Hash64(Slice(bytes, sizeof(bytes)));
}

double FalsePositives(size_t keys, int bits_per_key) {
  BloomBuilder builder(bits_per_key);
  for (uint64_t i = 0; i < keys; ++i) builder.Add(HashOfNumber(i));
  EXPECT_EQ(keys, builder.count());
  std::string bytes = "before";
  builder.Finish(&bytes);
  EXPECT_EQ(6 + BloomBuilder::Bytes(keys, bits_per_key), bytes.size());
  Slice filter_bytes = bytes;
  filter_bytes.remove_prefix(6);
  const BloomFilter filter(filter_bytes);
  for (uint64_t i = 0; i < keys; ++i) {
    filter.Prefetch(HashOfNumber(i));
    EXPECT_TRUE(filter.MayContain(HashOfNumber(i)));
  }
  constexpr uint64_t kProbes = 100'000;
  uint64_t positives = 0;
  for (uint64_t i = 0; i < kProbes; ++i) positives += filter.MayContain(HashOfNumber(~i));
  return static_cast<double>(positives) / kProbes;
}

TEST(BloomTest, AddedKeysAreFoundAndFewOthers) {
  EXPECT_EQ(0, FalsePositives(0, 10));
  for (const size_t keys : {1, 10, 100, 1000}) EXPECT_LT(FalsePositives(keys, 10), 0.02) << keys;
  for (const size_t keys : {10'000, 200'000}) EXPECT_LT(FalsePositives(keys, 10), 0.0115) << keys;
}

TEST(BloomTest, MoreBitsLetFewerThrough) {
  double last = 1;
  for (const int bits : {2, 5, 10, 15, 20}) {
    const double rate = FalsePositives(20'000, bits);
    EXPECT_LT(rate, last) << bits;
    last = rate;
  }
  EXPECT_LT(last, 0.001);
}

TEST(BloomTest, CostsItsBitsPerKey) {
  EXPECT_LE(BloomBuilder::Bytes(1'000'000), 1'250'100U);
  EXPECT_EQ(64U + 8, BloomBuilder::Bytes(0));
}

TEST(BloomTest, MalformedBytesDenyNothing) {
  Random random(TestSeed(309));
  BloomBuilder builder;
  for (uint64_t i = 0; i < 200; ++i) builder.Add(HashOfNumber(i));
  std::string good;
  builder.Finish(&good);
  ASSERT_FALSE(BloomFilter(good).MayContain(HashOfNumber(1'000'003)));

  const auto denies_nothing = [&random](const Slice& bytes) {
    // Exactly sized, so that AddressSanitizer sees a read past either end.
    const std::unique_ptr<char[]> memory(new char[bytes.size()]);
    if (!bytes.empty()) std::memcpy(memory.get(), bytes.data(), bytes.size());
    const BloomFilter filter(Slice(memory.get(), bytes.size()));
    for (int i = 0; i < 20; ++i) {
      if (!filter.MayContain(random.Next())) return false;
    }
    return true;
  };
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(denies_nothing(Slice(good.data(), size))) << size;
  }
  const size_t trailer = good.size() - 8;
  for (size_t at = 0; at < 8; ++at) {
    for (const char flip : {'\x80', '\x10', '\xff'}) {
      std::string bad = good;
      bad[trailer + at] = static_cast<char>(bad[trailer + at] ^ flip);
      EXPECT_TRUE(denies_nothing(bad)) << at;
    }
  }
  std::string bad = good;
  bad[trailer + 4] = 0;
  EXPECT_TRUE(denies_nothing(bad));
  bad = std::string(8, '\0');
  EXPECT_TRUE(denies_nothing(bad));
}

TEST(BloomTest, FormatIsFrozen) {
  // Filters are stored in tables: the bits of a key must not move.
  BloomBuilder builder;
  for (uint64_t i = 0; i < 100; ++i) builder.Add(HashOfNumber(i));
  std::string bytes;
  builder.Finish(&bytes);
  EXPECT_EQ(0x9640278a407b957dU, Hash64(bytes));
}

}  // namespace
}  // namespace nacre
