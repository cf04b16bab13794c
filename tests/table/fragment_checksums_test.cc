// Goal: the tail of a fragment says of each chunk whether it is what was written, and nothing that
// is damaged, cut off, newer or another fragment's is taken for one; extents have room for it.

#include "table/format/fragment_checksums.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kSumChunk = 1000;

std::string Bytes(Random* random, size_t n) {
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(random->Next());
  return bytes;
}

FragmentChecksums Sum(const std::string& bytes, uint64_t chunk_size = kSumChunk) {
  FragmentChecksums sums{
      .table_id = 77, .fragment = 5, .bytes = 0, .chunk_size = chunk_size, .chunks = {}};
  for (size_t at = 0; at < bytes.size(); at += chunk_size) {
    sums.Add(bytes.data() + at, std::min<size_t>(chunk_size, bytes.size() - at));
  }
  return sums;
}

std::string Tail(const FragmentChecksums& sums) {
  std::string tail;
  EncodeFragmentTail(sums, &tail);
  return tail;
}

TEST(FragmentChecksumsTest, FindTheChunkThatWasFlipped) {
  Random random(TestSeed(301));
  for (const size_t size : {0, 1, 999, 1000, 1001, 5000, 5123}) {
    std::string bytes = Bytes(&random, size);
    const std::string tail = Tail(Sum(bytes));
    EXPECT_EQ(tail.size(), FragmentTailBytes(size, kSumChunk));
    FragmentChecksums read;
    // What lies behind the tail does not matter.
    ASSERT_TRUE(IsOk(DecodeFragmentTail(tail + "xyz", {77, 5, size}, &read)));
    EXPECT_EQ(read.chunks.size(), (size + kSumChunk - 1) / kSumChunk);
    for (size_t i = 0; i < read.chunks.size(); ++i) {
      EXPECT_TRUE(read.Matches(i, bytes.data() + i * kSumChunk));
    }
    for (size_t flip = 0; flip < size; flip += 1 + size / 7) {
      bytes[flip] = static_cast<char>(bytes[flip] ^ 1 << random.Uniform(8));
      for (size_t i = 0; i < read.chunks.size(); ++i) {
        EXPECT_EQ(read.Matches(i, bytes.data() + i * kSumChunk), i != flip / kSumChunk);
      }
      bytes = Bytes(&random, size);
      read = Sum(bytes);
    }
  }
}

TEST(FragmentChecksumsTest, NothingButTheTailItselfIsTaken) {
  Random random(TestSeed(302));
  const std::string tail = Tail(Sum(Bytes(&random, 3456)));
  FragmentChecksums read;
  for (size_t n = 0; n < tail.size(); ++n) {
    EXPECT_TRUE(DecodeFragmentTail(Slice(tail.data(), n), {77, 5, 3456}, &read).IsCorruption());
  }
  for (size_t bit = 0; bit < 8 * tail.size(); ++bit) {
    std::string flipped = tail;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_TRUE(DecodeFragmentTail(flipped, {77, 5, 3456}, &read).IsCorruption()) << bit;
  }
  EXPECT_TRUE(DecodeFragmentTail(tail, {76, 5, 3456}, &read).IsCorruption());
  EXPECT_TRUE(DecodeFragmentTail(tail, {77, 4, 3456}, &read).IsCorruption());
  EXPECT_TRUE(DecodeFragmentTail(tail, {77, 5, 3457}, &read).IsCorruption());
}

TEST(FragmentChecksumsTest, ANewerVersionIsNamed) {
  Random random(TestSeed(303));
  std::string tail = Tail(Sum(Bytes(&random, 3456)));
  EncodeFixed16(tail.data() + 4, 9);
  const size_t body = tail.size() - 4;
  EncodeFixed32(tail.data() + body, Crc32c(tail.data(), body));
  FragmentChecksums read;
  EXPECT_TRUE(IsFailure(DecodeFragmentTail(tail, {77, 5, 3456}, &read), Status::Code::kNotSupported,
                        "version 9"));
}

TEST(FragmentChecksumsTest, CapacityIsTheMostThatFits) {
  for (const uint64_t chunk : {uint64_t{1}, uint64_t{1000}, uint64_t{4096}, uint64_t{256} << 10}) {
    for (uint64_t extent = 0; extent < 30'000; ++extent) {
      const uint64_t capacity = FragmentCapacity(extent, chunk);
      const auto needed = [&](uint64_t bytes) {
        return kFragmentHeadBytes + bytes + FragmentTailBytes(bytes, chunk);
      };
      if (capacity > 0) {
        ASSERT_LE(needed(capacity), extent);
      }
      ASSERT_GT(needed(capacity + 1), extent);
    }
  }
}

}  // namespace
}  // namespace nacre
