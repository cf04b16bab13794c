// Goal: a grant's key is good for the part, with the access and for as long as it was granted, and
// for nothing else (rdma/transport.h, MemoryRegion::Grant).
// Method: a region that peers may read, grants of parts of it, and requests within and beyond each,
// over each backend and decorator. A request that fails breaks its queue pair, so each that is to
// fail has one of its own.

#include <thread>

#include "tests/rdma/contract_fixture.h"

namespace nacre::rdma {

namespace {

constexpr size_t kGrantBytes = 64 << 10;
constexpr size_t kStart = 8192;
constexpr size_t kSize = 12288;

class GrantContractTest : public ContractTest {
 protected:
  GrantContractTest() {
    region_ = peer_->Allocate(kGrantBytes, Access::kRemoteReadOnly, &region_key_);
  }

  static RemoteBuffer At(const RemoteKey& key, int64_t offset) {
    return {key.address + static_cast<uint64_t>(offset), key.key};
  }
  RemoteKey Granted(size_t offset, size_t size, Access access, int* number = nullptr) {
    RemoteKey key;
    const int made = peer_->Grant(region_, offset, size, access, &key);
    EXPECT_EQ(key.address, region_key_.address + offset);
    EXPECT_EQ(key.size, size);
    EXPECT_NE(key.key, region_key_.key);
    if (number != nullptr) *number = made;
    return key;
  }

  void ExpectWrites(QueuePair* pair, const RemoteKey& key, int64_t offset,
                    const std::string& bytes) {
    StoreNear(0, bytes);
    ASSERT_TRUE(pair->PostWrite(1, Near(0, bytes.size()), At(key, offset), kSignaled).ok());
    ExpectNext(1, Opcode::kWrite);
    const auto place = static_cast<size_t>(offset) + (key.address - region_key_.address);
    EXPECT_EQ(peer_->Load(region_, place, bytes.size()), bytes);
  }
  void ExpectReads(QueuePair* pair, const RemoteKey& key, int64_t offset,
                   const std::string& bytes) {
    const auto place = static_cast<size_t>(offset) + (key.address - region_key_.address);
    peer_->Store(region_, place, bytes);
    ASSERT_TRUE(pair->PostRead(2, Near(4096, bytes.size()), At(key, offset), kSignaled).ok());
    ExpectNext(2, Opcode::kRead);
    EXPECT_EQ(LoadNear(4096, bytes.size()), bytes);
  }
  void ExpectWriteRefused(const RemoteKey& key, int64_t offset, size_t size) {
    QueuePair* pair = Connect();
    ASSERT_TRUE(pair->PostWrite(3, Near(0, size), At(key, offset), kSignaled).ok());
    ExpectNext(3, Opcode::kWrite, CompletionCode::kRemoteAccessError);
  }
  void ExpectReadRefused(const RemoteKey& key, int64_t offset, size_t size) {
    QueuePair* pair = Connect();
    ASSERT_TRUE(pair->PostRead(4, Near(0, size), At(key, offset), kSignaled).ok());
    ExpectNext(4, Opcode::kRead, CompletionCode::kRemoteAccessError);
  }

