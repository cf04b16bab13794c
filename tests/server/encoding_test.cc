// Goal: rows are in the order of what they stand for, are read as they were written, and malformed
// ones are refused. Method: values at the edges and random ones, both ways.

#include "server/store/encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::server {
namespace {

const RowNames kNames(/*by_slot=*/false);
const RowNames kSlotNames(/*by_slot=*/true);

/// The slots that Redis Cluster's specification and Redis's own tests name.
TEST(ServerEncodingTest, SlotsAreThoseOfRedisCluster) {
  EXPECT_EQ(SlotOfKey("123456789"), 0x31c3U);
  EXPECT_EQ(SlotOfKey("foo"), 12182U);
  EXPECT_EQ(SlotOfKey(""), 0U);
  EXPECT_EQ(SlotOfKey("{user1000}.following"), SlotOfKey("user1000"));
  EXPECT_EQ(SlotOfKey("foo{{bar}}zap"), SlotOfKey("{bar"));
  EXPECT_EQ(SlotOfKey("foo{bar}{zap}"), SlotOfKey("bar"));
  EXPECT_NE(SlotOfKey("foo{}{bar}"), SlotOfKey("bar"));
}

TEST(ServerEncodingTest, PrefixesOfSlotsAreReadAsWrittenAndInOrder) {
  std::string before;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::string prefix = SlotPrefix(slot);
    EXPECT_LT(before, prefix);
    uint32_t read = kSlots;
    EXPECT_TRUE(ParseSlotPrefix(prefix, &read));
    EXPECT_EQ(read, slot);
    before = prefix;
  }
  uint32_t slot = 0;
  for (const std::string& wrong : {std::string(), std::string("a"), std::string("abc"),
                                   SlotPrefix(kSlots), std::string("\xff\xff")}) {
    EXPECT_FALSE(ParseSlotPrefix(wrong, &slot)) << wrong;
  }
}

TEST(ServerEncodingTest, RowsOfAClusterBeginWithTheirSlots) {
  const std::string foo = SlotPrefix(12182);
  EXPECT_EQ(kSlotNames.Meta("foo"), foo + kNames.Meta("foo"));
  EXPECT_EQ(kSlotNames.ElementPrefix("foo", 3), foo + kNames.ElementPrefix("foo", 3));
  EXPECT_EQ(kSlotNames.Expiry(7, "foo"), foo + kNames.Expiry(7, "foo"));
  EXPECT_EQ(kSlotNames.Garbage("foo", 3), foo + kNames.Garbage("foo", 3));
  EXPECT_EQ(kSlotNames.Kind(12182, kMetaRow), foo + "m");
  EXPECT_EQ(kSlotNames.SectionOf("foo"), 12182U);
  EXPECT_EQ(kSlotNames.SectionOfRow(kSlotNames.Meta("foo")), 12182U);
  EXPECT_EQ(kSlotNames.KindOf(kSlotNames.Meta("foo")), kMetaRow);
  EXPECT_EQ(kSlotNames.KeyOfMeta(kSlotNames.Meta("foo")), "foo");
}

TEST(ServerEncodingTest, MetaRowsAreReadAsWritten) {
  Meta list;
  list.type = Type::kList;
  list.expires_at_ms = 1'700'000'000'123;
  list.incarnation = 0x0123456789abcdef;
  list.count = 300;
  list.first = -7;
  Meta text;
  text.value = std::string("a\0b", 3);
  Meta hash;
  hash.type = Type::kHash;
  hash.incarnation = 1;
  hash.count = 1;
  for (const Meta& meta : {list, text, hash}) {
    const std::string bytes = EncodeMeta(meta);
    Meta read;
    ASSERT_TRUE(DecodeMeta(bytes, &read));
    EXPECT_EQ(read.type, meta.type);
    EXPECT_EQ(read.expires_at_ms, meta.expires_at_ms);
    EXPECT_EQ(read.value, meta.value);
    EXPECT_EQ(read.incarnation, meta.incarnation);
    EXPECT_EQ(read.count, meta.count);
    EXPECT_EQ(read.first, meta.first);
    for (size_t size = 0; meta.type != Type::kString && size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeMeta(bytes.substr(0, size), &read)) << size;
    }
    EXPECT_EQ(DecodeMeta(bytes + "x", &read), meta.type == Type::kString);
  }
  Meta read;
  EXPECT_FALSE(DecodeMeta(std::string(1, '\x06'), &read));
  EXPECT_FALSE(DecodeMeta(std::string(1, '\0'), &read));
  uint64_t expires_at_ms = 0;
  Slice value;
  EXPECT_TRUE(DecodeStringMeta(EncodeMeta(text), &expires_at_ms, &value));
  EXPECT_FALSE(DecodeStringMeta(EncodeMeta(list), &expires_at_ms, &value));
}

