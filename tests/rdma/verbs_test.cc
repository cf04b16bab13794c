// Goal: what the verbs backend adds to the contract: regions in several pieces, requests larger
// than the adapter takes at once, atomics of several requesters, a link that goes down, strangers
// at the door, and nothing left behind.
// Method: devices of this process over the RDMA device that NACRE_TEST_VERBS_HOST names; the guest
// of tests/rdma_vm has one. Skipped elsewhere.

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "rdma/verbs/address.h"
#include "rdma/verbs/wire.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/rdma/rdma_requests.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;

class VerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (VerbsHost() == nullptr) GTEST_SKIP() << "no RDMA device named by NACRE_TEST_VERBS_HOST";
  }

  static DeviceSpec Spec(const std::string& name = "timeout_ms",
                         const std::string& value = "1000") {
    return {.scheme = "verbs", .parameters = {{name, value}}};
  }

  /// The new queue pairs are the last ones of both.
  static void Connect(Endpoint* near, Endpoint* far, QueueDepths depths = {}) {
    const std::string address = FreshAddress("verbs");
    ASSERT_TRUE(far->Listen(address).ok());
    std::thread accepting([&] {
      const Status status = far->Accept("");
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    std::string reply;
    const Status status = near->Connect(address, "", depths, &reply);
    EXPECT_TRUE(status.ok()) << status.ToString();
    accepting.join();
  }

  static void ExpectSuccess(Endpoint* endpoint) {
    const Completion completion = endpoint->Next();
    EXPECT_EQ(completion.code, CompletionCode::kSuccess) << ToString(completion.code);
  }
};

TEST_F(VerbsTest, ARegionInPiecesIsOneToItsOwner) {
  constexpr size_t kPiece = 1 << 20;
  Endpoint near(Spec("piece_mib", "1"));
  Endpoint far(Spec("piece_mib", "1"));
  near.Allocate(3 * kPiece + kPiece / 2);
  far.Allocate(3 * kPiece + kPiece / 2);
  const MemoryRegion& region = *far.regions[0];
  ASSERT_EQ(region.piece_bytes(), kPiece);
  for (size_t i = 0; i < 4; i++) {
    EXPECT_EQ(region.piece_key(i).address, region.remote_key().address + i * kPiece);
    EXPECT_EQ(region.piece_key(i).size, i < 3 ? kPiece : kPiece / 2);
  }
  Connect(&near, &far);
  QueuePair* const pair = near.queue_pairs[0].get();
  // Local buffers over one boundary, and over all of them.
  for (const size_t begin : {kPiece - 100, size_t{1}}) {
    const size_t size = begin == 1 ? kPiece : 300;
    for (size_t i = 0; i < size; i++) near.Data(0)[begin + i] = static_cast<char>(i * 7 + begin);
    const RemoteKey key = region.piece_key(2);
    ASSERT_TRUE(
        pair->PostWrite(1, near.Buffer(0, begin, size), {key.address, key.key}, kSignaled).ok());
    ExpectSuccess(&near);
    EXPECT_EQ(std::memcmp(far.Data(0) + 2 * kPiece, near.Data(0) + begin, size), 0);
    const size_t back = 2 * kPiece - 50;
    ASSERT_TRUE(
        pair->PostRead(2, near.Buffer(0, back, size), {key.address, key.key}, kSignaled).ok());
    ExpectSuccess(&near);
    EXPECT_EQ(std::memcmp(far.Data(0) + 2 * kPiece, near.Data(0) + back, size), 0);
  }
  // Messages as well, at both ends.
  ASSERT_TRUE(far.queue_pairs[0]->PostRecv(3, far.Buffer(0, kPiece - 8, 4096)).ok());
  ASSERT_TRUE(pair->PostSend(4, near.Buffer(0, kPiece - 16, 64), kSignaled).ok());
  ExpectSuccess(&near);
  ExpectSuccess(&far);
  EXPECT_EQ(std::memcmp(far.Data(0) + kPiece - 8, near.Data(0) + kPiece - 16, 64), 0);
  // A peer's key ends with its piece.
  const RemoteKey first = region.remote_key();
  ASSERT_TRUE(
      pair->PostRead(5, near.Buffer(0, 0, 8), {first.address + kPiece - 4, first.key}, kSignaled)
          .ok());
  EXPECT_EQ(near.Next().code, CompletionCode::kRemoteAccessError);
}

TEST_F(VerbsTest, AtomicsOfSeveralRequestersAddUp) {
  constexpr int kCount = 300;
  Endpoint far(Spec());
  far.Allocate(4096);
  const RemoteKey key = far.regions[0]->remote_key();
  std::array<std::unique_ptr<Endpoint>, 2> requesters;
  for (auto& requester : requesters) {
    requester = std::make_unique<Endpoint>(Spec());
    requester->Allocate(4096);
    Connect(requester.get(), &far);
  }
  for (const bool by_swap : {false, true}) {
    std::vector<std::thread> threads;
    for (auto& requester : requesters) {
      threads.emplace_back([&] {
        const Status status =
            AddTo(requester.get(), requester->queue_pairs[0].get(), requester->Buffer(0, 0, 8),
                  {key.address + (by_swap ? 8 : 0), key.key}, kCount, by_swap);
        EXPECT_TRUE(status.ok()) << status.ToString();
      });
    }
    for (std::thread& thread : threads) thread.join();
    uint64_t sum;
    std::memcpy(&sum, far.Data(0) + (by_swap ? 8 : 0), sizeof(sum));
    EXPECT_EQ(sum, 2u * kCount);
  }
}

/// What the kernel and this process hold for RDMA.
std::string Holdings() {
  std::string text;
  if (FILE* const pipe = popen("rdma resource show", "r"); pipe != nullptr) {
    std::array<char, 256> line;
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) text += line.data();
    pclose(pipe);
  }
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return text + std::to_string(std::distance(begin(fds), end(fds))) + " descriptors";
}

