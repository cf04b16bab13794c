// Goal: requests that cannot be carried out, full queues and peers that go away end as
// rdma/transport.h says: an error of the Post call that posted nothing, or a completion with a code
// and a broken pair; never a crash, a hang, or a completion too many or too few.
// Method: as in one_sided_contract_test.cc; the far side's memory shows that nothing took place.

#include <cstring>
#include <functional>
#include <thread>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/process/kept_connections.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

class FailureContractTest : public ContractTest {
 protected:
  /// The request just posted fails with the code, and so breaks the pair at both ends.
  void ExpectFailure(QueuePair* pair, uint64_t id, Opcode opcode, CompletionCode code) {
    ExpectNext(id, opcode, code);
    ExpectBroken(pair);
    EXPECT_EQ(LoadFar(0, 64), std::string(64, '\0'));
    ExpectPeerBroken();
  }
  /// The peer's end finds its receive flushed.
  void ExpectPeerBroken() {
    peer_->PostRecv(0, 77, far_region_, 4096, 8);
    ExpectNextAtPeer(77, Opcode::kRecv, CompletionCode::kFlushed);
  }
};

INSTANTIATE_TEST_SUITE_P(All, FailureContractTest, testing::ValuesIn(AllSetups()), NameOf);

class KilledPeerContractTest : public FailureContractTest {};

std::vector<Setup> SetupsWithChild() {
  std::vector<Setup> setups = AllSetups();
  std::erase_if(setups, [](const Setup& setup) { return !setup.child; });
  return setups;
}

INSTANTIATE_TEST_SUITE_P(All, KilledPeerContractTest, testing::ValuesIn(SetupsWithChild()), NameOf);

TEST_P(FailureContractTest, UnknownKey) {
  QueuePair* pair = Connect();
  for (const uint32_t key : {far_key_.key + 1}) {
    ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {far_key_.address, key}, kSignaled).ok());
    ExpectFailure(pair, 1, Opcode::kRead, CompletionCode::kRemoteAccessError);
  }
}

TEST_P(FailureContractTest, AnyWrongKeyIsAnError) {
  for (const uint32_t key : {uint32_t{0}, far_key_.key ^ 0x80000000, ~uint32_t{0}}) {
    QueuePair* pair = Connect();
    ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {far_key_.address, key}, 0).ok());
    ExpectNext(1, Opcode::kRead, CompletionCode::kRemoteAccessError);
    EXPECT_TRUE(pair->broken());
  }
}

TEST_P(FailureContractTest, WriteBeyondTheEnd) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostWrite(1, Near(0, 9), Far(kRegionBytes - 8), kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kWrite, CompletionCode::kRemoteAccessError);
  EXPECT_EQ(LoadFar(kRegionBytes - 8, 8), std::string(8, '\0'));
}

TEST_P(FailureContractTest, ReadBeforeTheBeginning) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {far_key_.address - 1, far_key_.key}, kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kRead, CompletionCode::kRemoteAccessError);
}

TEST_P(FailureContractTest, AddressesThatWrapAround) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 64), {~uint64_t{0} - 8, far_key_.key}, kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kRead, CompletionCode::kRemoteAccessError);
}

TEST_P(FailureContractTest, AReadOnlyRegionWritten) {
  RemoteKey key;
  const int region = peer_->Allocate(4096, Access::kRemoteReadOnly, &key);
  const RemoteBuffer target{key.address, key.key};
  using PostRequest = std::function<Status(QueuePair*)>;
  const std::vector<PostRequest> requests = {
      [&](QueuePair* pair) { return pair->PostWrite(1, Near(8, 8), target, 0); },
      [&](QueuePair* pair) { return pair->PostWriteWithImm(1, Near(8, 8), target, 5, 0); },
      [&](QueuePair* pair) { return pair->PostCompareSwap(1, Near(8, 8), target, 0, 1, 0); },
      [&](QueuePair* pair) { return pair->PostFetchAdd(1, Near(8, 8), target, 1, 0); }};
  for (size_t i = 0; i < requests.size(); i++) {
    QueuePair* pair = Connect();
    // This serves the one with an immediate: a card may look for a receive before it looks at the
    // key.
    peer_->PostRecv(static_cast<int>(i), 1, far_region_, 4096, 8);
    StoreNear(8, "scribble");
    ASSERT_TRUE(requests[i](pair).ok());
    EXPECT_EQ(near_.Next().code, CompletionCode::kRemoteAccessError);
    EXPECT_TRUE(pair->broken());
  }
  EXPECT_EQ(peer_->Load(region, 0, 8), std::string(8, '\0'));
}