/// A row is stored for ever: its bytes are these.
TEST(ServerEncodingTest, TheNumbersAreFrozen) {
  Meta meta;
  meta.value = "v";
  meta.expires_at_ms = 0x0102;
  EXPECT_EQ(kNames.Meta("k"), "mk");
  EXPECT_EQ(EncodeMeta(meta), std::string("\x81\x02\x01\0\0\0\0\0\0v", 10));
  EXPECT_EQ(kNames.ElementPrefix("k", 0x0102), std::string("e\x01k\0\0\0\0\0\0\x01\x02", 11));
  EXPECT_EQ(FieldSubKey("f"), "ff");
  EXPECT_EQ(IndexSubKey(1), std::string("i\x80\0\0\0\0\0\0\x01", 9));
  EXPECT_EQ(ScoreSubKey(1.0, "m"), std::string("s\xbf\xf0\0\0\0\0\0\0m", 10));
  EXPECT_EQ(kNames.Expiry(0x0102, "k"), std::string("x\0\0\0\0\0\0\x01\x02k", 10));
  EXPECT_EQ(kNames.Garbage("k", 1), std::string("g\x01k\0\0\0\0\0\0\0\x01", 11));
}

TEST(ServerEncodingTest, ScoresAndIndexesAreInOrder) {
  Random random(TestSeed(1));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> scores = {-kInfinity, -1e300, -1.5, -1,  -5e-324,
                                0,          5e-324, 1,    1.5, kInfinity};
  for (int i = 0; i < 1000; ++i) {
    scores.push_back((random.NextDouble() - 0.5) * std::pow(10, random.Uniform(600) - 300.0));
  }
  for (const double a : scores) {
    Slice bytes;
    const std::string written = OrderedBits(a);
    bytes = written;
    double read = 0;
    ASSERT_TRUE(TakeOrderedBits(&bytes, &read));
    EXPECT_EQ(read, a);
    const double b = scores[random.Uniform(scores.size())];
    EXPECT_EQ(OrderedBits(a) < OrderedBits(b), a < b) << a << " " << b;
  }
  EXPECT_EQ(OrderedBits(-0.0), OrderedBits(0.0));
  Slice none(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff"));
  double read = 0;
  EXPECT_FALSE(TakeOrderedBits(&none, &read));
  for (int i = 0; i < 1000; ++i) {
    const auto a = static_cast<int64_t>(random.Next());
    const auto b = static_cast<int64_t>(random.Next());
    EXPECT_EQ(IndexSubKey(a) < IndexSubKey(b), a < b);
  }
}

TEST(ServerEncodingTest, KeysDoNotMixWhateverTheirBytes) {
  Random random(TestSeed(1));
  const auto text = [&] {
    std::string bytes;
    for (uint64_t size = random.Uniform(4); size > 0; --size) {
      bytes.push_back(
          static_cast<char>(random.OneIn(2) ? random.Uniform(3) : 0xfe + random.Uniform(2)));
    }
    return bytes;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string one = text();
    const std::string other = text();
    const std::string prefix = kNames.ElementPrefix(one, 5);
    const std::string row = kNames.ElementPrefix(other, 5) + FieldSubKey(text());
    EXPECT_EQ(row.starts_with(prefix), one == other);
    EXPECT_EQ(prefix <= row && row < BehindPrefix(prefix), one == other);
    Slice key;
    uint64_t incarnation = 0;
    const std::string garbage = kNames.Garbage(one, 7);
    ASSERT_TRUE(kNames.DecodeGarbage(garbage, &key, &incarnation));
    EXPECT_EQ(key.ToString(), one);
    EXPECT_EQ(incarnation, 7U);
    uint64_t expires_at_ms = 0;
    const std::string expiry = kNames.Expiry(9, one);
    ASSERT_TRUE(kNames.DecodeExpiry(expiry, &expires_at_ms, &key));
    EXPECT_EQ(key.ToString(), one);
    EXPECT_EQ(expires_at_ms, 9U);
    ASSERT_TRUE(kSlotNames.DecodeExpiry(kSlotNames.Expiry(9, one), &expires_at_ms, &key));
    ASSERT_TRUE(kSlotNames.DecodeGarbage(kSlotNames.Garbage(one, 7), &key, &incarnation));
    EXPECT_FALSE(kSlotNames.DecodeGarbage(Slice("m"), &key, &incarnation));
  }
}

}  // namespace
}  // namespace nacre::server
