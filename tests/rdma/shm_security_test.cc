// Goal: a shm device hands descriptors only to peers that have proven that they know the secret,
// and whatever else arrives at its sockets ends that connection, is counted, and does no harm.
// Method: handshakes spoken over bare sockets: replayed, reflected, truncated, oversized, spoiled
// in each field; a good peer is served beside them.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/temp_folder.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ShmSecurityTest : public testing::Test {
 protected:
  std::string SocketPath() const { return folder_.File("node.sock"); }

  const TempFolder folder_;
};

/// Speaks the handshake over a bare socket, as one that will prove `secret`.
class Impostor {
 public:
  explicit Impostor(const std::string& path, const std::string& secret = "of this pool") {
    SecretId id = 0;
    EXPECT_TRUE(IdOfSecret(secret, &id).ok());
    EXPECT_TRUE(DrawConnectorNonce(id, &hello_.nonce).ok());
    ShmAddress address;
    EXPECT_TRUE(ParseShmAddress(path, &address).ok());
    EXPECT_TRUE(ConnectTo(address, deadline_, &socket_).ok());
    hello_.ring_slots = 4;
    hello_.send_depth = 4;
  }

  Hello* hello() { return &hello_; }
  void Send(const void* bytes, size_t size, const std::vector<int>& fds = {}) {
    ASSERT_TRUE(SendBy(socket_.get(), deadline_, bytes, size, fds).ok());
  }
  void SayHello(Challenge* challenge) {
    Send(&hello_, sizeof(hello_));
    Packet packet;
    ASSERT_TRUE(ReceiveBy(socket_.get(), deadline_, &packet).ok());
    ASSERT_TRUE(DecodeChallenge(packet.bytes(), packet.fds.size(), challenge).ok());
  }
  /// Sends three descriptors along, which are of no use.
  void Introduce(const Introduction& introduction) {
    const UniqueFd fd(memfd_create("impostor", MFD_CLOEXEC));
    Send(&introduction, sizeof(introduction), {fd.get(), fd.get(), fd.get()});
  }
  /// The connection was closed without another word.
  void ExpectTurnedAway() {
    Packet packet;
    const Status status = ReceiveBy(socket_.get(), deadline_, &packet);
    EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  }

 private:
  const Deadline deadline_ = Deadline::After(Clock::System(), seconds(10));
  UniqueFd socket_;
  Hello hello_;
};

TEST_F(ShmSecurityTest, NoProofNoDescriptor) {
  constexpr char kShmSecret[] = "of this pool";
  Endpoint near({.secret = kShmSecret});
  Endpoint far({.secret = kShmSecret});
  far.Allocate(4096);
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  std::thread accepting([&] { EXPECT_TRUE(far.Accept("").ok()); });
  // Proves itself once, and is overheard.
  Hello overheard_hello;
  Introduction overheard;
  uint64_t refused = 0;
  uint64_t malformed = 0;
  {
    Impostor wrong(SocketPath());
    Challenge challenge;
    wrong.SayHello(&challenge);
    const Handshake said = Said(*wrong.hello(), challenge);
    EXPECT_TRUE(CheckProof(challenge.proof, kShmSecret, Role::kListener, said).ok());
    overheard_hello = *wrong.hello();
    ASSERT_TRUE(Prove(kShmSecret, Role::kConnector, said, &overheard.proof).ok());
    Introduction introduction;
    ASSERT_TRUE(Prove("not it", Role::kConnector, said, &introduction.proof).ok());
    wrong.Introduce(introduction);
    wrong.ExpectTurnedAway();
    refused++;
  }
  {
    Impostor replaying(SocketPath());
    Challenge challenge;
    *replaying.hello() = overheard_hello;
    replaying.SayHello(&challenge);
    replaying.Introduce(overheard);
    replaying.ExpectTurnedAway();
    refused++;
  }
  {
    Impostor reflecting(SocketPath());  // Sends the listener's own proof back.
    Challenge challenge;
    reflecting.SayHello(&challenge);
    Introduction introduction;
    introduction.proof = challenge.proof;
    reflecting.Introduce(introduction);
    reflecting.ExpectTurnedAway();
    refused++;
  }
  {
    Impostor leaving(SocketPath());
    Challenge challenge;
    leaving.SayHello(&challenge);
    refused++;
  }
  {
    Impostor unknown(SocketPath(), "of another pool");  // It is answered as the others are.
    Challenge challenge;
    unknown.SayHello(&challenge);
    const Handshake said = Said(*unknown.hello(), challenge);
    for (const char* const secret : {kShmSecret, "of another pool", ""}) {
      EXPECT_FALSE(CheckProof(challenge.proof, secret, Role::kListener, said).ok());
    }
    Introduction introduction;
    ASSERT_TRUE(Prove("of another pool", Role::kConnector, said, &introduction.proof).ok());
    unknown.Introduce(introduction);
    unknown.ExpectTurnedAway();
    refused++;
  }
  for (const size_t size : {size_t{1}, sizeof(MessageHeader), sizeof(Hello) - 1}) {
    Impostor truncated(SocketPath());
    truncated.Send(truncated.hello(), size);
    truncated.ExpectTurnedAway();
    malformed++;
  }
  for (const size_t size : {sizeof(Hello) + 1, kMaxMessageBytes, kMaxMessageBytes + 1}) {
    Impostor oversized(SocketPath());
    std::string bytes(reinterpret_cast<const char*>(oversized.hello()), sizeof(Hello));
    bytes.resize(size);
    oversized.Send(bytes.data(), bytes.size());
    oversized.ExpectTurnedAway();
    malformed++;
  }
  for (const auto& spoil : std::vector<std::function<void(Hello*)>>{
           [](Hello* hello) { hello->header.magic++; },
           [](Hello* hello) { hello->header.type = MessageType::kIntroduction; },
           [](Hello* hello) { hello->ring_slots = 3; },
           [](Hello* hello) { hello->ring_slots = 1u << 31; },
           [](Hello* hello) { hello->send_depth = 0; },
           [](Hello* hello) { hello->receive_depth = 1000; },
           [](Hello* hello) { hello->private_size = Device::kMaxPrivateData + 1; }}) {
    Impostor odd(SocketPath());
    spoil(odd.hello());
    odd.Send(odd.hello(), sizeof(Hello));
    odd.ExpectTurnedAway();
    malformed++;
  }
  {
    Impostor giving(SocketPath());  // Descriptors come with the proof only.
    const UniqueFd fd(memfd_create("impostor", MFD_CLOEXEC));
    giving.Send(giving.hello(), sizeof(Hello), {fd.get()});
    giving.ExpectTurnedAway();
    malformed++;
  }
  for (const bool with_fds : {false, true}) {
    Impostor odd(SocketPath());
    Challenge challenge;
    odd.SayHello(&challenge);
    Introduction introduction;
    const Handshake said = Said(*odd.hello(), challenge);
    ASSERT_TRUE(Prove(kShmSecret, Role::kConnector, said, &introduction.proof).ok());
    if (with_fds) introduction.regions = ~uint32_t{0};
    if (with_fds) odd.Introduce(introduction);
    if (!with_fds) odd.Send(&introduction, sizeof(introduction));
    odd.ExpectTurnedAway();
    malformed++;
  }
  std::string reply;
  const Status connected = near.Connect(SocketPath(), "", {.send = 16, .receive = 4}, &reply);
  EXPECT_TRUE(connected.ok()) << connected.ToString();
  accepting.join();
  EXPECT_EQ(far.device->traffic().peers_refused, refused);
  EXPECT_EQ(far.device->traffic().frames_malformed, malformed);
}

