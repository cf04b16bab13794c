// Goal: connecting, accepting and refusing, and waiting for completions, do what rdma/transport.h
// says.
// Method: devices of this process and peers of others, over each backend and decorator. Nothing
// here asserts how long something takes, only that it ends.

#include <atomic>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/seed.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/threads/thread.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectionContractTest : public ContractTest {};

INSTANTIATE_TEST_SUITE_P(All, ConnectionContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(ConnectionContractTest, NobodyThereIsUnavailable) {
  std::string reply;
  const std::string address = FreshAddress();
  const Status status = near_.Connect(address, "", {}, &reply, milliseconds(50));
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_NE(status.message().find(address.substr(1)), std::string_view::npos);
}

TEST_P(ConnectionContractTest, AListenerThatDoesNotAnswerIsUnavailable) {
  std::unique_ptr<Listener> listener;
  const std::string address = FreshAddress();
  ASSERT_TRUE(near_.device->Listen(address, &listener).ok());
  std::string reply;
  const Status status = near_.Connect(address, "", {}, &reply, milliseconds(50));
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_NE(status.message().find(address.substr(1)), std::string_view::npos);
  // The listener may see the attempt; its answer then finds no peer.
  std::unique_ptr<IncomingConnection> incoming;
  if (listener->Accept(milliseconds(10), &incoming).ok()) {
    std::unique_ptr<QueuePair> pair;
    EXPECT_FALSE(incoming->Accept(near_.queue.get(), near_.queue.get(), "", &pair).ok());
    EXPECT_EQ(pair, nullptr);
  }
}

TEST_P(ConnectionContractTest, PrivateDataGoesBothWays) {
  const std::string limit(Device::kMaxPrivateData, 'x');
  for (const std::string& data : {std::string(), std::string("a\0b", 3), limit}) {
    const std::string address = FreshAddress();
    ASSERT_TRUE(peer_->Run({.command = PeerCommand::kListen, .bytes = address}).status.ok());
    peer_->Start({.command = PeerCommand::kAccept, .bytes = data});
    std::string reply = "before";
    const Status status = near_.Connect(address, data, {}, &reply);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(reply, data);
    EXPECT_EQ(peer_->Finish().bytes, data);
  }
}

TEST_P(ConnectionContractTest, PrivateDataBeyondTheLimitIsRefused) {
  const std::string beyond(Device::kMaxPrivateData + 1, 'x');
  const std::string address = FreshAddress();
  ASSERT_TRUE(peer_->Run({.command = PeerCommand::kListen, .bytes = address}).status.ok());
  std::string reply;
  EXPECT_TRUE(near_.Connect(address, beyond, {}, &reply).IsInvalidArgument());
  // A reply that is too long is the accepting side's error; the connecting side is refused.
  peer_->Start({.command = PeerCommand::kAccept, .bytes = beyond});
  EXPECT_TRUE(near_.Connect(address, "", {}, &reply).IsInvalidArgument());
  EXPECT_TRUE(peer_->Finish().status.IsInvalidArgument());
  EXPECT_TRUE(near_.queue_pairs.empty());
}

TEST_P(ConnectionContractTest, ARefusalBringsItsReason) {
  const std::string address = FreshAddress();
  ASSERT_TRUE(peer_->Run({.command = PeerCommand::kListen, .bytes = address}).status.ok());
  for (const std::string& reason : {std::string("wrong epoch"), std::string(200, 'r')}) {
    peer_->Start({.command = PeerCommand::kReject, .bytes = reason});
    std::string reply;
    const Status status = near_.Connect(address, "", {}, &reply);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.message().find(reason.substr(0, Device::kMaxReasonBytes)),
              std::string_view::npos)
        << status.ToString();
    EXPECT_TRUE(peer_->Finish().status.ok());
  }
}

TEST_P(ConnectionContractTest, AnIncomingConnectionThatIsDroppedIsRefused) {
  const std::string address = FreshAddress();
  ASSERT_TRUE(near_.Listen(address).ok());
  peer_->Start({.command = PeerCommand::kConnect, .numbers = {8, 8}, .bytes = address});
  std::unique_ptr<IncomingConnection> incoming;
  ASSERT_TRUE(near_.listener->Accept(seconds(10), &incoming).ok());
  EXPECT_EQ(incoming->depths().send, 8);
  EXPECT_EQ(incoming->depths().receive, 8);
  incoming.reset();
  const Status status = peer_->Finish().status;
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
}

TEST_P(ConnectionContractTest, AnAddressIsTakenOnce) {
  std::unique_ptr<Listener> first;
  std::unique_ptr<Listener> second;
  const std::string address = FreshAddress();
  ASSERT_TRUE(near_.device->Listen(address, &first).ok());
  const Status status = near_.device->Listen(address, &second);
  EXPECT_TRUE(status.IsBusy()) << status.ToString();
  EXPECT_NE(status.message().find(address), std::string_view::npos) << status.ToString();
  first.reset();
  EXPECT_TRUE(near_.device->Listen(address, &second).ok());
}

TEST_P(ConnectionContractTest, TheListenersAddressIsWhatPeersConnectTo) {
  ASSERT_TRUE(near_.Listen(AnyAddress()).ok());
  const std::string address = near_.listener->address();
  EXPECT_NE(address, AnyAddress());
  peer_->Start({.command = PeerCommand::kConnect, .numbers = {8, 8}, .bytes = address});
  ASSERT_TRUE(near_.Accept("").ok());
  ASSERT_TRUE(peer_->Finish().status.ok());
}