TEST_P(FailureContractTest, ALocalOnlyRegionIsOutOfReach) {
  RemoteKey key;
  peer_->Allocate(4096, Access::kLocalOnly, &key);
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {key.address, key.key}, kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kRead, CompletionCode::kRemoteAccessError);
}

TEST_P(FailureContractTest, MisalignedAtomics) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostFetchAdd(1, Near(0, 8), Far(4), 1, kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kFetchAdd, CompletionCode::kRemoteAccessError);
  QueuePair* other = Connect();
  ASSERT_TRUE(other->PostCompareSwap(1, Near(0, 8), Far(1), 0, 1, kSignaled).ok());
  ExpectNext(1, Opcode::kCompareSwap, CompletionCode::kRemoteAccessError);
}

TEST_P(FailureContractTest, ALocalBufferOutsideItsRegion) {
  QueuePair* pair = Connect();
  LocalBuffer buffer = Near(kRegionBytes - 8, 8);
  buffer.size = 9;
  ASSERT_TRUE(pair->PostWrite(1, buffer, Far(0), kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kWrite, CompletionCode::kLocalError);
}

TEST_P(FailureContractTest, ALocalBufferOfNoRegion) {
  char word[8] = {};
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, {word, 8, nullptr}, Far(0), kSignaled).ok());
  ExpectNext(1, Opcode::kRead, CompletionCode::kLocalError);
  QueuePair* other = Connect();
  ASSERT_TRUE(other->PostSend(2, {word, 8, near_.regions[0].get()}, kSignaled).ok());
  ExpectNext(2, Opcode::kSend, CompletionCode::kLocalError);
}

TEST_P(FailureContractTest, AnAtomicWithoutRoomForItsResult) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostFetchAdd(1, Near(0, 4), Far(0), 1, kSignaled).ok());
  ExpectFailure(pair, 1, Opcode::kFetchAdd, CompletionCode::kLocalError);
}

TEST_P(FailureContractTest, AReceiveTooSmallForItsMessage) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 7)).ok());
  ASSERT_TRUE(pair->PostRecv(2, Near(64, 8)).ok());
  StoreFar(4096, "too long");
  ASSERT_TRUE(peer_->Post(Opcode::kSend, 0, 1, far_region_, 4096, 8, {}, 0).ok());
  ExpectNext(1, Opcode::kRecv, CompletionCode::kLocalError);
  ExpectNext(2, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_EQ(LoadNear(0, 8), std::string(8, '\0'));
  ExpectBroken(pair);
}

