// Goal: what is encoded is decoded again, and no bytes whatever make a decoder read past their end
// or accept a number that does not fit.
// Method: round trips at every power of two; every truncation, in exactly sized heap buffers for
// AddressSanitizer; random bytes.

#include "util/coding.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

std::vector<uint64_t> InterestingNumbers() {
  std::vector<uint64_t> numbers = {0, UINT64_MAX};
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  return numbers;
}

/// A copy without a byte behind it.
struct Exact {
  explicit Exact(const Slice& bytes) : memory(new char[bytes.size()]), size(bytes.size()) {
    if (size > 0) std::memcpy(memory.get(), bytes.data(), size);
  }
  Slice slice() const { return {memory.get(), size}; }
  std::unique_ptr<char[]> memory;
  size_t size;
};

TEST(CodingTest, FixedIsLittleEndian) {
  std::string bytes;
  PutFixed32(&bytes, 0x04030201);
  PutFixed64(&bytes, 0x0c0b0a0908070605);
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(static_cast<char>(i + 1), bytes[i]);
  Slice input = bytes;
  uint32_t narrow = 0;
  uint64_t wide = 0;
  ASSERT_TRUE(GetFixed32(&input, &narrow) && GetFixed64(&input, &wide));
  EXPECT_EQ(0x04030201U, narrow);
  EXPECT_EQ(0x0c0b0a0908070605U, wide);
  EXPECT_FALSE(GetFixed32(&input, &narrow));
  char two[2];
  EncodeFixed16(two, 0xbeef);
  EXPECT_EQ(0xbeef, DecodeFixed16(two));
}

TEST(CodingTest, FixedNeedsAllItsBytes) {
  for (size_t size = 0; size < 8; ++size) {
    const Exact bytes(std::string(size, 'x'));
    Slice input = bytes.slice();
    uint64_t wide = 0;
    uint32_t narrow = 0;
    EXPECT_FALSE(GetFixed64(&input, &wide));
    EXPECT_EQ(size, input.size());
    EXPECT_EQ(size >= 4, GetFixed32(&input, &narrow));
  }
}

TEST(CodingTest, VarintRoundTrip) {
  for (const uint64_t number : InterestingNumbers()) {
    std::string bytes;
    PutVarint64(&bytes, number);
    ASSERT_EQ(static_cast<size_t>(VarintLength(number)), bytes.size());
    const Exact exact(bytes);
    Slice input = exact.slice();
    uint64_t decoded = ~number;
    ASSERT_TRUE(GetVarint64(&input, &decoded));
    EXPECT_EQ(number, decoded);
    EXPECT_TRUE(input.empty());

    input = exact.slice();
    uint32_t narrow = 0;
    EXPECT_EQ(number <= UINT32_MAX, GetVarint32(&input, &narrow)) << number;
    if (number <= UINT32_MAX) {
      EXPECT_EQ(number, narrow);
    }

    for (size_t size = 0; size < bytes.size(); ++size) {
      const Exact truncated(Slice(bytes.data(), size));
      input = truncated.slice();
      EXPECT_FALSE(GetVarint64(&input, &decoded));
      EXPECT_EQ(size, input.size());
    }
  }
}

TEST(CodingTest, OverlongVarintsAreRefused) {
  uint64_t number = 0;
  const std::string eleven = std::string(10, '\x80') + '\x01';
  Slice input = eleven;
  EXPECT_FALSE(GetVarint64(&input, &number));
  // Bit 64 and above.
  const std::string too_large = std::string(9, '\xff') + '\x02';
  input = too_large;
  EXPECT_FALSE(GetVarint64(&input, &number));
  const std::string largest = std::string(9, '\xff') + '\x01';
  input = largest;
  ASSERT_TRUE(GetVarint64(&input, &number));
  EXPECT_EQ(UINT64_MAX, number);
}

TEST(CodingTest, LengthPrefixedSliceStaysInside) {
  for (const size_t size : {0, 1, 127, 128, 20000}) {
    std::string bytes;
    PutLengthPrefixedSlice(&bytes, std::string(size, 'v'));
    bytes += "tail";
    Slice input = bytes;
    Slice value;
    ASSERT_TRUE(GetLengthPrefixedSlice(&input, &value));
    EXPECT_EQ(std::string(size, 'v'), value.ToString());
    EXPECT_EQ("tail", input.ToString());
    if (size == 0) continue;
    const Exact truncated(Slice(bytes.data(), bytes.size() - 5));
    input = truncated.slice();
    EXPECT_FALSE(GetLengthPrefixedSlice(&input, &value));
    EXPECT_EQ(truncated.size, input.size());
  }
  std::string huge;
  PutVarint64(&huge, UINT64_MAX);
  Slice input = huge;
  Slice value;
  EXPECT_FALSE(GetLengthPrefixedSlice(&input, &value));
}

TEST(CodingTest, RandomBytesNeverReadPastTheEnd) {
  Random random(TestSeed(301));
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes(random.Uniform(16), '\0');
    // High bits set more often than not, to get long numbers.
    for (char& c : bytes) c = static_cast<char>(random.Next() | (random.OneIn(3) ? 0 : 0x80));
    const Exact exact(bytes);
    Slice input = exact.slice();
    Slice value;
    uint64_t number = 0;
    while (GetVarint64(&input, &number)) {
    }
    input = exact.slice();
    while (GetLengthPrefixedSlice(&input, &value)) {
      ASSERT_LE(exact.slice().begin(), value.begin());
      ASSERT_GE(exact.slice().end(), value.end());
    }
  }
}

}  // namespace
}  // namespace nacre