TEST_P(ConnectionContractTest, AcceptTimesOutAndEndsOnClose) {
  ASSERT_TRUE(near_.Listen(FreshAddress()).ok());
  std::unique_ptr<IncomingConnection> incoming;
  EXPECT_TRUE(near_.listener->Accept(milliseconds(1), &incoming).IsTimedOut());
  Thread closer("closer", [&] {
    Clock::System()->SleepFor(milliseconds(5));
    near_.listener->Close();
  });
  EXPECT_TRUE(near_.listener->Accept(seconds(60), &incoming).IsShutdownInProgress());
  closer.Join();
  EXPECT_TRUE(near_.listener->Accept(seconds(60), &incoming).IsShutdownInProgress());
}

TEST_P(ConnectionContractTest, AClosedListenerIsNobody) {
  const std::string address = FreshAddress();
  ASSERT_TRUE(near_.Listen(address).ok());
  near_.listener.reset();
  std::string reply;
  EXPECT_TRUE(near_.Connect(address, "", {}, &reply).IsUnavailable());
}

TEST_P(ConnectionContractTest, SillyArgumentsAreRefused) {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> queue;
  std::string reply;
  EXPECT_TRUE(near_.device->Listen("", &listener).IsInvalidArgument());
  EXPECT_TRUE(near_.device->Listen("/" + std::string(300, 'x'), &listener).IsInvalidArgument());
  EXPECT_TRUE(near_.device->AllocateRegion(0, Access::kRemoteAll, &region).IsInvalidArgument());
  EXPECT_TRUE(near_.device->CreateCompletionQueue(0, &queue).IsInvalidArgument());
  EXPECT_TRUE(
      near_.Connect(FreshAddress(), "", {.send = 0, .receive = 1}, &reply).IsInvalidArgument());
  EXPECT_TRUE(
      near_.Connect(FreshAddress(), "", {.send = 1, .receive = -1}, &reply).IsInvalidArgument());
}

TEST_P(ConnectionContractTest, ARegionBeyondTheMachineIsNoSpace) {
  std::unique_ptr<MemoryRegion> region;
  const Status status = near_.device->AllocateRegion(size_t{1} << 46, Access::kRemoteAll, &region);
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.message().find(std::to_string(size_t{1} << 46)), std::string_view::npos);
}

TEST_P(ConnectionContractTest, WaitTimesOut) {
  EXPECT_TRUE(near_.queue->Wait(milliseconds(0)).IsTimedOut());
  EXPECT_TRUE(near_.queue->Wait(milliseconds(2)).IsTimedOut());
  Completion completion;
  EXPECT_EQ(near_.queue->Poll(&completion, 1), 0);
}

TEST_P(ConnectionContractTest, WakeEndsOneCurrentOrFutureWait) {
  near_.queue->Wake();
  EXPECT_TRUE(near_.queue->Wait(seconds(60)).ok());
  EXPECT_TRUE(near_.queue->Wait(milliseconds(1)).IsTimedOut());
  // Another thread wakes it at random moments: each is seen by one Wait at least.
  std::atomic<int> woken{0};
  const int rounds = static_cast<int>(Times(2000));
  Thread waker("waker", [&] {
    Random random(TestSeed(601));
    for (int i = 1; i <= rounds; i++) {
      near_.queue->Wake();
      if (random.OneIn(4)) Clock::System()->SleepFor(std::chrono::microseconds(20));
      while (woken.load() < i) GiveWay();
    }
  });
  for (int i = 0; i < rounds; i++) {
    ASSERT_TRUE(near_.queue->Wait(seconds(60)).ok());
    woken++;
  }
  waker.Join();
}

TEST_P(ConnectionContractTest, WaitEndsForCompletionsThatWait) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostWrite(1, Near(0, 8), Far(0), kSignaled).ok());
  ASSERT_TRUE(near_.queue->Wait(seconds(60)).ok());
  ExpectNext(1, Opcode::kWrite);
}

TEST_P(ConnectionContractTest, NoWakeUpIsLost) {
  // Messages go back and forth, each side sleeping until the other's arrives. The pauses let
  // messages arrive in all phases of falling asleep. A lost wake-up shows as a timeout.
  const uint64_t rounds = Times(3000);
  QueuePair* pair = Connect({.send = 64, .receive = 4});
  peer_->PostRecv(0, 0, far_region_, 0, Device::kMaxSendBytes);
  peer_->Start(
      {.command = PeerCommand::kEcho, .numbers = {0, rounds, static_cast<uint64_t>(far_region_)}});
  Random random(TestSeed(602));
  for (uint64_t i = 0; i < rounds; i++) {
    ASSERT_TRUE(pair->PostRecv(1, Near(64, 8)).ok());
    std::memcpy(NearData(0), &i, 8);
    ASSERT_TRUE(pair->PostSend(2, Near(0, 8), kSignaled).ok());
    for (uint64_t spin = random.Skewed(13); spin > 0; spin--)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    bool received = false;
    for (int waits = 0; !received;) {
      Completion completion;
      if (near_.queue->Poll(&completion, 1) == 0) {
        ASSERT_TRUE(near_.queue->Wait(seconds(20)).ok());
        ASSERT_LT(++waits, 1000);
        continue;
      }
      ASSERT_EQ(completion.code, CompletionCode::kSuccess);
      received = completion.opcode == Opcode::kRecv;
    }
    ASSERT_EQ(LoadNear(64, 8), LoadNear(0, 8));
    Completion completion;
    while (near_.queue->Poll(&completion, 1) > 0) {
    }
  }
  const PeerAnswer answer = peer_->Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

}  // namespace

}  // namespace nacre::rdma
