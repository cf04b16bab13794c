// Goal: a write that ends at once does what a posted one does, in its turn, without a completion
// and without a place in any queue; where it cannot, it breaks the pair as a posted one does.
// Method: each device that offers it, against a peer here and in another process, which is also
// killed. All others do nothing.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rdma {
namespace {

class WriteNowContractTest : public ContractTest {
 protected:
  /// Requests of these are carried out by the caller, and nothing stands between.
  bool WritesNow() const {
    const DeviceSpec& spec = GetParam().spec;
    const bool local = spec.scheme == "shm" || spec.scheme == "cxl" || spec.scheme == "embedded";
    return local && !spec.with_faults && spec.parameters.empty();
  }
  void ExpectCode(CompletionCode expected, std::optional<CompletionCode> code) {
    ASSERT_TRUE(code.has_value());
    EXPECT_EQ(*code, expected) << ToString(*code);
  }
};

INSTANTIATE_TEST_SUITE_P(All, WriteNowContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(WriteNowContractTest, OnlyMemoryThatCanBeStoredToIsWrittenAtOnce) {
  QueuePair* pair = Connect();
  StoreNear(0, "near bytes");
  const auto code = pair->WriteNow(Near(0, 10), Far(77));
  EXPECT_EQ(code.has_value(), WritesNow());
  EXPECT_EQ(LoadFar(77, 10), WritesNow() ? "near bytes" : std::string(10, '\0'));
  ExpectNothing();
  EXPECT_FALSE(pair->broken());
}

TEST_P(WriteNowContractTest, ItTakesNoPlaceInAQueue) {
  if (!WritesNow()) return;
  QueuePair* pair = Connect({.send = 2, .receive = 2});
  ASSERT_TRUE(pair->PostWrite(1, Near(0, 8), Far(0), kSignaled).ok());
  ASSERT_TRUE(pair->PostWrite(2, Near(0, 8), Far(0), kSignaled).ok());
  ASSERT_TRUE(pair->PostWrite(3, Near(0, 8), Far(0), kSignaled).IsBusy());
  StoreNear(0, "at once!");
  for (int i = 0; i < 10; ++i) {
    ExpectCode(CompletionCode::kSuccess, pair->WriteNow(Near(0, 8), Far(64 * i)));
    EXPECT_EQ(LoadFar(64 * i, 8), "at once!");
  }
  ExpectCode(CompletionCode::kSuccess, pair->WriteNow({}, {}));  // No bytes name no memory.
  ExpectNext(1, Opcode::kWrite);
  ExpectNext(2, Opcode::kWrite);
  ExpectNothing();
}

TEST_P(WriteNowContractTest, ItFollowsWhatWasPostedBefore) {
  if (!WritesNow()) return;
  QueuePair* pair = Connect();
  StoreFar(0, "before");
  StoreNear(100, "after!");
  ASSERT_TRUE(pair->PostRead(1, Near(0, 6), Far(0), kSignaled | kMore).ok());
  ExpectCode(CompletionCode::kSuccess, pair->WriteNow(Near(100, 6), Far(0)));
  ExpectNext(1, Opcode::kRead);
  EXPECT_EQ(LoadNear(0, 6), "before");
  EXPECT_EQ(LoadFar(0, 6), "after!");
}

TEST_P(WriteNowContractTest, RandomWritesMatchAModel) {
  if (!WritesNow()) return;
  QueuePair* pair = Connect();
  Random random(TestSeed(302));
  std::string model(kRegionBytes, '\0');
  for (size_t at = 0; at < kRegionBytes; ++at) *NearData(at) = static_cast<char>(random.Next());
  for (int i = 0; i < 300; ++i) {
    const size_t size = random.Skewed(16);
    const size_t near_at = random.Uniform(kRegionBytes - size);
    const size_t far_at = random.Uniform(kRegionBytes - size);
    model.replace(far_at, size, LoadNear(near_at, size));
    ExpectCode(CompletionCode::kSuccess, pair->WriteNow(Near(near_at, size), Far(far_at)));
  }
  EXPECT_TRUE(LoadFar(0, kRegionBytes) == model);
}

TEST_P(WriteNowContractTest, WhatIsNotAllowedBreaksThePair) {
  if (!WritesNow()) return;
  const RemoteBuffer wrong_key{far_key_.address, far_key_.key + 1};
  LocalBuffer too_long = Near(kRegionBytes - 8, 8);
  too_long.size = 9;
  const auto refuse = [&](CompletionCode code, LocalBuffer from, RemoteBuffer to) {
    QueuePair* pair = Connect();
    ExpectCode(code, pair->WriteNow(from, to));
    EXPECT_TRUE(pair->broken());
    ExpectNothing();
    ExpectCode(CompletionCode::kFlushed, pair->WriteNow(Near(0, 8), Far(0)));
    ExpectBroken(pair);
  };
  StoreNear(0, "not there");
  refuse(CompletionCode::kRemoteAccessError, Near(0, 8), wrong_key);
  refuse(CompletionCode::kRemoteAccessError, Near(0, 9), Far(kRegionBytes - 8));
  refuse(CompletionCode::kLocalError, too_long, Far(0));
  EXPECT_EQ(LoadFar(0, 64), std::string(64, '\0'));
}

TEST_P(WriteNowContractTest, ARevokedKeyIsRefused) {
  if (!WritesNow()) return;
  QueuePair* pair = Connect();
  RemoteKey key;
  const int grant = peer_->Grant(far_region_, 4096, 4096, Access::kRemoteAll, &key);
  StoreNear(0, "granted!");
  ExpectCode(CompletionCode::kSuccess, pair->WriteNow(Near(0, 8), {key.address, key.key}));
  peer_->DropGrant(grant);
  StoreNear(0, "too late");
  ExpectCode(CompletionCode::kRemoteAccessError,
             pair->WriteNow(Near(0, 8), {key.address, key.key}));
  EXPECT_EQ(LoadFar(4096, 8), "granted!");
}

TEST_P(WriteNowContractTest, ItMeetsTheEndOfItsPeer) {
  if (!WritesNow() || !GetParam().child) return;
  QueuePair* pair = Connect();
  peer_->Kill();
  const auto limit = std::chrono::steady_clock::now() + Endpoint::kPatience;
  std::optional<CompletionCode> code;
  do {
    code = pair->WriteNow(Near(0, 8), Far(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (code == CompletionCode::kSuccess && std::chrono::steady_clock::now() < limit);
  ExpectCode(CompletionCode::kPeerGone, code);
  EXPECT_TRUE(pair->broken());
  ExpectCode(CompletionCode::kFlushed, pair->WriteNow(Near(0, 8), Far(0)));
}

}  // namespace
}  // namespace nacre::rdma
