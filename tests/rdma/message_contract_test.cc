// Goal: sends, receives and writes with immediate do what rdma/transport.h says, and the request
// scheme of the memory nodes can be built from them.
// Method: as in one_sided_contract_test.cc.

#include <atomic>
#include <numeric>
#include <thread>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/rdma/rdma_requests.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

class MessageContractTest : public ContractTest {};

INSTANTIATE_TEST_SUITE_P(All, MessageContractTest, testing::ValuesIn(AllSetups()), NameOf);

TEST_P(MessageContractTest, ASendArrivesInTheOldestReceive) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 100)).ok());
  ASSERT_TRUE(pair->PostRecv(2, Near(100, 100)).ok());
  StoreFar(0, "first message");
  ASSERT_TRUE(peer_->Post(Opcode::kSend, 0, 5, far_region_, 0, 13, {}, kSignaled).ok());
  ExpectNextAtPeer(5, Opcode::kSend);
  const Completion completion = near_.Next();
  EXPECT_EQ(completion.id, 1u);
  EXPECT_EQ(completion.queue_pair, pair);
  EXPECT_EQ(completion.opcode, Opcode::kRecv);
  EXPECT_EQ(completion.bytes, 13u);
  EXPECT_EQ(completion.code, CompletionCode::kSuccess);
  EXPECT_EQ(LoadNear(0, 13), "first message");
  EXPECT_EQ(LoadNear(100, 100), std::string(100, '\0'));
}

TEST_P(MessageContractTest, MessagesOfAllSizesArriveUnchangedInOrder) {
  QueuePair* pair = Connect({.send = 64, .receive = 16});
  Random random(TestSeed(401));
  for (int round = 0; round < 20; round++) {
    std::vector<std::string> messages;
    for (uint64_t i = 0; i < 16; i++) {
      peer_->PostRecv(0, i, far_region_, i * Device::kMaxSendBytes, Device::kMaxSendBytes);
    }
    for (uint64_t i = 0; i < 16; i++) {
      std::string message(round == 0 && i < 2 ? i * Device::kMaxSendBytes : random.Skewed(12),
                          static_cast<char>(random.Next()));
      StoreNear(0, message);
      // The buffer is the caller's again once the request has completed.
      ASSERT_TRUE(pair->PostSend(i, Near(0, message.size()), kSignaled).ok());
      ExpectNext(i, Opcode::kSend);
      messages.push_back(std::move(message));
    }
    for (uint64_t i = 0; i < 16; i++) {
      const Completion completion = peer_->Next();
      ASSERT_EQ(completion.id, i);
      ASSERT_EQ(completion.bytes, messages[i].size());
      ASSERT_EQ(LoadFar(i * Device::kMaxSendBytes, messages[i].size()), messages[i]);
    }
  }
}

TEST_P(MessageContractTest, ASendBeyondTheLimitIsRefusedAndHarmless) {
  QueuePair* pair = Connect();
  const Status status = pair->PostSend(1, Near(0, Device::kMaxSendBytes + 1), kSignaled);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.message().find("4097"), std::string_view::npos) << status.ToString();
  ExpectNothing();
  EXPECT_FALSE(pair->broken());
}

TEST_P(MessageContractTest, AMessageWaitsForItsReceive) {
  QueuePair* pair = Connect();
  StoreFar(0, "early");
  ASSERT_TRUE(peer_->Post(Opcode::kSend, 0, 5, far_region_, 0, 5, {}, 0).ok());
  ExpectNothing();
  ASSERT_TRUE(pair->PostRecv(1, Near(0, 100)).ok());
  ExpectNext(1, Opcode::kRecv);
  EXPECT_EQ(LoadNear(0, 5), "early");
}