  int region_ = -1;
  RemoteKey region_key_;
};

INSTANTIATE_TEST_SUITE_P(All, GrantContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(GrantContractTest, AGrantGivesWhatTheRegionsKeyDoesNot) {
  const RemoteKey before = Granted(kStart, kSize, Access::kRemoteAll);
  QueuePair* pair = Connect();
  const RemoteKey after = Granted(kStart + kSize, 4096, Access::kRemoteAll);
  for (const RemoteKey& key : {before, after}) {
    ExpectWrites(pair, key, 0, "first bytes");
    ExpectWrites(pair, key, static_cast<int64_t>(key.size) - 10, "last bytes");
    ExpectReads(pair, key, 100, "read as well");
    peer_->Store(region_, key.address - region_key_.address + 512, std::string(8, '\0'));
    ASSERT_TRUE(pair->PostFetchAdd(5, Near(64, 8), At(key, 512), 42, kSignaled).ok());
    ExpectNext(5, Opcode::kFetchAdd);
    ASSERT_TRUE(pair->PostCompareSwap(6, Near(64, 8), At(key, 512), 42, 43, kSignaled).ok());
    ExpectNext(6, Opcode::kCompareSwap);
    EXPECT_EQ(LoadNear(64, 1), std::string(1, 42));
  }
  // What it does give goes on.
  ExpectReads(pair, region_key_, 0, "start of the region");
  ExpectReads(pair, region_key_, kStart + 5, "where a grant is");
  ExpectWriteRefused(region_key_, 0, 8);
  ExpectWriteRefused(region_key_, kStart, 8);
}

TEST_P(GrantContractTest, BeyondItsPartAGrantIsWorthNothing) {
  const RemoteKey key = Granted(kStart, kSize, Access::kRemoteAll);
  const auto end = static_cast<int64_t>(kSize);
  ExpectWriteRefused(key, -8, 8);
  ExpectWriteRefused(key, -4, 8);
  ExpectWriteRefused(key, end, 8);
  ExpectWriteRefused(key, end - 4, 8);
  ExpectReadRefused(key, -1, 2);
  ExpectReadRefused(key, end - 1, 2);
  ExpectWriteRefused(key, 0, kSize + 1);
  EXPECT_EQ(peer_->Load(region_, kStart - 8, 8), std::string(8, '\0'));
  EXPECT_EQ(peer_->Load(region_, kStart + kSize, 8), std::string(8, '\0'));
}

TEST_P(GrantContractTest, AGrantToReadIsNoneToWrite) {
  const int region = peer_->Allocate(kGrantBytes, Access::kRemoteAll, &region_key_);
  region_ = region;
  const RemoteKey key = Granted(kStart, kSize, Access::kRemoteReadOnly);
  QueuePair* pair = Connect();
  ExpectReads(pair, key, 17, "readable");
  ExpectWrites(pair, region_key_, kStart, "by the region's own key");
  ExpectWriteRefused(key, 0, 8);
  pair = Connect();
  ASSERT_TRUE(pair->PostFetchAdd(7, Near(0, 8), At(key, 0), 1, kSignaled).ok());
  ExpectNext(7, Opcode::kFetchAdd, CompletionCode::kRemoteAccessError);
}

TEST_P(GrantContractTest, ARevokedGrantIsWorthNothing) {
  int first = 0;
  const RemoteKey key = Granted(kStart, kSize, Access::kRemoteAll, &first);
  const RemoteKey other = Granted(kStart, kSize, Access::kRemoteAll);
  QueuePair* used = Connect();
  QueuePair* unused = Connect();
  ExpectWrites(used, key, 0, "while it lasts");
  peer_->DropGrant(first);
  for (QueuePair* pair : {used, unused}) {
    ASSERT_TRUE(pair->PostWrite(8, Near(0, 8), At(key, 0), kSignaled).ok());
    ExpectNext(8, Opcode::kWrite, CompletionCode::kRemoteAccessError);
  }
  ExpectReadRefused(key, 0, 8);
  // The same part, granted once more before and after, is another matter.
  const RemoteKey again = Granted(kStart, kSize, Access::kRemoteAll);
  EXPECT_NE(again.key, key.key);
  QueuePair* pair = Connect();
  ExpectWrites(pair, other, 8, "the other grant");
  ExpectWrites(pair, again, 64, "the new grant");
  ExpectReads(pair, region_key_, kStart, "the region");
  ExpectWriteRefused(key, 0, 8);
}

TEST_P(GrantContractTest, NothingLandsOnceAGrantIsRevoked) {
  constexpr size_t kLong = 48 << 10;  // Arrives in several pieces, if bytes do.
  constexpr uint64_t kWrites = 12;
  const std::string mine(kLong, 'm');
  StoreNear(0, std::string(kLong, 'w'));
  const uint64_t rounds = Times(20);
  for (uint64_t round = 0; round < rounds; ++round) {
    int number = 0;
    const RemoteKey key = Granted(0, kLong, Access::kRemoteAll, &number);
    QueuePair* pair = Connect();
    for (uint64_t i = 0; i < kWrites; ++i) {
      ASSERT_TRUE(pair->PostWrite(100 + i, Near(0, kLong), At(key, 0), kSignaled).ok());
    }
    for (uint64_t i = 0; i < round % 4; ++i) std::this_thread::yield();
    peer_->DropGrant(number);
    peer_->Store(region_, 0, mine);
    for (uint64_t i = 0; i < kWrites; ++i) {
      const Completion completion = near_.Next();
      EXPECT_EQ(completion.id, 100 + i);
    }
    EXPECT_TRUE(peer_->Load(region_, 0, kLong) == mine) << "round " << round;
  }
}

TEST_P(GrantContractTest, GrantsComeAndGoWithoutEnd) {
  QueuePair* pair = Connect();
  for (int round = 0; round < 50; ++round) {
    int number = 0;
    const auto offset = static_cast<size_t>(round % 7) * 4096;
    const RemoteKey key = Granted(offset, 4096, Access::kRemoteAll, &number);
    ExpectWrites(pair, key, round, "round " + std::to_string(round));
    peer_->DropGrant(number);
  }
}

TEST_P(GrantContractTest, WhatIsNotWithinTheRegionIsNotGranted) {
  const int region = near_.Allocate(4096, Access::kRemoteReadOnly);
  MemoryRegion* memory = near_.regions[static_cast<size_t>(region)].get();
  constexpr std::pair<size_t, size_t> kRanges[] = {{0, 4097}, {4096, 1},       {4097, 0},
                                                   {1, 4096}, {~size_t{0}, 2}, {1, ~size_t{0}}};
  for (const auto& [offset, size] : kRanges) {
    std::unique_ptr<RegionGrant> grant;
    const Status status = memory->Grant(offset, size, Access::kRemoteAll, &grant);
    EXPECT_TRUE(status.IsInvalidArgument()) << offset << " " << size << " " << status.ToString();
    EXPECT_EQ(grant, nullptr);
  }
}

}  // namespace

}  // namespace nacre::rdma