TEST_P(FailureContractTest, FlushedRequestsCompleteInOrderSignalledOrNot) {
  QueuePair* pair = Connect();
  for (uint64_t i = 0; i < 5; i++) ASSERT_TRUE(pair->PostRecv(100 + i, Near(0, 8)).ok());
  // What was posted before the failure is carried out. The failing one is unsignalled, and reported
  // nevertheless.
  StoreNear(0, "A");
  ASSERT_TRUE(pair->PostWrite(0, Near(0, 1), Far(4096), 0).ok());
  ASSERT_TRUE(pair->PostWrite(1, Near(0, 1), Far(4097), kSignaled).ok());
  ASSERT_TRUE(pair->PostWrite(2, Near(0, 1), {1, 1}, 0).ok());
  for (uint64_t i = 3; i < 10; i++) {
    ASSERT_TRUE(pair->PostWrite(i, Near(0, 1), Far(i), i % 2 == 0 ? 0 : kSignaled).ok());
  }
  uint64_t next_send = 1;
  uint64_t next_receive = 100;
  for (int i = 0; i < 9 + 5; i++) {
    const Completion completion = near_.Next();
    if (completion.opcode == Opcode::kRecv) {
      EXPECT_EQ(completion.id, next_receive++);
      EXPECT_EQ(completion.code, CompletionCode::kFlushed);
    } else {
      const CompletionCode expected = next_send == 1   ? CompletionCode::kSuccess
                                      : next_send == 2 ? CompletionCode::kRemoteAccessError
                                                       : CompletionCode::kFlushed;
      EXPECT_EQ(completion.id, next_send++);
      EXPECT_EQ(completion.code, expected);
    }
  }
  ExpectNothing();
  EXPECT_EQ(LoadFar(0, 64), std::string(64, '\0'));
  EXPECT_EQ(LoadFar(4096, 2), "AA");
}

TEST_P(FailureContractTest, AFailureWithinABatchEndsWhatIsBehindIt) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), Far(0), kSignaled | kMore).ok());
  ASSERT_TRUE(pair->PostRead(2, Near(0, 8), {1, 1}, kMore).ok());
  ASSERT_TRUE(pair->PostRead(3, Near(0, 8), Far(0), 0).ok());
  ExpectNext(1, Opcode::kRead);
  ExpectNext(2, Opcode::kRead, CompletionCode::kRemoteAccessError);
  ExpectNext(3, Opcode::kRead, CompletionCode::kFlushed);
}

TEST_P(FailureContractTest, OtherPairsOfTheDeviceAreUntouched) {
  QueuePair* pair = Connect();
  QueuePair* other = Connect();
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {1, 1}, kSignaled).ok());
  ExpectNext(1, Opcode::kRead, CompletionCode::kRemoteAccessError);
  ASSERT_TRUE(other->PostRead(2, Near(0, 8), Far(0), kSignaled).ok());
  ExpectNext(2, Opcode::kRead);
  EXPECT_FALSE(other->broken());
}

TEST_P(FailureContractTest, ABrokenPairIsReplacedByConnectingAgain) {
  for (int i = 0; i < 5; i++) {
    QueuePair* pair = Connect();
    ASSERT_TRUE(pair->PostRead(1, Near(0, 8), Far(0), kSignaled).ok());
    ExpectNext(1, Opcode::kRead);
    ASSERT_TRUE(pair->PostRead(2, Near(0, 8), {1, 1}, kSignaled).ok());
    ExpectNext(2, Opcode::kRead, CompletionCode::kRemoteAccessError);
    near_.queue_pairs.back().reset();
  }
}

TEST_P(FailureContractTest, AFullSendQueueIsBusy) {
  QueuePair* pair = Connect({.send = 4, .receive = 1});
  for (uint64_t i = 0; i < 4; i++) {
    ASSERT_TRUE(pair->PostWrite(i, Near(0, 8), Far(0), i == 3 ? kSignaled : 0).ok());
  }
  EXPECT_TRUE(pair->PostWrite(4, Near(0, 8), Far(0), 0).IsBusy());
  EXPECT_TRUE(pair->PostRead(4, Near(0, 8), Far(0), kSignaled).IsBusy());
  EXPECT_TRUE(pair->PostFetchAdd(4, Near(0, 8), Far(0), 1, kSignaled).IsBusy());
  EXPECT_TRUE(pair->PostSend(4, Near(0, 8), kSignaled).IsBusy());
  // Polling the last one frees the unsignalled ones before it as well.
  ExpectNext(3, Opcode::kWrite);
  for (uint64_t i = 0; i < 4; i++) {
    ASSERT_TRUE(pair->PostWrite(i, Near(0, 8), Far(0), kSignaled).ok());
  }
  for (uint64_t i = 0; i < 4; i++) ExpectNext(i, Opcode::kWrite);
}

