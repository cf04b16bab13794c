// Goal: the copies beside other writers copy exactly what they are asked to, at each size and
// alignment, in their short, long and streaming forms.
// Method: against std::memcpy, with guard bytes around.

#include "util/memory/concurrent_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {

namespace {

class ConcurrentCopyTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 300000;

  ConcurrentCopyTest() : random_(TestSeed(701)), from_(kBytes), to_(kBytes), expected_(kBytes) {
    for (char& byte : from_) byte = static_cast<char>(random_.Next());
  }

  void Check(size_t size, size_t from_at, size_t to_at) {
    for (const bool publish : {true, false}) {
      std::memset(to_.data(), 0x5a, to_at + size + 64);
      std::memset(expected_.data(), 0x5a, to_at + size + 64);
      std::memcpy(expected_.data() + to_at, from_.data() + from_at, size);
      (publish ? CopyAndPublish : CopyConcurrent)(to_.data() + to_at, from_.data() + from_at, size);
      ASSERT_EQ(std::memcmp(to_.data(), expected_.data(), to_at + size + 64), 0)
          << size << " bytes from +" << from_at << " to +" << to_at;
    }
  }

  Random random_;
  std::vector<char> from_;
  std::vector<char> to_;
  std::vector<char> expected_;
};

TEST_F(ConcurrentCopyTest, ShortCopiesAtAllAlignments) {
  for (size_t size = 0; size < 80; size++) {
    for (size_t from_at = 0; from_at < 9; from_at++) {
      for (size_t to_at = 64; to_at < 64 + 17; to_at++) Check(size, from_at, to_at);
    }
  }
}

TEST_F(ConcurrentCopyTest, LongCopiesAtRandomAlignments) {
  for (int i = 0; i < 300; i++) {
    Check(random_.Skewed(18), random_.Uniform(64), 64 + random_.Uniform(128));
  }
}

TEST_F(ConcurrentCopyTest, SizesAroundTheStreamingThreshold) {
  for (size_t size = (16 << 10) - 3; size < (16 << 10) + 140; size++) {
    Check(size, size % 61, 64 + size % 67);
  }
}

}  // namespace

}  // namespace nacre