TEST_P(MessageContractTest, WhoPostsReceivesInTimeLosesNothing) {
  // More messages than either side has room for at once. A sender that is told Busy tries again.
  const uint64_t messages = Times(2000);
  QueuePair* pair = Connect({.send = 8, .receive = 4});
  for (uint64_t i = 0; i < 4; i++) peer_->PostRecv(0, i, far_region_, 8 * i, 8);
  uint64_t received = 0;
  uint64_t busy = 0;
  for (uint64_t i = 0; i < messages;) {
    // One place more than requests may be outstanding: a Busy one has written to its place, too.
    std::memcpy(NearData(8 * (i % 9)), &i, 8);
    const Status status = pair->PostSend(i, Near(8 * (i % 9), 8), kSignaled);
    if (status.ok()) {
      i++;
    } else {
      ASSERT_TRUE(status.IsBusy()) << status.ToString();
      busy++;
    }
    Completion completion;
    while (near_.queue->Poll(&completion, 1) > 0) {
      ASSERT_EQ(completion.code, CompletionCode::kSuccess);
    }
    if (status.IsBusy() || i == messages) {
      while (received < i) {
        Completion arrival;
        if (!peer_->Next(&arrival, std::chrono::milliseconds(i == messages ? 5000 : 0))) break;
        ASSERT_EQ(arrival.code, CompletionCode::kSuccess);
        ASSERT_EQ(arrival.id, received % 4);
        ASSERT_EQ(LoadFar(8 * (received % 4), 8),
                  std::string(reinterpret_cast<const char*>(&received), 8));
        received++;
        peer_->PostRecv(0, arrival.id, far_region_, 8 * arrival.id, 8);
      }
    }
  }
  EXPECT_EQ(received, messages);
  EXPECT_GT(busy, 0u);
  EXPECT_FALSE(pair->broken());
}

TEST_P(MessageContractTest, UnreceivedMessagesAreBounded) {
  QueuePair* pair = Connect({.send = 1024, .receive = 8});
  Status status;
  uint64_t sent = 0;
  while (sent < 1024 && status.ok()) {
    status = pair->PostSend(sent, Near(0, 8), kSignaled);
    if (status.ok()) sent++;
  }
  EXPECT_GE(sent, 8u);
  if (status.IsBusy()) {
    // Nothing was posted, nothing is broken, and room makes it work again. Whether a message that
    // waits for its receive has completed is the backend's.
    for (uint64_t i = 0; i < 8; i++) peer_->PostRecv(0, i, far_region_, 8 * i, 8);
    for (uint64_t i = 0; i < 8; i++) ExpectNextAtPeer(i, Opcode::kRecv);
    for (uint64_t i = 0; i < sent; i++) ExpectNext(i, Opcode::kSend);
    peer_->PostRecv(0, 8, far_region_, 0, 8);
    EXPECT_TRUE(pair->PostSend(7, Near(0, 8), kSignaled).ok());
    ExpectNext(7, Opcode::kSend);
  } else {
    // The other answer that the contract allows.
    Completion last;
    for (uint64_t i = 0; i < sent; i++) last = near_.Next();
    EXPECT_NE(last.code, CompletionCode::kSuccess);
  }
}

TEST_P(MessageContractTest, WriteWithImmediateConsumesAReceiveAfterItsBytes) {
  QueuePair* pair = Connect();
  ASSERT_TRUE(pair->PostRecv(1, {}).ok());
  ASSERT_TRUE(pair->PostRecv(2, Near(512, 8)).ok());
  StoreFar(0, "with notice");
  ASSERT_TRUE(peer_
                  ->Post(Opcode::kWriteWithImm, 0, 3, far_region_, 0, 11, NearKey(200), kSignaled,
                         0xfeedbeef)
                  .ok());
  const Completion first = near_.Next();
  EXPECT_EQ(first.id, 1u);
  EXPECT_EQ(first.opcode, Opcode::kRecvWithImm);
  EXPECT_EQ(first.immediate, 0xfeedbeefu);
  EXPECT_EQ(first.bytes, 11u);
  EXPECT_EQ(LoadNear(200, 11), "with notice");
  ExpectNextAtPeer(3, Opcode::kWriteWithImm);
  // It is a mere notice without bytes.
  ASSERT_TRUE(peer_->Post(Opcode::kWriteWithImm, 0, 4, 0, 0, 0, {}, kSignaled, 7).ok());
  const Completion second = near_.Next();
  EXPECT_EQ(second.id, 2u);
  EXPECT_EQ(second.opcode, Opcode::kRecvWithImm);
  EXPECT_EQ(second.immediate, 7u);
  EXPECT_EQ(second.bytes, 0u);
  EXPECT_EQ(LoadNear(512, 8), std::string(8, '\0'));
}

