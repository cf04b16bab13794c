// Goal: the key of a grant that has ended is never that of a later grant.
// Method: an adapter that gives its keys in an order of the test's.

#include "rdma/verbs/spent_keys.h"

#include <gtest/gtest.h>

#include <vector>

namespace nacre::rdma {
namespace {

struct Part {
  uint32_t key = 0;
};

class SpentKeysTest : public testing::Test {
 protected:
  Status Grant(uint32_t* key) {
    Part part;
    const Status status = spent_.Unspent(
        [this](Part* made) {
          made->key = next_ < keys_.size() ? keys_[next_] : keys_.back();
          ++next_;
          return Status::OK();
        },
        [](const Part& made) { return made.key; }, &part);
    *key = part.key;
    return status;
  }

  SpentKeys spent_;
  std::vector<uint32_t> keys_;
  size_t next_ = 0;
};

TEST_F(SpentKeysTest, ARevokedKeyIsPassedOver) {
  keys_ = {5, 5, 5, 6, 5};
  uint32_t key = 0;
  ASSERT_TRUE(Grant(&key).ok());
  EXPECT_EQ(key, 5u);
  spent_.Spend(5);
  spent_.Spend(5);
  ASSERT_TRUE(Grant(&key).ok());
  EXPECT_EQ(key, 6u);
  EXPECT_EQ(next_, 4u);
  EXPECT_TRUE(Grant(&key).IsNoSpace());
}

TEST_F(SpentKeysTest, TheLatestCount) {
  for (uint32_t key = 1; key <= SpentKeys::kMost + 1; ++key) spent_.Spend(key);
  keys_ = {2, SpentKeys::kMost + 1, 1};
  uint32_t key = 0;
  ASSERT_TRUE(Grant(&key).ok());
  EXPECT_EQ(key, 1u);
}

}  // namespace
}  // namespace nacre::rdma
