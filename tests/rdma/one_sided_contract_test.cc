// Goal: reads, writes and atomics do what rdma/transport.h says, over each backend and decorator.
// Method: the near side posts; the far side, in this process or another one, is looked at through
// its own memory. Each test is one sentence of the contract.

#include <atomic>
#include <numeric>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/rdma/rdma_requests.h"
#include "tests/support/seed.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/simulation.h"

namespace nacre::rdma {

namespace {

class OneSidedContractTest : public ContractTest {};

INSTANTIATE_TEST_SUITE_P(All, OneSidedContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(OneSidedContractTest, RegionsAreZeroedAndPageAligned) {
  EXPECT_EQ(std::string(kRegionBytes, '\0'), LoadNear(0, kRegionBytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(NearData()) % 4096, 0u);
  EXPECT_EQ(near_.regions[0]->size(), kRegionBytes);
  EXPECT_EQ(near_.regions[0]->remote_key().size, kRegionBytes);
}

TEST_P(OneSidedContractTest, ReadBringsTheFarBytes) {
  QueuePair* pair = Connect();
  StoreFar(100, "far bytes");
  ASSERT_TRUE(pair->PostRead(7, Near(5000, 9), Far(100), kSignaled).ok());
  const Completion completion = near_.Next();
  EXPECT_EQ(completion.id, 7u);
  EXPECT_EQ(completion.queue_pair, pair);
  EXPECT_EQ(completion.bytes, 9u);
  EXPECT_EQ(completion.opcode, Opcode::kRead);
  EXPECT_EQ(completion.code, CompletionCode::kSuccess);
  EXPECT_EQ(LoadNear(5000, 9), "far bytes");
  EXPECT_EQ(LoadNear(5009, 1), std::string(1, '\0'));
}

TEST_P(OneSidedContractTest, WriteBringsTheNearBytes) {
  QueuePair* pair = Connect();
  StoreNear(10, "near bytes");
  ASSERT_TRUE(pair->PostWrite(8, Near(10, 10), Far(77), kSignaled).ok());
  ExpectNext(8, Opcode::kWrite);
  EXPECT_EQ(LoadFar(76, 12), std::string(1, '\0') + "near bytes" + std::string(1, '\0'));
}

TEST_P(OneSidedContractTest, RandomReadsAndWritesMatchAModel) {
  QueuePair* pair = Connect();
  Random random(TestSeed(301));
  std::string model(kRegionBytes, '\0');
  for (uint64_t i = 0; i < Times(400); i++) {
    const size_t size = random.Skewed(16);
    const size_t near_at = random.Uniform(kRegionBytes - size);
    const size_t far_at = random.Uniform(kRegionBytes - size);
    if (random.OneIn(2)) {
      for (size_t j = 0; j < size; j++) NearData(near_at)[j] = static_cast<char>(random.Next());
      ASSERT_TRUE(pair->PostWrite(1, Near(near_at, size), Far(far_at), kSignaled).ok());
      ExpectNext(1, Opcode::kWrite);
      model.replace(far_at, size, NearData(near_at), size);
    } else {
      ASSERT_TRUE(pair->PostRead(2, Near(near_at, size), Far(far_at), kSignaled).ok());
      ExpectNext(2, Opcode::kRead);
      ASSERT_EQ(LoadNear(near_at, size), model.substr(far_at, size));
    }
  }
  EXPECT_EQ(LoadFar(0, kRegionBytes), model);
}

TEST_P(OneSidedContractTest, RequestsOf64MiBAreOneRequest) {
  const size_t bytes = GetParam().emulated ? 20 << 20 : 64 << 20;
  QueuePair* pair = Connect();
  const int near_region = near_.Allocate(2 * bytes);
  RemoteKey key;
  const int far_region = peer_->Allocate(bytes + 1, Access::kRemoteAll, &key);
  char* data = near_.Data(near_region);
  for (size_t i = 0; i < bytes; i += 4096) std::memcpy(data + i, &i, sizeof(i));
  data[bytes - 1] = 'z';
  // At odd addresses, which no fast path is made for.
  ASSERT_TRUE(
      pair->PostWrite(1, near_.Buffer(near_region, 0, bytes), {key.address + 1, key.key}, 0).ok());
  ASSERT_TRUE(pair->PostRead(2, near_.Buffer(near_region, bytes, bytes), {key.address + 1, key.key},
                             kSignaled)
                  .ok());
  ExpectNext(2, Opcode::kRead);
  EXPECT_EQ(std::memcmp(data, data + bytes, bytes), 0);
  EXPECT_EQ(peer_->Load(far_region, bytes, 1), "z");
}

TEST_P(OneSidedContractTest, RequestsOfNoBytesNameNoMemory) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, {}, {}, kSignaled).ok());
  ASSERT_TRUE(pair->PostWrite(2, {}, {.address = 1, .key = 99}, kSignaled).ok());
  ExpectNext(1, Opcode::kRead);
  ExpectNext(2, Opcode::kWrite);
  EXPECT_FALSE(pair->broken());
}

TEST_P(OneSidedContractTest, TheWholeRegionIsWithinBounds) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, kRegionBytes), Far(0), kSignaled).ok());
  ASSERT_TRUE(pair->PostWrite(2, Near(kRegionBytes - 1, 1), Far(kRegionBytes - 1), kSignaled).ok());
  ExpectNext(1, Opcode::kRead);
  ExpectNext(2, Opcode::kWrite);
}