TEST_F(ShmSecurityTest, ASilentCallerIsCountedAndDelaysNobody) {
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  Impostor silent(SocketPath());
  Impostor half(SocketPath());
  half.Send(half.hello(), sizeof(Hello));
  ConnectEndpoints(&near, &far, SocketPath());
  std::unique_ptr<IncomingConnection> incoming;
  while (far.device->traffic().peers_refused < 2) {
    ASSERT_TRUE(far.listener->Accept(milliseconds(100), &incoming).IsTimedOut());
  }
  silent.ExpectTurnedAway();
}

TEST_F(ShmSecurityTest, WhatIsNoAnnouncementEndsTheConnection) {
  Endpoint near({});
  Endpoint far({});
  near.Allocate(4096);
  far.Allocate(4096);
  // This takes the place of `far`: a member of the pool that has gone mad after the handshake.
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  ConnectEndpoints(&near, &far, SocketPath());
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_un name{};
    socklen_t size = sizeof(name);
    // The accepting end has the listener's name, and is connected.
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    if (name.sun_family != AF_UNIX || SocketPath() != name.sun_path) continue;
    size = sizeof(name);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    ASSERT_EQ(send(fd, "nonsense", 8, MSG_NOSIGNAL), 8);
  }
  const Deadline deadline = Deadline::After(Clock::System(), Endpoint::kPatience);
  while (!near.queue_pairs[0]->broken()) ASSERT_FALSE(deadline.Expired());
  EXPECT_EQ(near.device->traffic().frames_malformed, 1u);
}

TEST_F(ShmSecurityTest, RefusalsAreToldToTheLog) {
  class Recorder final : public Logger {
   public:
    void Log(LogLevel level, std::string_view message) override {
      EXPECT_EQ(level, LogLevel::kWarn);
      lines.emplace_back(message);
    }
    std::vector<std::string> lines;
  };
  const auto recorder = std::make_shared<Recorder>();
  DeviceOptions options;
  options.secret = "a secret that is not to be told";
  options.logger = recorder;
  std::unique_ptr<Device> device;
  ASSERT_TRUE(OpenDevice("shm", options, Clock::System(), &device).ok());
  std::unique_ptr<Listener> listener;
  ASSERT_TRUE(device->Listen(SocketPath(), &listener).ok());
  for (int i = 0; i < 3; i++) {
    Impostor nonsense(SocketPath());
    nonsense.Send("hello?", 6);
    std::unique_ptr<IncomingConnection> incoming;
    while (device->traffic().frames_malformed <= static_cast<uint64_t>(i)) {
      ASSERT_TRUE(listener->Accept(milliseconds(10), &incoming).IsTimedOut());
    }
  }
  ASSERT_GE(recorder->lines.size(), 1u);
  EXPECT_NE(recorder->lines[0].find(SocketPath()), std::string::npos) << recorder->lines[0];
  for (const std::string& line : recorder->lines) {
    EXPECT_EQ(line.find(options.secret), std::string::npos);
  }
}

}  // namespace

}  // namespace nacre::rdma