TEST_P(MessageContractTest, SendsAndImmediatesKeepTheirOrder) {
  constexpr uint64_t kMessages = 60;
  QueuePair* pair = Connect();
  for (uint64_t i = 0; i < kMessages; i++) {
    ASSERT_TRUE(pair->PostRecv(i, Near(8 * i, 8)).ok());
  }
  for (uint64_t i = 0; i < kMessages; i++) {
    const Opcode opcode = i % 3 == 0 ? Opcode::kWriteWithImm : Opcode::kSend;
    ASSERT_TRUE(
        peer_->Post(opcode, 0, i, far_region_, 0, 8, NearKey(4096), 0, static_cast<uint32_t>(i))
            .ok());
  }
  for (uint64_t i = 0; i < kMessages; i++) {
    const Completion completion = near_.Next();
    ASSERT_EQ(completion.id, i);
    ASSERT_EQ(completion.opcode, i % 3 == 0 ? Opcode::kRecvWithImm : Opcode::kRecv);
    if (i % 3 == 0) {
      ASSERT_EQ(completion.immediate, i);
    }
  }
}

TEST_P(MessageContractTest, ManyPairsReceiveIntoOneQueue) {
  constexpr uint64_t kPairs = 66;
  std::vector<QueuePair*> pairs;
  for (uint64_t i = 0; i < kPairs; i++) {
    pairs.push_back(Connect({.send = 8, .receive = 2}));
    ASSERT_TRUE(pairs[i]->PostRecv(i, Near(8 * i, 8)).ok());
  }
  for (uint64_t i = 0; i < kPairs; i++) {
    ASSERT_TRUE(
        peer_->Post(Opcode::kSend, static_cast<int>(i), i, far_region_, 0, 8, {}, kSignaled).ok());
  }
  std::vector<int> seen(kPairs);
  for (uint64_t i = 0; i < kPairs; i++) {
    const Completion completion = near_.Next();
    ASSERT_LT(completion.id, kPairs);
    EXPECT_EQ(completion.queue_pair, pairs[completion.id]);
    seen[completion.id]++;
  }
  EXPECT_EQ(seen, std::vector<int>(kPairs, 1));
}

TEST_P(MessageContractTest, TheRequestSchemeWorks) {
  constexpr uint64_t kReplyAt = 8192;
  constexpr uint64_t kArgumentAt = 65536;
  const int requests = static_cast<int>(Times(150));
  QueuePair* pair = Connect();
  Random random(TestSeed(402));
  peer_->PostRecv(0, 0, far_region_, 0, Device::kMaxSendBytes);
  peer_->Start(
      {.command = PeerCommand::kServeRequests,
       .numbers = {0, static_cast<uint64_t>(requests), static_cast<uint64_t>(far_region_)}});
  auto* const reply = reinterpret_cast<SumReply*>(NearData(kReplyAt));
  for (int i = 0; i < requests; i++) {
    const bool large = random.OneIn(2);
    const bool sleep = random.OneIn(2);
    const size_t size = random.Uniform(large ? 200000 : Device::kMaxSendBytes - sizeof(SumRequest));
    SumRequest request{.reply_address = NearKey(kReplyAt).address, .key = NearKey(0).key};
    char* const bytes = NearData(large ? kArgumentAt : sizeof(request));
    for (size_t j = 0; j < size; j++) bytes[j] = static_cast<char>(random.Next());
    const uint64_t sum = std::accumulate(bytes, bytes + size, uint64_t{0}, [](uint64_t a, char b) {
      return a + static_cast<unsigned char>(b);
    });
    if (large) {
      request.argument_address = NearKey(kArgumentAt).address;
      request.argument_size = size;
    }
    request.wake = sleep ? static_cast<uint32_t>(i + 1) : 0;
    if (large && size == 0) request.argument_address = 0;
    std::memcpy(NearData(0), &request, sizeof(request));
    *reply = SumReply();
    if (sleep) {
      ASSERT_TRUE(pair->PostRecv(9, {}).ok());
    }
    ASSERT_TRUE(pair->PostSend(1, Near(0, sizeof(request) + (large ? 0 : size)), kSignaled).ok());
    // The contract does not order sends and receives among each other.
    for (int left = sleep ? 2 : 1; left > 0; left--) {
      const Completion completion = near_.Next();
      ASSERT_EQ(completion.code, CompletionCode::kSuccess);
      if (completion.opcode == Opcode::kSend) continue;
      ASSERT_EQ(completion.opcode, Opcode::kRecvWithImm);
      ASSERT_EQ(completion.immediate, request.wake);
    }
    if (!sleep) {
      const std::atomic_ref<uint64_t> done(reply->done);
      while (done.load(std::memory_order_acquire) == 0) GiveWay();
    }
    ASSERT_EQ(reply->done, 1u);
    ASSERT_EQ(reply->sum, sum);
  }
  const PeerAnswer answer = peer_->Finish();
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
}

}  // namespace

}  // namespace nacre::rdma