TEST_P(OneSidedContractTest, UnsignalledRequestsReportNothingButCount) {
  QueuePair* pair = Connect();
  StoreNear(0, "0123456789");
  for (size_t i = 0; i < 10; i++) {
    ASSERT_TRUE(pair->PostWrite(i, Near(i, 1), Far(i), 0).ok());
  }
  ASSERT_TRUE(pair->PostRead(10, Near(100, 10), Far(0), kSignaled).ok());
  ExpectNext(10, Opcode::kRead);
  EXPECT_EQ(LoadNear(100, 10), "0123456789");
  ExpectNothing();
}

TEST_P(OneSidedContractTest, RequestsTakeEffectInOrder) {
  QueuePair* pair = Connect();
  // Each read sees the write before it and not the one behind, batched or not.
  for (const uint8_t batch : {uint8_t{0}, uint8_t{kMore}}) {
    for (uint64_t i = 0; i < 50; i++) {
      std::memcpy(NearData(8 * i), &i, sizeof(i));
      ASSERT_TRUE(pair->PostWrite(2 * i, Near(8 * i, 8), Far(0), batch).ok());
      const uint8_t last = i == 49 ? uint8_t{0} : batch;
      ASSERT_TRUE(pair->PostRead(2 * i + 1, Near(4096 + 8 * i, 8), Far(0),
                                 static_cast<uint8_t>(kSignaled | last))
                      .ok());
    }
    for (uint64_t i = 0; i < 50; i++) {
      ExpectNext(2 * i + 1, Opcode::kRead);
      uint64_t seen;
      std::memcpy(&seen, NearData(4096 + 8 * i), sizeof(seen));
      EXPECT_EQ(seen, i);
    }
  }
}

TEST_P(OneSidedContractTest, BatchesOfAnyLengthComplete) {
  QueuePair* pair = Connect({.send = 256, .receive = 1});
  for (uint64_t i = 0; i < 1024; i++) StoreNear(i, std::string(1, static_cast<char>('a' + i % 26)));
  ASSERT_TRUE(pair->PostWrite(0, Near(0, 1024), Far(0), kSignaled).ok());
  ExpectNext(0, Opcode::kWrite);
  for (const uint64_t length : {1, 2, 31, 32, 33, 64, 200}) {
    std::memset(NearData(2048), 0, 1024);
    for (uint64_t i = 0; i < length; i++) {
      const int more = i + 1 < length ? int{kMore} : 0;
      const int signaled = i % 3 == 0 || more == 0 ? int{kSignaled} : 0;
      ASSERT_TRUE(pair->PostRead(i, Near(2048 + 4 * i, 4), Far(4 * i),
                                 static_cast<uint8_t>(more | signaled))
                      .ok());
    }
    for (uint64_t i = 0; i < length; i++) {
      if (i % 3 == 0 || i + 1 == length) ExpectNext(i, Opcode::kRead);
    }
    EXPECT_EQ(LoadNear(2048, 4 * length), LoadNear(0, 4 * length)) << length;
  }
  ExpectNothing();
}