TEST_F(VerbsTest, ConnectionsThatComeAndBreakLeaveNothingBehind) {
  Endpoint near(Spec());
  Endpoint far(Spec());
  near.Allocate(4096);
  far.Allocate(4096);
  const auto round = [&](int i) {
    Connect(&near, &far, {.send = 16, .receive = 4});
    near.Allocate(8192);
    std::unique_ptr<RegionGrant> grant;
    ASSERT_TRUE(far.regions[0]->Grant(0, 64, Access::kRemoteAll, &grant).ok());
    const RemoteKey key = grant->remote_key();
    QueuePair* const pair = near.queue_pairs.back().get();
    ASSERT_TRUE(pair->PostRecv(1, near.Buffer(0, 0, 64)).ok());
    ASSERT_TRUE(pair->PostWrite(2, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled).ok());
    ExpectSuccess(&near);
    if (i % 2 == 0) {
      ASSERT_TRUE(pair->PostRead(3, near.Buffer(0, 0, 8), {key.address, key.key + 1}, 0).ok());
      EXPECT_EQ(near.Next().code, CompletionCode::kRemoteAccessError);
    }
    if (i % 4 == 1) far.queue_pairs.clear();
    near.queue_pairs.clear();
    far.queue_pairs.clear();
    far.listener.reset();
    near.regions.pop_back();
    Completion completion;
    while (near.queue->Poll(&completion, 1) > 0) {
    }
  };
  round(0);
  const std::string before = Holdings();
  for (int i = 0; i < 100; i++) {
    SCOPED_TRACE(i);
    round(i);
    if (HasFatalFailure()) return;
  }
  // Ids wait in the kernel for a moment for packets that come late.
  for (int i = 0; i < 100 && Holdings() != before; i++)
    std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(Holdings(), before);
}