TEST_P(FailureContractTest, AFullReceiveQueueIsBusy) {
  QueuePair* pair = Connect({.send = 4, .receive = 3});
  for (uint64_t i = 0; i < 3; i++) ASSERT_TRUE(pair->PostRecv(i, Near(0, 8)).ok());
  EXPECT_TRUE(pair->PostRecv(3, Near(0, 8)).IsBusy());
  ASSERT_TRUE(peer_->Post(Opcode::kSend, 0, 1, far_region_, 0, 8, {}, 0).ok());
  ExpectNext(0, Opcode::kRecv);
  EXPECT_TRUE(pair->PostRecv(3, Near(0, 8)).ok());
}

TEST_P(FailureContractTest, AFullCompletionQueueIsBusy) {
  std::unique_ptr<CompletionQueue> small;
  ASSERT_TRUE(near_.device->CreateCompletionQueue(4, &small).ok());
  std::swap(near_.queue, small);
  QueuePair* pair = Connect({.send = 64, .receive = 8});
  ASSERT_TRUE(pair->PostRecv(0, Near(0, 8)).ok());
  for (uint64_t i = 1; i < 4; i++) {
    ASSERT_TRUE(pair->PostWrite(i, Near(0, 8), Far(0), kSignaled).ok());
  }
  EXPECT_TRUE(pair->PostWrite(4, Near(0, 8), Far(0), kSignaled).IsBusy());
  EXPECT_TRUE(pair->PostRecv(4, Near(0, 8)).IsBusy());
  for (uint64_t i = 1; i < 4; i++) ExpectNext(i, Opcode::kWrite);
  EXPECT_TRUE(pair->PostWrite(5, Near(0, 8), Far(0), kSignaled).ok());
  ExpectNext(5, Opcode::kWrite);
  near_.queue_pairs.clear();
  std::swap(near_.queue, small);
}

TEST_P(FailureContractTest, AFreedRegionIsOutOfReachForThoseWhoKnowItsKey) {
  QueuePair* pair = Connect();
  QueuePair* other = Connect();
  RemoteKey key;
  const int region = peer_->Allocate(4096, Access::kRemoteAll, &key);
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {key.address, key.key}, kSignaled).ok());
  ExpectNext(1, Opcode::kRead);
  peer_->Free(region);
  // Known to one pair by use, to the other by announcement only.
  for (QueuePair* each : {pair, other}) {
    ASSERT_TRUE(each->PostWrite(2, Near(0, 8), {key.address, key.key}, kSignaled).ok());
    ExpectNext(2, Opcode::kWrite, CompletionCode::kRemoteAccessError);
  }
  // Nor does its key come back for another region soon.
  RemoteKey next;
  peer_->Allocate(4096, Access::kRemoteAll, &next);
  EXPECT_NE(next.key, key.key);
}

TEST_P(FailureContractTest, ARegionFreedWithinABatchHarmsNobody) {
  QueuePair* pair = Connect();
  RemoteKey key;
  const int region = peer_->Allocate(8 << 20, Access::kRemoteAll, &key);
  const RemoteBuffer from{key.address + (4 << 20), key.key};
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), from, kSignaled).ok());
  ExpectNext(1, Opcode::kRead);
  ASSERT_TRUE(pair->PostRead(2, Near(0, 8), from, kSignaled | kMore).ok());
  peer_->Free(region);
  ASSERT_TRUE(pair->PostRead(3, Near(0, 8), from, kSignaled).ok());
  // The first was posted in time and may go either way.
  const Completion second = near_.Next();
  EXPECT_EQ(second.id, 2u);
  ExpectNext(3, Opcode::kRead,
             second.code == CompletionCode::kSuccess ? CompletionCode::kRemoteAccessError
                                                     : CompletionCode::kFlushed);
}

