// Goal: only peers that know the secret are connected (rdma/handshake.h). Method: devices with the
// same and with other secrets, of this process and of others, over each backend and decorator.
// Nothing here asserts how long something takes.

#include <thread>

#include "tests/rdma/contract_fixture.h"

namespace nacre::rdma {

namespace {

constexpr char kSecret[] = "the secret of this pool";

struct Secrets {
  const char* listener;
  const char* connector;
};

constexpr Secrets kMismatches[] = {
    {kSecret, "another secret"},
    {kSecret, ""},
    {"", kSecret},
    {kSecret, "the secret of this poo"},
};

class SecurityContractTest : public testing::TestWithParam<Setup> {
 protected:
  static std::string FreshAddress() { return rdma::FreshAddress(GetParam().spec.scheme); }
  static DeviceSpec With(const std::string& secret) {
    DeviceSpec spec = GetParam().spec;
    spec.secret = secret;
    return spec;
  }
  static std::unique_ptr<Peer> MakePeer(const std::string& secret) {
    return GetParam().child ? MakeChildPeer(With(secret)) : MakeLocalPeer(With(secret));
  }

  static void ExpectRefused(const Status& status) {
    EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
    EXPECT_NE(status.message().find("secret"), std::string_view::npos) << status.ToString();
  }
  static Status ConnectFrom(Endpoint* endpoint, const std::string& address,
                            const std::string& private_data) {
    std::string reply;
    return endpoint->Connect(address, private_data, {.send = 8, .receive = 8}, &reply);
  }
  static Status ConnectFrom(Peer* peer, const std::string& address,
                            const std::string& private_data) {
    return peer
        ->Run({.command = PeerCommand::kConnect,
               .numbers = {8, 8},
               .bytes = address,
               .more_bytes = private_data})
        .status;
  }
  /// A write of the connector's, to see that the connection is one.
  static void ExpectWorks(Endpoint* endpoint) {
    const int region = endpoint->Allocate(4096, Access::kLocalOnly);
    ASSERT_TRUE(
        endpoint->queue_pairs.back()->PostSend(7, endpoint->Buffer(region, 0, 16), kSignaled).ok());
    const Completion completion = endpoint->Next();
    EXPECT_EQ(completion.id, 7u);
    EXPECT_EQ(completion.code, CompletionCode::kSuccess) << ToString(completion.code);
  }
};

/// All but simulations, which model what becomes of the handshake, and not the handshake.
std::vector<Setup> RealSetups() {
  std::vector<Setup> setups = AllSetups();
  std::erase_if(setups, [](const Setup& setup) { return setup.spec.scheme == "sim"; });
  return setups;
}

INSTANTIATE_TEST_SUITE_P(All, SecurityContractTest, testing::ValuesIn(RealSetups()), NameOf);

TEST_P(SecurityContractTest, WhoKnowsTheSecretIsConnected) {
  const std::string address = FreshAddress();
  const auto peer = MakePeer(kSecret);
  Endpoint near(With(kSecret));
  if (GetParam().accepting) {
    ASSERT_TRUE(near.Listen(address).ok());
    peer->Start({.command = PeerCommand::kConnect, .numbers = {8, 8}, .bytes = address});
    EXPECT_TRUE(near.Accept("").ok());
  } else {
    const PeerAnswer listening = peer->Run({.command = PeerCommand::kListen, .bytes = address});
    ASSERT_TRUE(listening.status.ok());
    peer->Start({.command = PeerCommand::kAccept});
    const Status connected = ConnectFrom(&near, address, "");
    EXPECT_TRUE(connected.ok()) << connected.ToString();
  }
  const Status other = peer->Finish().status;
  ASSERT_TRUE(other.ok()) << other.ToString();
  RemoteKey key;
  const int region = peer->Allocate(4096, Access::kRemoteAll, &key);
  peer->PostRecv(0, 1, region, 0, 64);
  ExpectWorks(&near);
  EXPECT_EQ(near.device->traffic().peers_refused, 0u);
  EXPECT_EQ(near.device->traffic().frames_malformed, 0u);
  EXPECT_EQ(peer->Traffic().peers_refused, 0u);
  EXPECT_EQ(peer->Traffic().frames_malformed, 0u);
}

TEST_P(SecurityContractTest, WhoDoesNotIsRefusedAndOthersAreServed) {
  const bool encrypts = GetParam().spec.parameters.contains("tls");
  for (const Secrets& secrets : kMismatches) {
    const bool all_have_one = *secrets.listener != 0 && *secrets.connector != 0;
    if (encrypts && !all_have_one) continue;  // Such a device is not opened.
    SCOPED_TRACE(std::string(secrets.listener) + " / " + secrets.connector);
    const std::string address = FreshAddress();
    // The listener accepts this one, which shows that it accepted none before.
    Endpoint good(With(secrets.listener));
    if (GetParam().accepting) {
      const auto bad = MakePeer(secrets.connector);
      Endpoint listener(With(secrets.listener));
      ASSERT_TRUE(listener.Listen(address).ok());
      std::string accepted;
      std::thread accepting([&] { EXPECT_TRUE(listener.Accept("", &accepted).ok()); });
      ExpectRefused(ConnectFrom(bad.get(), address, "bad"));
      ExpectRefused(ConnectFrom(bad.get(), address, "bad"));
      const Status connected = ConnectFrom(&good, address, "good");
      EXPECT_TRUE(connected.ok()) << connected.ToString();
      accepting.join();
      EXPECT_EQ(accepted, "good");
      EXPECT_GE(listener.device->traffic().peers_refused, 1u);
      good.queue_pairs.clear();
    } else {
      const auto listener = MakePeer(secrets.listener);
      Endpoint bad(With(secrets.connector));
      const PeerAnswer listening =
          listener->Run({.command = PeerCommand::kListen, .bytes = address});
      ASSERT_TRUE(listening.status.ok());
      listener->Start({.command = PeerCommand::kAccept});
      ExpectRefused(ConnectFrom(&bad, address, "bad"));
      ExpectRefused(ConnectFrom(&bad, address, "bad"));
      EXPECT_TRUE(bad.queue_pairs.empty());
      const Status connected = ConnectFrom(&good, address, "good");
      EXPECT_TRUE(connected.ok()) << connected.ToString();
      EXPECT_EQ(listener->Finish().bytes, "good");
      EXPECT_GE(listener->Traffic().peers_refused, 1u);
      good.queue_pairs.clear();
    }
  }
}

}  // namespace

}  // namespace nacre::rdma
