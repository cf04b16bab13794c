// Goal: Crc32c is the standard's CRC32C and Hash64 is XXH3; both are parts of formats, so their
// values must never change.
// Method: the vectors of RFC 3720 section B.4; a bit-by-bit reference at all small sizes and
// alignments; values of the reference implementation of XXH3.

#include "util/hash.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/seed.h"
#include "util/codes/crc32c.h"
#include "util/random.h"

namespace nacre {
namespace {

uint32_t SlowCrc32c(const Slice& bytes) {
  uint32_t crc = UINT32_MAX;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

uint32_t Crc(const std::string& bytes) { return Crc32c(bytes.data(), bytes.size()); }

TEST(Crc32cTest, VectorsOfTheStandard) {
  EXPECT_EQ(0x8a9136aaU, Crc(std::string(32, '\0')));
  EXPECT_EQ(0x62a8ab43U, Crc(std::string(32, '\xff')));
  std::string up;
  for (char c = 0; c < 32; ++c) up.push_back(c);
  EXPECT_EQ(0x46dd794eU, Crc(up));
  EXPECT_EQ(0x113fdb5cU, Crc({up.rbegin(), up.rend()}));
  EXPECT_EQ(0xe3069283U, Crc("123456789"));
}

TEST(Crc32cTest, NoBytesLeaveTheSeed) {
  EXPECT_EQ(0U, Crc32c(nullptr, 0));
  EXPECT_EQ(0x12345678U, Crc32c(nullptr, 0, 0x12345678));
}

TEST(Crc32cTest, AgreesWithReferenceAtEachSizeAndAlignment) {
  Random random(TestSeed(302));
  for (size_t size = 0; size < 1200; size += size < 300 ? 1 : 37) {
    for (size_t offset = 0; offset < 9; ++offset) {
      // Exactly sized, so that AddressSanitizer sees a read past the end.
      const std::unique_ptr<char[]> memory(new char[offset + size]);
      for (size_t i = 0; i < offset + size; ++i) memory[i] = static_cast<char>(random.Next());
      const Slice bytes(memory.get() + offset, size);
      ASSERT_EQ(SlowCrc32c(bytes), Crc32c(bytes.data(), size)) << size << " at " << offset;
      const size_t cut = random.Uniform(size + 1);
      ASSERT_EQ(SlowCrc32c(bytes),
                Crc32c(bytes.data() + cut, size - cut, Crc32c(bytes.data(), cut)));
    }
  }
}

TEST(Hash64Test, IsXxh3) {
  EXPECT_EQ(0x2d06800538d394c2U, Hash64(""));
  EXPECT_EQ(0xe6c632b61e964e1fU, Hash64("a"));
  EXPECT_EQ(0x64439946d8fa212dU, Hash64("0123456789abcdef"));
  EXPECT_EQ(0x6e60f44445da590fU, Hash64("nacre: thin layers, very hard to break"));
}

}  // namespace
}  // namespace nacre