TEST_P(OneSidedContractTest, TheLastBytesOfAWriteBecomeVisibleLast) {
  QueuePair* pair = Connect();
  // The peer writes; this side polls the last word and must then see all the others. The size
  // takes the copy through its short, middle and streaming forms.
  for (const size_t size : {16, 24, 64, 512, 4096, 20000, 65536}) {
    constexpr uint64_t kRounds = 20;
    std::memset(NearData(), 0, size);
    for (uint64_t round = 1; round <= kRounds; round++) {
      std::string bytes(size - 8, static_cast<char>(round));
      bytes.append(reinterpret_cast<const char*>(&round), 8);
      StoreFar(0, bytes);
      peer_->Start({.command = PeerCommand::kPost,
                    .numbers = {static_cast<uint64_t>(Opcode::kWrite), 0, round,
                                static_cast<uint64_t>(far_region_), 0, size, NearKey(0).address,
                                NearKey(0).key, kSignaled, 0, 0}});
      const std::atomic_ref<uint64_t> last(*reinterpret_cast<uint64_t*>(NearData(size - 8)));
      const Deadline deadline = Deadline::After(Clock::System(), Endpoint::kPatience);
      while (last.load(std::memory_order_acquire) != round) {
        ASSERT_FALSE(deadline.Expired());
        if (Simulation::Current() != nullptr) GiveWay();
      }
      ASSERT_EQ(LoadNear(0, size), bytes);
      ASSERT_TRUE(peer_->Finish().status.ok());
      ExpectNextAtPeer(round, Opcode::kWrite);
    }
  }
  EXPECT_FALSE(pair->broken());
}

TEST_P(OneSidedContractTest, WritesOfOnePairBecomeVisibleInOrder) {
  QueuePair* pair = Connect();
  ASSERT_NE(pair, nullptr);
  // The peer writes A, then B, over and over; a reader of B's number must see A's at least as new.
  constexpr uint64_t kRounds = 100;
  for (uint64_t round = 1; round <= kRounds; round++) {
    std::string bytes(reinterpret_cast<const char*>(&round), 8);
    StoreFar(0, bytes);
    ASSERT_TRUE(peer_->Post(Opcode::kWrite, 0, 1, far_region_, 0, 8, NearKey(0), 0).ok());
    peer_->Start({.command = PeerCommand::kPost,
                  .numbers = {static_cast<uint64_t>(Opcode::kWrite), 0, 2,
                              static_cast<uint64_t>(far_region_), 0, 8, NearKey(64).address,
                              NearKey(64).key, kSignaled, 0, 0}});
    const std::atomic_ref<uint64_t> first(*reinterpret_cast<uint64_t*>(NearData(0)));
    const std::atomic_ref<uint64_t> second(*reinterpret_cast<uint64_t*>(NearData(64)));
    while (second.load(std::memory_order_acquire) != round) GiveWay();
    EXPECT_EQ(first.load(std::memory_order_relaxed), round);
    ASSERT_TRUE(peer_->Finish().status.ok());
    ExpectNextAtPeer(2, Opcode::kWrite);
  }
}

TEST_P(OneSidedContractTest, CompareSwapSwapsOnlyWhatWasExpected) {
  QueuePair* pair = Connect();
  StoreFar(8, std::string("\x05\0\0\0\0\0\0\0", 8));
  ASSERT_TRUE(pair->PostCompareSwap(1, Near(0, 8), Far(8), 4, 9, kSignaled).ok());
  ExpectNext(1, Opcode::kCompareSwap);
  EXPECT_EQ(LoadNear(0, 1), "\x05");
  EXPECT_EQ(LoadFar(8, 1), "\x05");
  ASSERT_TRUE(pair->PostCompareSwap(2, Near(0, 8), Far(8), 5, 9, kSignaled).ok());
  const Completion completion = near_.Next();
  EXPECT_EQ(completion.id, 2u);
  EXPECT_EQ(completion.bytes, 8u);
  EXPECT_EQ(LoadNear(0, 1), "\x05");
  EXPECT_EQ(LoadFar(8, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
}

TEST_P(OneSidedContractTest, FetchAddAnswersWhatWasThereAndWraps) {
  QueuePair* pair = Connect();
  StoreFar(16, std::string(8, '\xff'));
  ASSERT_TRUE(pair->PostFetchAdd(1, Near(0, 8), Far(16), 3, kSignaled).ok());
  ExpectNext(1, Opcode::kFetchAdd);
  EXPECT_EQ(LoadNear(0, 8), std::string(8, '\xff'));
  EXPECT_EQ(LoadFar(16, 8), std::string("\x02\0\0\0\0\0\0\0", 8));
}

TEST_P(OneSidedContractTest, AtomicsOfAllPartiesAddUp) {
  // One word of the near side, added to by its owner's std::atomic_ref, by the peer's requests, and
  // by its own requests over a connection of its own device to the peer's word: two words, two
  // contenders each.
  const uint64_t count = Times(5000);
  // Cards keep their atomic operations apart from one another only (rdma/transport.h).
  const bool with_owner = !IsVerbs();
  const uint64_t sum = with_owner ? 2 * count : count;
  QueuePair* pair = Connect();
  auto* const word = reinterpret_cast<uint64_t*>(NearData(0));
  for (const PeerCommand command : {PeerCommand::kAddRemotely, PeerCommand::kSwapRemotely}) {
    *word = 0;
    peer_->Start({.command = command,
                  .numbers = {0, static_cast<uint64_t>(far_region_), NearKey(0).address,
                              NearKey(0).key, count}});
    for (uint64_t i = 0; with_owner && i < count; i++) {
      std::atomic_ref<uint64_t>(*word).fetch_add(1);
    }
    const PeerAnswer answer = peer_->Finish();
    ASSERT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_EQ(*word, sum);
  }
  for (const bool by_swap : {false, true}) {
    StoreFar(64, std::string(8, '\0'));
    peer_->Start({.command = PeerCommand::kAddLocally,
                  .numbers = {static_cast<uint64_t>(far_region_), 64, with_owner ? count : 0}});
    ASSERT_TRUE(AddTo(&near_, pair, Near(128, 8), Far(64), static_cast<int>(count), by_swap).ok());
    ASSERT_TRUE(peer_->Finish().status.ok());
    EXPECT_EQ(LoadFar(64, 8), std::string(reinterpret_cast<const char*>(&sum), 8));
  }
}

TEST_P(OneSidedContractTest, AReadOnlyRegionCanBeRead) {
  RemoteKey key;
  const int region = peer_->Allocate(4096, Access::kRemoteReadOnly, &key);
  peer_->Store(region, 0, "read me");
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 7), {key.address, key.key}, kSignaled).ok());
  ExpectNext(1, Opcode::kRead);
  EXPECT_EQ(LoadNear(0, 7), "read me");
}