TEST_P(FailureContractTest, AReadOfARegionThatIsBeingFreedFailsOrIsRight) {
  constexpr uint32_t kBytes = 32 << 10;
  const std::string bytes(kBytes, 'x');
  for (uint64_t round = 0; round < Times(20); ++round) {
    QueuePair* pair = Connect();
    RemoteKey key;
    const int region = peer_->Allocate(8 << 20, Access::kRemoteAll, &key);
    peer_->Store(region, 0, bytes);
    peer_->Start({.command = PeerCommand::kFree, .numbers = {static_cast<uint64_t>(region)}});
    Completion completion;
    do {
      std::memset(Near(0, kBytes).data, 0, kBytes);
      // Within a batch and by itself.
      ASSERT_TRUE(pair->PostRead(1, Near(0, kBytes), {key.address, key.key}, kMore).ok());
      ASSERT_TRUE(pair->PostRead(2, Near(0, kBytes), {key.address, key.key}, kSignaled).ok());
      completion = near_.Next();
      if (completion.code == CompletionCode::kSuccess) {
        ASSERT_EQ(LoadNear(0, kBytes), bytes);
        ASSERT_TRUE(pair->PostRead(3, Near(0, kBytes), {key.address, key.key}, kSignaled).ok());
        completion = near_.Next();
        if (completion.code == CompletionCode::kSuccess) {
          ASSERT_EQ(LoadNear(0, kBytes), bytes);
        }
      }
    } while (completion.code == CompletionCode::kSuccess);
    // A card that finds the region gone in the middle of a read may have no answer left for it.
    EXPECT_TRUE(completion.code == CompletionCode::kRemoteAccessError ||
                (IsVerbs() && completion.code == CompletionCode::kPeerGone))
        << ToString(completion.code);
    if (completion.id == 1) ExpectNext(2, Opcode::kRead, CompletionCode::kFlushed);
    peer_->Finish();
  }
}

TEST_P(FailureContractTest, APeerThatClosesBreaksThePair) {
  QueuePair* pair = Connect();
  for (uint64_t i = 0; i < 3; i++) ASSERT_TRUE(pair->PostRecv(i, Near(64 * i, 8)).ok());
  StoreFar(0, "farewell");
  ASSERT_TRUE(peer_->Post(Opcode::kSend, 0, 1, far_region_, 0, 8, {}, 0).ok());
  peer_->DropQueuePair(0);
  // What was sent before is delivered, the rest is flushed.
  ExpectNext(0, Opcode::kRecv);
  EXPECT_EQ(LoadNear(0, 8), "farewell");
  ExpectNext(1, Opcode::kRecv, CompletionCode::kFlushed);
  ExpectNext(2, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  ASSERT_TRUE(pair->PostWrite(3, Near(0, 8), Far(8), 0).ok());
  ASSERT_TRUE(pair->PostRead(4, Near(0, 8), Far(8), kSignaled).ok());
  ExpectNext(3, Opcode::kWrite, CompletionCode::kPeerGone);
  ExpectNext(4, Opcode::kRead, CompletionCode::kFlushed);
  ExpectBroken(pair);
}

TEST_P(FailureContractTest, APeerThatClosesAControlConnectionHangsUp) {
  QueuePair* pair = Connect({.send = 4, .receive = 4, .control = true});
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 8)).ok());
  EXPECT_FALSE(pair->peer_hung_up());
  peer_->DropQueuePair(0);
  ExpectNext(1, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  EXPECT_TRUE(pair->peer_hung_up());
}

TEST_P(FailureContractTest, AFailedRequestIsNoHangUp) {
  QueuePair* pair = Connect({.send = 4, .receive = 4, .control = true});
  ASSERT_TRUE(pair->PostRead(1, Near(0, 8), {.address = far_key_.address, .key = 12345}, 0).ok());
  ExpectNext(1, Opcode::kRead, CompletionCode::kRemoteAccessError);
  EXPECT_TRUE(pair->broken());
  EXPECT_FALSE(pair->peer_hung_up());
}

