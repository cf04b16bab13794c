// Goal: a node takes a changed file with secrets once it is whole, and no file that makes no sense.
// Method: files that are replaced, written piece by piece, damaged and removed, between looks.

#include "memnode/secret_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::pool {
namespace {

constexpr char kSecretA[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr char kSecretB[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

class SecretWatchTest : public ::testing::Test {
 protected:
  SecretWatchTest() {
    Write("admin " + std::string(kSecretA) + " a\n");
    SecretSource source{.path = path_};
    EXPECT_TRUE(IsOk(ReadSecretFile(path_, nullptr, &source.file)));
    EXPECT_TRUE(IsOk(rdma::SecretRing::Create(source.file.Terms(), &ring_)));
    watch_ = std::make_unique<SecretWatch>(
        source, ring_,
        [this](std::vector<SecretFile::Quota> quotas) { quotas_ = std::move(quotas); }, nullptr);
    watch_->Look();
    watch_->Look();
    EXPECT_EQ(ring_->size(), 1u);
  }

  /// In place, as some editors do. The size differs each time, whatever the clock of the file
  /// system tells of the time.
  void Write(const std::string& lines) {
    std::ofstream file(path_, std::ios::trunc);
    file << "nacre-secrets 1\n" << lines << "#" << std::string(++writes_, '.') << "\n";
  }

  const TempFolder folder_;
  const std::string path_ = folder_.File("secrets");
  size_t writes_ = 0;
  std::shared_ptr<rdma::SecretRing> ring_;
  std::vector<SecretFile::Quota> quotas_;
  std::unique_ptr<SecretWatch> watch_;
};

TEST_F(SecretWatchTest, AChangeIsTakenWhenItHasSettled) {
  const auto before = ring_->own();
  Write("admin " + std::string(kSecretA) + " a\nread " + kSecretB + " b\nquota x 1MiB\n");
  watch_->Look();
  EXPECT_EQ(ring_->size(), 1u) << "it may not be whole yet";
  watch_->Look();
  EXPECT_EQ(ring_->size(), 2u);
  EXPECT_EQ(quotas_, (std::vector<SecretFile::Quota>{{"x", 1 << 20}}));
  EXPECT_EQ(ring_->own(), before);

  // One that is written piece by piece, with a look at each, counts as a whole.
  Write("read " + std::string(kSecretB) + " b\n");
  watch_->Look();
  Write("read " + std::string(kSecretB) + " b\nadmin " + kSecretA + " a\n");
  watch_->Look();
  EXPECT_FALSE(before->revoked());
  watch_->Look();
  EXPECT_FALSE(before->revoked());
  EXPECT_TRUE(quotas_.empty());
}

TEST_F(SecretWatchTest, AnOrderIsFollowedAtOnce) {
  const auto before = ring_->own();
  Write("admin " + std::string(kSecretB) + " b\n");
  watch_->Reload();
  EXPECT_TRUE(before->revoked());
  EXPECT_EQ(ring_->own()->secret(), kSecretB);
}

TEST_F(SecretWatchTest, WhatMakesNoSenseOrIsMissingChangesNothing) {
  const auto before = ring_->own();
  Write("admin " + std::string(kSecretB) + " b\nread oops\n");
  watch_->Reload();
  watch_->Look();
  watch_->Look();
  EXPECT_EQ(ring_->own(), before);
  std::filesystem::remove(path_);
  watch_->Look();
  watch_->Look();
  watch_->Reload();
  EXPECT_EQ(ring_->own(), before);
  EXPECT_FALSE(before->revoked());
  Write("admin " + std::string(kSecretB) + " b\n");
  watch_->Look();
  watch_->Look();
  EXPECT_EQ(ring_->own()->secret(), kSecretB) << "it is back";
}

}  // namespace
}  // namespace nacre::pool