TEST_F(VerbsTest, HeartbeatsAmidRequestsAreNotSeen) {
  // A period is 25 ms: some requests meet a heartbeat under way, and unsignalled ones are behind
  // it.
  Endpoint near(Spec("timeout_ms", "100"));
  Endpoint far(Spec("timeout_ms", "100"));
  near.Allocate(4096);
  far.Allocate(4096);
  constexpr int kDepth = 8;
  Connect(&near, &far, {.send = kDepth, .receive = 4, .control = true});
  QueuePair* const pair = near.queue_pairs[0].get();
  const RemoteKey key = far.regions[0]->remote_key();
  Random random(TestSeed(1217));
  uint64_t next = 0;
  for (int round = 0; round < 100; round++) {
    const uint64_t count = random.Uniform(kDepth) + 1;
    // The last one is not always told of; its room comes back all the same.
    const bool told = round % 4 != 0 || count == kDepth;
    for (uint64_t i = 1; i <= count; i++) {
      const uint8_t flags = told && i == count ? kSignaled : 0;
      Status status;
      do {
        status = pair->PostWrite(next + i, near.Buffer(0, 0, 8), {key.address, key.key}, flags);
        Completion none;
        if (status.IsBusy()) {
          EXPECT_FALSE(near.Next(&none, milliseconds(1)));
        }
      } while (status.IsBusy());
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    next += count;
    if (told) {
      EXPECT_EQ(near.Next().id, next);
    } else {
      Completion none;
      EXPECT_FALSE(near.Next(&none, milliseconds(random.Uniform(100))));
    }
  }
  ASSERT_TRUE(
      pair->PostRead(next + 1, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled).ok());
  EXPECT_EQ(near.Next().id, next + 1);
  EXPECT_FALSE(pair->broken());
  EXPECT_EQ(near.device->traffic().writes, next);
  EXPECT_EQ(near.device->traffic().bytes_written, 8 * next);
  EXPECT_EQ(far.device->traffic().writes, 0u);
}

TEST_F(VerbsTest, ALinkThatGoesDownEndsWhatIsUnderWay) {
  const char* const link = std::getenv("NACRE_TEST_VERBS_LINK");
  if (link == nullptr) GTEST_SKIP() << "no link named by NACRE_TEST_VERBS_LINK";
  const auto set = [&](const std::string& state) {
    ASSERT_EQ(std::system(("ip link set " + std::string(link) + " " + state).c_str()), 0);
  };
  Endpoint near(Spec());
  Endpoint far(Spec());
  near.Allocate(4096);
  far.Allocate(4096);
  const RemoteKey key = far.regions[0]->remote_key();
  Connect(&near, &far);
  set("down");
  QueuePair* const pair = near.queue_pairs[0].get();
  for (uint64_t i = 0; i < 4; i++) {
    ASSERT_TRUE(pair->PostWrite(i, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled).ok());
  }
  for (uint64_t i = 0; i < 4; i++) {
    const Completion completion = near.Next();
    EXPECT_EQ(completion.id, i);
    EXPECT_EQ(completion.code, i == 0 ? CompletionCode::kPeerGone : CompletionCode::kFlushed)
        << ToString(completion.code);
  }
  EXPECT_TRUE(pair->broken());
  std::string reply;
  const Status status = near.Connect(far.listener->address(), "", {}, &reply, milliseconds(500));
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  set("up");
  // The address's entries come back a moment after the link.
  std::this_thread::sleep_for(milliseconds(500));
  near.queue_pairs.clear();
  far.queue_pairs.clear();
  Connect(&near, &far);
  ASSERT_FALSE(near.queue_pairs.empty());
  ASSERT_TRUE(near.queue_pairs[0]
                  ->PostWrite(9, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled)
                  .ok());
  ExpectSuccess(&near);
}

/// Asks to connect with that private data, by hand; what the listener answers.
std::string AskByHand(const std::string& address, std::string_view bytes) {
  VerbsAddress parsed;
  EXPECT_TRUE(ParseVerbsAddress(address, &parsed).ok());
  rdma_cm_id* id = nullptr;
  // The calls wait for their events without a channel.
  EXPECT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, parsed.get(), 2000), 0);
  EXPECT_EQ(rdma_resolve_route(id, 2000), 0);
  rdma_conn_param parameters{};
  parameters.private_data = bytes.data();
  parameters.private_data_len = static_cast<uint8_t>(bytes.size());
  static uint32_t next_queue_pair = 0x800000;
  parameters.qp_num = next_queue_pair++;
  EXPECT_NE(rdma_connect(id, &parameters), 0);
  std::string answer;
  if (id->event != nullptr && id->event->param.conn.private_data != nullptr) {
    answer.assign(static_cast<const char*>(id->event->param.conn.private_data),
                  id->event->param.conn.private_data_len);
  }
  rdma_destroy_id(id);
  return answer;
}

TEST_F(VerbsTest, StrangersGetNothingAndAreCounted) {
  Endpoint far(Spec());
  Endpoint near(Spec());
  ASSERT_TRUE(far.Listen(FreshAddress("verbs")).ok());
  const std::string address = far.listener->address();
  uint64_t refused = 0;
  const auto expect = [&](std::string_view bytes, VerbsMessage message) {
    VerbsHeader header;
    std::string reason;
    EXPECT_TRUE(DecodeVerbsRefusal(AskByHand(address, bytes), &header, &reason));
    EXPECT_EQ(header.message, message);
    EXPECT_EQ(far.device->traffic().peers_refused, ++refused);
  };
  expect("GET / HTTP/1.1", VerbsMessage::kNotAdmitted);
  expect(std::string_view(), VerbsMessage::kNotAdmitted);
  VerbsHello hello;
  hello.header.version = kVerbsVersion + 1;
  expect(AsBytes(hello), VerbsMessage::kOtherVersion);
  hello.header.version = kVerbsVersion;
  expect(AsBytes(hello), VerbsMessage::kNotAdmitted);  // Depths of 0.
  VerbsAnswer answer;
  expect(AsBytes(answer), VerbsMessage::kNotAdmitted);  // To no challenge.

  hello.send_depth = hello.receive_depth = 8;
  SecretId id = 0;
  ASSERT_TRUE(IdOfSecret("", &id).ok());
  ASSERT_TRUE(DrawConnectorNonce(id, &hello.nonce).ok());
  const std::string challenged = AskByHand(address, AsBytes(hello));
  VerbsChallenge challenge;
  ASSERT_TRUE(DecodeVerbsChallenge(challenged, &challenge));
  answer.listener_nonce = challenge.nonce;
  expect(AsBytes(answer), VerbsMessage::kNotAdmitted);  // This has no proof.
  Handshake handshake{.connector_nonce = hello.nonce, .listener_nonce = challenge.nonce};
  handshake.hello = AsBytes(hello);
  ASSERT_TRUE(Prove("", Role::kConnector, handshake, &answer.proof).ok());
  expect(AsBytes(answer), VerbsMessage::kNotAdmitted);  // and too late with one.

  // None of them came to Accept.
  std::thread accepting([&] { EXPECT_TRUE(far.Accept("welcome").ok()); });
  std::string reply;
  EXPECT_TRUE(near.Connect(address, "", {}, &reply).ok());
  accepting.join();
  EXPECT_EQ(reply, "welcome");
}

}  // namespace

}  // namespace nacre::rdma