TEST_P(FailureContractTest, AClosedPeerIsNoticedByTheFirstRequest) {
  QueuePair* pair = Connect();
  peer_->DropQueuePair(0);
  ASSERT_TRUE(pair->PostWrite(1, Near(0, 8), Far(8), 0).ok());
  ExpectNext(1, Opcode::kWrite, CompletionCode::kPeerGone);
  ExpectBroken(pair);
}

TEST_P(FailureContractTest, ADestroyedPairTakesItsCompletionsAlong) {
  QueuePair* pair = Connect();
  QueuePair* other = Connect();
  for (uint64_t i = 0; i < 3; i++) {
    ASSERT_TRUE(pair->PostRecv(i, Near(0, 8)).ok());
    ASSERT_TRUE(pair->PostWrite(10 + i, Near(0, 8), Far(0), kSignaled).ok());
    ASSERT_TRUE(other->PostWrite(20 + i, Near(0, 8), Far(0), kSignaled).ok());
    ASSERT_TRUE(pair->PostRead(30 + i, Near(0, 8), Far(0), kSignaled | kMore).ok());
  }
  near_.queue_pairs[0].reset();
  for (uint64_t i = 0; i < 3; i++) ExpectNext(20 + i, Opcode::kWrite);
  ExpectNothing();
  // Their room is free again.
  for (int round = 0; round < 20; round++) {
    for (uint64_t i = 0; i < 200; i++) {
      ASSERT_TRUE(other->PostWrite(i, Near(0, 8), Far(0), kSignaled).ok());
    }
    for (uint64_t i = 0; i < 200; i++) ExpectNext(i, Opcode::kWrite);
  }
}

TEST_P(KilledPeerContractTest, AKilledPeerBreaksThePair) {
  QueuePair* pair = Connect();
  QueuePair* idle = Connect();
  for (uint64_t i = 0; i < 4; i++) ASSERT_TRUE(pair->PostRecv(i, Near(0, 8)).ok());
  peer_->Kill();
  // A thread that sleeps on the queue notices without any request.
  for (uint64_t i = 0; i < 4; i++) ExpectNext(i, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  ASSERT_TRUE(pair->PostRead(5, Near(0, 8), Far(0), 0).ok());
  ExpectNext(5, Opcode::kRead, CompletionCode::kPeerGone);
  ExpectBroken(pair);
  const auto begin = std::chrono::steady_clock::now();
  while (!idle->broken()) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, Endpoint::kPatience);
    std::this_thread::yield();
  }
  ASSERT_TRUE(idle->PostWrite(6, Near(0, 8), Far(0), 0).ok());
  ExpectNext(6, Opcode::kWrite, CompletionCode::kPeerGone);
}

TEST_P(KilledPeerContractTest, AKilledPeerHangsUp) {
  QueuePair* pair = Connect({.send = 4, .receive = 4, .control = true});
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 8)).ok());
  peer_->Kill();
  ExpectNext(1, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  EXPECT_TRUE(pair->peer_hung_up());
}

TEST_P(KilledPeerContractTest, ALookAtAKilledPeerTellsOfItsEnd) {
  QueuePair* pair = Connect({.send = 4, .receive = 4, .control = true});
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 8)).ok());
  pair->LookAtPeer();
  EXPECT_FALSE(pair->broken());
  peer_->Kill();
  pair->LookAtPeer();
  // Over verbs a thread hears of it in its own time.
  if (IsVerbs()) ExpectNext(1, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  EXPECT_TRUE(pair->peer_hung_up());
}