TEST_P(OneSidedContractTest, RegionsAllocatedAfterConnectingAreReached) {
  QueuePair* pair = Connect();
  for (uint64_t i = 0; i < 40; i++) {
    RemoteKey key;
    const int region = peer_->Allocate(4096, Access::kRemoteAll, &key);
    peer_->Store(region, 4090, "fresh");
    ASSERT_TRUE(pair->PostRead(i, Near(0, 5), {key.address + 4090, key.key}, kSignaled).ok());
    ExpectNext(i, Opcode::kRead);
    ASSERT_EQ(LoadNear(0, 5), "fresh");
    if (i % 2 == 0) peer_->Free(region);
  }
}

TEST_P(OneSidedContractTest, ManyPairsShareOneQueue) {
  constexpr uint64_t kPairs = 70;  // More than a backend's groups of queue pairs, whatever these.
  std::vector<QueuePair*> pairs;
  for (uint64_t i = 0; i < kPairs; i++) pairs.push_back(Connect({.send = 8, .receive = 2}));
  for (uint64_t i = 0; i < kPairs; i++) {
    StoreNear(8 * i, std::string(1, static_cast<char>(i)));
    ASSERT_TRUE(pairs[i]->PostWrite(i, Near(8 * i, 1), Far(i), kSignaled).ok());
  }
  std::vector<int> seen(kPairs);
  for (uint64_t i = 0; i < kPairs; i++) {
    const Completion completion = near_.Next();
    ASSERT_LT(completion.id, kPairs);
    EXPECT_EQ(completion.queue_pair, pairs[completion.id]);
    EXPECT_EQ(completion.code, CompletionCode::kSuccess);
    seen[completion.id]++;
  }
  EXPECT_EQ(seen, std::vector<int>(kPairs, 1));
  const std::string bytes = LoadFar(0, kPairs);
  for (uint64_t i = 0; i < kPairs; i++) EXPECT_EQ(bytes[i], static_cast<char>(i));
}

TEST_P(OneSidedContractTest, TrafficIsCounted) {
  QueuePair* pair = Connect();
  const TrafficCounters before = near_.device->traffic();
  for (int i = 0; i < 10; i++) {
    ASSERT_TRUE(pair->PostRead(1, Near(0, 1000), Far(0), kSignaled).ok());
    ASSERT_TRUE(pair->PostWrite(2, Near(0, 10), Far(0), kSignaled).ok());
    near_.Next();
    near_.Next();
  }
  near_.queue_pairs.clear();  // Its share is kept.
  const TrafficCounters after = near_.device->traffic();
  EXPECT_EQ(after.bytes_read - before.bytes_read, 10000u);
  EXPECT_EQ(after.bytes_written - before.bytes_written, 100u);
  EXPECT_EQ(after.reads - before.reads, 10u);
  EXPECT_EQ(after.writes - before.writes, 10u);
}

}  // namespace

}  // namespace nacre::rdma
