// Goal: registered memory that was given back is lent again; what is too large to be kept, or would
// be more than is to be kept, is not, and no buffer is smaller than was asked for.

#include "pool/read/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

#include "rdma/transport.h"
#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre::pool {
namespace {

class BufferPoolTest : public testing::Test {
 protected:
  static constexpr size_t kKept = 64 << 10;

  void SetUp() override {
    ASSERT_TRUE(IsOk(rdma::OpenDevice("shm", {}, Clock::System(), &device_)));
    pool_ = std::make_unique<BufferPool>(device_.get(), kKept);
  }
  Buffer Take(size_t bytes) {
    Buffer buffer;
    EXPECT_TRUE(IsOk(pool_->Take(bytes, &buffer)));
    EXPECT_GE(buffer.size(), bytes);
    return buffer;
  }

  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<BufferPool> pool_;
};

TEST_F(BufferPoolTest, LendsAgainWhatWasGivenBack) {
  const char* before = nullptr;
  {
    const Buffer buffer = Take(5000);
    EXPECT_EQ(buffer.size(), 8192u);
    before = buffer.data();
  }
  EXPECT_EQ(Take(8192).data(), before);
  const Buffer first = Take(6000);
  const Buffer second = Take(6000);
  EXPECT_NE(first.data(), second.data());
}

TEST_F(BufferPoolTest, TakesNoMoreThanIsNeededForWhatItWillNotKeep) {
  constexpr size_t kLarge = (1 << 20) + 4096;
  EXPECT_EQ(Take(kLarge).size(), kLarge);
  EXPECT_EQ(Take(kLarge).size(), kLarge);
  // As large as all that is kept.
  EXPECT_EQ(Take(kKept).size(), kKept);
}

TEST_F(BufferPoolTest, KeepsWhatFits) {
  constexpr size_t kHalf = kKept / 2;
  {
    const Buffer first = Take(kHalf);
    const Buffer second = Take(kHalf);
    const Buffer third = Take(kHalf);
  }
  // Whatever was not kept, each is one that nothing else has.
  const Buffer first = Take(kHalf);
  const Buffer second = Take(kHalf);
  const Buffer third = Take(kHalf);
  EXPECT_TRUE(first.data() != second.data() && second.data() != third.data() &&
              first.data() != third.data());
}

TEST_F(BufferPoolTest, NothingSmallerIsLentWhereTheBoundIsNoPowerOfTwo) {
  BufferPool odd(device_.get(), 3 << 20);
  {
    Buffer buffer;
    ASSERT_TRUE(IsOk(odd.Take((2 << 20) + 4096, &buffer)));
  }
  Buffer buffer;
  ASSERT_TRUE(IsOk(odd.Take(4 << 20, &buffer)));
  EXPECT_GE(buffer.size(), size_t{4} << 20);
}

}  // namespace
}  // namespace nacre::pool