TEST_P(KilledPeerContractTest, AnIdleControlConnectionNoticesThatItsPeerVanished) {
  const QueueDepths depths{.send = 16, .receive = 4, .control = true};
  QueuePair* pair = Connect(depths);
  QueuePair* used = Connect(depths);
  for (uint64_t i = 0; i < 4; i++) ASSERT_TRUE(pair->PostRecv(i, Near(0, 8)).ok());
  // What the transport does to notice it is not seen, nor does it take room from requests.
  Completion completion;
  EXPECT_FALSE(near_.Next(&completion, std::chrono::milliseconds(IsVerbs() ? 1500 : 20)));
  for (QueuePair* each : {pair, used}) {
    for (uint64_t i = 0; i < 16; i++) {
      const uint8_t flags = i == 15 && each == pair ? kSignaled : 0;
      ASSERT_TRUE(each->PostWrite(10 + i, Near(0, 8), Far(0), flags).ok());
    }
    EXPECT_TRUE(each->PostWrite(26, Near(0, 8), Far(0), 0).IsBusy());
  }
  ExpectNext(25, Opcode::kWrite);
  EXPECT_FALSE(near_.Next(&completion, std::chrono::milliseconds(IsVerbs() ? 1000 : 20)));
  EXPECT_FALSE(pair->broken() || used->broken());
  near_.queue_pairs.back().reset();

  const KeptConnections kept(peer_->process());
  peer_->Kill();
  for (uint64_t i = 0; i < 4; i++) ExpectNext(i, Opcode::kRecv, CompletionCode::kFlushed);
  EXPECT_TRUE(pair->broken());
  ASSERT_TRUE(pair->PostRead(5, Near(0, 8), Far(0), 0).ok());
  ExpectNext(5, Opcode::kRead, CompletionCode::kPeerGone);
  ExpectBroken(pair);
  EXPECT_EQ(pair->peer_hung_up(), !IsVerbs());
}

TEST_P(KilledPeerContractTest, APeerKilledInTheMiddleOfTrafficLeavesNothingOutstanding) {
  Random random(TestSeed(501));
  QueuePair* pair = Connect({.send = 64, .receive = 64});
  for (uint64_t i = 0; i < 64; i++) ASSERT_TRUE(pair->PostRecv(i, Near(0, 64)).ok());
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    peer_->Kill();
  });
  uint64_t posted = 0;
  uint64_t completed = 0;
  uint64_t received = 0;
  bool failed = false;
  while (true) {
    const size_t size = random.Skewed(16);
    const uint64_t id = 1000 + posted;
    Status status;
    switch (random.Uniform(4)) {
      case 0:
        status = pair->PostRead(id, Near(0, size), Far(0), kSignaled);
        break;
      case 1:
        status = pair->PostWrite(id, Near(0, size), Far(0), kSignaled);
        break;
      case 2:
        status = pair->PostFetchAdd(id, Near(0, 8), Far(0), 1, kSignaled);
        break;
      default:
        status = pair->PostSend(id, Near(0, size % 64), kSignaled);
        break;
    }
    if (status.ok()) {
      posted++;
    } else {
      ASSERT_TRUE(status.IsBusy()) << status.ToString();
    }
    Completion completion;
    while (near_.queue->Poll(&completion, 1) == 1) {
      if (completion.opcode == Opcode::kRecv) {
        ASSERT_EQ(completion.id, received++);
        continue;
      }
      ASSERT_EQ(completion.id, 1000 + completed++);
      if (failed) {
        ASSERT_EQ(completion.code, CompletionCode::kFlushed);
      } else {
        failed = completion.code != CompletionCode::kSuccess;
      }
    }
    if (failed && posted > 100 && completed == posted) break;
  }
  killer.join();
  while (received < 64) {
    const Completion completion = near_.Next();
    ASSERT_EQ(completion.opcode, Opcode::kRecv);
    ASSERT_EQ(completion.id, received++);
    ASSERT_EQ(completion.code, CompletionCode::kFlushed);
  }
  ExpectNothing();
}

}  // namespace

}  // namespace nacre::rdma
