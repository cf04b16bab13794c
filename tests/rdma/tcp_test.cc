// Goal: what only the tcp backend has: its addresses, its frames, strangers at its port, silent
// peers, and which thread serves a socket when (rdma/tcp/connection.h). Method: devices of this
// process, and peers that speak the protocol by hand so that they can break it. Whatever is waited
// for has a deadline; nothing asserts how long it takes.

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "rdma/tcp/frame.h"
#include "rdma/tcp/greeting.h"
#include "rdma/tcp/outbox.h"
#include "rdma/tcp/socket.h"
#include "tests/rdma/contract_fixture.h"
#include "util/coding.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kAnyAddress[] = "tcp:127.0.0.1:0";

Deadline Patience() { return Deadline::After(Clock::System(), Endpoint::kPatience); }

/// A socket that speaks the protocol by hand.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) {
    const Status status = ConnectTcp(address, Patience(), &socket_);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  explicit RawPeer(UniqueFd socket) : socket_(std::move(socket)) {}

  void Send(const std::string& bytes) {
    // The other end may have closed by now.
    SendAllBy(socket_.get(), Patience(), bytes.data(), bytes.size()).IgnoreError();
  }
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    const Status status = ReceiveAllBy(socket_.get(), Patience(), bytes.data(), size);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }
  /// Reads on until the other end closes.
  void ExpectClosed() {
    char byte;
    Status status;
    while (status.ok()) status = ReceiveAllBy(socket_.get(), Patience(), &byte, 1);
    EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  }
  /// As a connector that knows that the pool has no secret.
  void Greet(QueueDepths depths) {
    TcpHello hello{.depths = depths, .private_data = {}};
    SecretId id = 0;
    ASSERT_TRUE(IdOfSecret("", &id).ok());
    ASSERT_TRUE(DrawConnectorNonce(id, &hello.nonce).ok());
    const std::string hello_bytes = EncodeHello(hello);
    Send(hello_bytes);
    TcpChallenge challenge;
    ASSERT_TRUE(DecodeChallenge(Receive(kChallengeBytes), &challenge).ok());
    Proof proof;
    ASSERT_TRUE(Prove("", Role::kConnector, SaidOverTcp(hello_bytes, challenge), &proof).ok());
    Send(EncodeIntroduction(proof));
    GreetingType type;
    std::string text;
    ASSERT_TRUE(DecodeAnswer(Receive(kAnswerBytes), &type, &text).ok());
    EXPECT_EQ(type, GreetingType::kAccepted);
  }
  void Close() { socket_.Reset(); }

 private:
  UniqueFd socket_;
};

/// The bytes of a frame, with checksums that are right.
std::string Frame(FrameType type, uint8_t flags, uint32_t number, const RemoteBuffer& at,
                  const std::string& payload) {
  FrameHeader header;
  header.type = type;
  header.flags = flags;
  header.number = number;
  header.address = at.address;
  header.key = at.key;
  header.length = static_cast<uint32_t>(payload.size());
  Outbox outbox;
  outbox.Add(header, payload.data());
  iovec vector;
  EXPECT_EQ(outbox.Gather(&vector, 1, outbox.size()), 1);
  return {static_cast<const char*>(vector.iov_base), vector.iov_len};
}

class TcpTest : public testing::Test {
 protected:
  explicit TcpTest(const DeviceSpec& spec = {.scheme = "tcp"}) : near_(spec), far_(spec) {
    near_.Allocate(kBytes);
    far_.Allocate(kBytes);
    EXPECT_TRUE(far_.Listen(kAnyAddress).ok());
  }
  const std::string& address() const { return far_.listener->address(); }

  /// The far side accepts all callers.
  void Accept(const std::function<void()>& call) {
    std::thread accepting([&] {
      const Status status = far_.Accept("");
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    call();
    accepting.join();
  }
  QueuePair* Connect(QueueDepths depths = {}) {
    Accept([&] {
      std::string reply;
      const Status status = near_.Connect(address(), "", depths, &reply);
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    return near_.queue_pairs.back().get();
  }
  RemoteBuffer Far(size_t offset) const {
    const RemoteKey key = far_.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }
  RemoteBuffer NearKey(size_t offset) const {
    const RemoteKey key = near_.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }
  void ExpectReads(QueuePair* pair) {
    ASSERT_TRUE(pair->PostRead(1, near_.Buffer(0, 0, 8), Far(0), kSignaled).ok());
    EXPECT_EQ(near_.Next().code, CompletionCode::kSuccess);
  }

  static constexpr size_t kBytes = 8 << 20;
  Endpoint near_;
  Endpoint far_;
};

TEST_F(TcpTest, AddressesAreHostsAndPorts) {
  for (const std::string address : {"tcp:127.0.0.1:0", "127.0.0.1:0", "tcp:localhost:0"}) {
    std::unique_ptr<Listener> listener;
    const Status status = near_.device->Listen(address, &listener);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(listener->address().starts_with("tcp:")) << listener->address();
    EXPECT_FALSE(listener->address().ends_with(":0")) << listener->address();
  }
  for (const std::string address :
       {"", "tcp:", "tcp:127.0.0.1", "tcp::7000", "tcp:127.0.0.1:", "tcp:127.0.0.1:70000",
        "tcp:127.0.0.1:-1", "tcp:::1:7000", "tcp:[]:7000", "@name", "/run/n0.sock"}) {
    std::unique_ptr<Listener> listener;
    std::string reply;
    EXPECT_TRUE(near_.device->Listen(address, &listener).IsInvalidArgument()) << address;
    EXPECT_TRUE(near_.Connect(address, "", {}, &reply).IsInvalidArgument()) << address;
  }
}

TEST_F(TcpTest, IPv6) {
  far_.listener.reset();
  if (!far_.Listen("tcp:[::1]:0").ok()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_TRUE(address().starts_with("tcp:[::1]:")) << address();
  ExpectReads(Connect());
}

TEST_F(TcpTest, SilentCallersDelayNobodyAndAreDropped) {
  // More of them than the listener looks after at a time.
  std::vector<RawPeer> silent;
  for (int i = 0; i < 150; i++) silent.emplace_back(address());
  ExpectReads(Connect());
  std::unique_ptr<IncomingConnection> incoming;
  const Deadline deadline = Patience();
  while (far_.device->traffic().peers_refused < silent.size() && !deadline.Expired()) {
    EXPECT_TRUE(far_.listener->Accept(milliseconds(50), &incoming).IsTimedOut());
  }
  for (RawPeer& peer : silent) peer.ExpectClosed();
}

TEST_F(TcpTest, WhoOnlyLooksIsNotCounted) {
  RawPeer(address()).Close();
  ExpectReads(Connect());
  EXPECT_EQ(far_.device->traffic().peers_refused, 0u);
}

TEST_F(TcpTest, WhoSpeaksAnotherVersionIsTold) {
  RawPeer stranger(address());
  std::string hello = EncodeHello({.depths = {}, .private_data = {}});
  EncodeFixed32(hello.data() + 8, kTcpVersion + 1);
  stranger.Send(hello.substr(0, kGreetingHeaderBytes));
  std::unique_ptr<IncomingConnection> incoming;
  EXPECT_TRUE(far_.listener->Accept(milliseconds(50), &incoming).IsTimedOut());
  GreetingType type;
  std::string text;
  ASSERT_TRUE(DecodeAnswer(stranger.Receive(kAnswerBytes), &type, &text).ok());
  EXPECT_EQ(type, GreetingType::kOtherVersion);
  EXPECT_EQ(far_.device->traffic().peers_refused, 1u);
}

TEST_F(TcpTest, AListenerOfAnotherVersionIsNamed) {
  UniqueFd socket;
  SocketName name;
  ASSERT_TRUE(ListenOnTcp(kAnyAddress, &socket, &name).ok());
  ASSERT_EQ(fcntl(socket.get(), F_SETFL, 0), 0);
  std::thread listener([&] {
    RawPeer caller(UniqueFd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    caller.Receive(kHelloBytes);
    std::string answer = EncodeAnswer(GreetingType::kOtherVersion, "");
    EncodeFixed32(answer.data() + 8, 77);
    caller.Send(answer);
    caller.ExpectClosed();
  });
  std::string reply;
  const Status status = near_.Connect(name.ToString(), "", {}, &reply);
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.message().find("77"), std::string_view::npos) << status.ToString();
  listener.join();
}

TEST_F(TcpTest, StrangersWithoutAGreetingAreCounted) {
  RawPeer stranger(address());
  stranger.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + std::string(100, ' '));
  std::unique_ptr<IncomingConnection> incoming;
  EXPECT_TRUE(far_.listener->Accept(milliseconds(50), &incoming).IsTimedOut());
  stranger.ExpectClosed();
  EXPECT_EQ(far_.device->traffic().frames_malformed, 1u);
}

TEST_F(TcpTest, FramesThatMakeNoSenseEndTheirConnectionOnly) {
  QueuePair* good = Connect();
  const std::string word(8, 'w');
  std::vector<std::string> frames;
  frames.push_back(std::string(kFrameHeaderBytes, '\0'));
  frames.push_back(Frame(FrameType::kWrite, kWantAck, 0, Far(0), word));
  frames.back().back() = 'x';  // The checksum does not match this.
  frames.push_back(Frame(FrameType::kWrite, kWantAck, 0, Far(0), std::string(100000, 'w')));
  frames.back().back() = 'x';
  frames.push_back(Frame(FrameType{99}, 0, 0, Far(0), ""));
  frames.push_back(Frame(FrameType::kCredit, 64, 0, Far(0), ""));
  frames.push_back(Frame(FrameType::kCredit, 0, 0, Far(0), word));
  frames.push_back(Frame(FrameType::kSend, 0, 0, {}, std::string(5000, 'w')));
  frames.push_back(
      Frame(FrameType::kWrite, 0, 0, Far(0), std::string(kWriteFragmentBytes + 1, 'w')));
  // Replies to nothing.
  frames.push_back(Frame(FrameType::kAck, 0, 0, {}, ""));
  frames.push_back(Frame(FrameType::kFailure, 0, 0, {}, ""));
  frames.push_back(Frame(FrameType::kReadReply, 0, 0, {}, word));
  frames.push_back(Frame(FrameType::kReadReply, 0, 0, {}, std::string(100000, 'w')));
  frames.push_back(Frame(FrameType::kAtomicReply, 0, 7, {}, word));
  // Fragments of two writes, and something else amid one.
  frames.push_back(Frame(FrameType::kWrite, kFragment, 0, Far(0), word) +
                   Frame(FrameType::kWrite, 0, 1, Far(8), word));
  frames.push_back(Frame(FrameType::kWrite, kFragment, 0, Far(0), word) +
                   Frame(FrameType::kFetchAdd, 0, 1, Far(0), word));
  // More messages than the depth has room for.
  std::string flood;
  for (uint32_t i = 0; i < 9; i++) flood += Frame(FrameType::kSend, 0, i, {}, word);
  frames.push_back(flood);
  for (size_t i = 0; i < frames.size(); i++) {
    SCOPED_TRACE(i);
    RawPeer peer(address());
    Accept([&] { peer.Greet({.send = 16, .receive = 8}); });
    // In pieces, so that each place to stop at is met.
    const size_t cut = frames[i].size() / 3;
    peer.Send(frames[i].substr(0, cut));
    peer.Send(frames[i].substr(cut));
    peer.ExpectClosed();
    EXPECT_EQ(far_.device->traffic().frames_malformed, i + 1);
    EXPECT_TRUE(far_.queue_pairs.back()->broken());
    far_.queue_pairs.pop_back();
  }
  ExpectReads(good);
  EXPECT_EQ(std::string(far_.Data(0) + 99992, 8), std::string(8, '\0'));
}

TEST_F(TcpTest, AnOversizedReadIsNoReasonToAllocate) {
  RawPeer peer(address());
  Accept([&] { peer.Greet({.send = 16, .receive = 8}); });
  FrameHeader header;
  header.type = FrameType::kRead;
  header.address = Far(0).address;
  header.key = Far(0).key;
  header.length = kReadFragmentBytes + 1;
  std::string bytes(kFrameHeaderBytes, '\0');
  EncodeFrameHeader(header, bytes.data());
  peer.Send(bytes);
  peer.ExpectClosed();
  EXPECT_EQ(far_.device->traffic().frames_malformed, 1u);
}

TEST_F(TcpTest, WhoAsksAndDoesNotListenIsCutOff) {
  RawPeer peer(address());
  Accept([&] { peer.Greet({.send = 16, .receive = 8}); });
  FrameHeader header;
  header.type = FrameType::kRead;
  header.address = Far(0).address;
  header.key = Far(0).key;
  header.length = kReadFragmentBytes;
  std::string bytes(kFrameHeaderBytes, '\0');
  const Deadline deadline = Patience();
  while (!far_.queue_pairs.back()->broken() && !deadline.Expired()) {
    EncodeFrameHeader(header, bytes.data());
    header.number++;
    peer.Send(bytes);
  }
  // It is counted a moment after the queue pair is broken.
  while (far_.device->traffic().frames_malformed == 0 && !deadline.Expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(far_.device->traffic().frames_malformed, 1u);
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST_F(TcpTest, DescriptorsAreGivenBack) {
  ExpectReads(Connect());
  near_.queue_pairs.clear();
  far_.queue_pairs.clear();
  const size_t before = OpenDescriptors();
  for (int round = 0; round < 100; round++) {
    QueuePair* pair = Connect();
    ExpectReads(pair);
    if (round % 3 == 0) {
      ASSERT_TRUE(pair->PostRead(2, near_.Buffer(0, 0, 8), {1, 1}, kSignaled).ok());
      EXPECT_EQ(near_.Next().code, CompletionCode::kRemoteAccessError);
    }
    (round % 2 == 0 ? near_ : far_).queue_pairs.clear();
    (round % 2 == 0 ? far_ : near_).queue_pairs.clear();
  }
  // Each socket stays until the peer has seen its end.
  const Deadline deadline = Patience();
  while (OpenDescriptors() > before && !deadline.Expired()) std::this_thread::yield();
  EXPECT_LE(OpenDescriptors(), before);
}

/// Bytes of memory that this process has; pages of zeros that it has only read are not among them.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST_F(TcpTest, PopulatingTakesTheMemory) {
  constexpr size_t kRegionBytes = 64 << 20;
  std::unique_ptr<MemoryRegion> region;
  ASSERT_TRUE(near_.device->AllocateRegion(kRegionBytes, Access::kRemoteAll, &region).ok());
  const size_t before = ResidentBytes();
  ASSERT_TRUE(region->Populate().ok());
  EXPECT_GE(ResidentBytes(), before + kRegionBytes - (8 << 20));
}

TEST_F(TcpTest, AnOwnerThatStopsPollingIsServed) {
  QueuePair* pair = Connect();
  for (uint64_t round = 1; round <= 20; round++) {
    // By polling for a reply this thread has come to serve the socket itself.
    ASSERT_TRUE(pair->PostRead(1, near_.Buffer(0, 0, 8), Far(0), kSignaled).ok());
    Completion completion;
    while (near_.queue->Poll(&completion, 1) == 0) std::this_thread::yield();
    // Now it watches its memory only.
    std::memcpy(far_.Data(0) + 64, &round, sizeof(round));
    ASSERT_TRUE(
        far_.queue_pairs[0]->PostWrite(2, far_.Buffer(0, 64, 8), NearKey(128), kSignaled).ok());
    const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(near_.Data(0) + 128));
    const Deadline deadline = Patience();
    while (word.load(std::memory_order_acquire) != round && !deadline.Expired()) {
      std::this_thread::yield();
    }
    ASSERT_EQ(word.load(std::memory_order_acquire), round);
    ASSERT_EQ(far_.Next().code, CompletionCode::kSuccess);
  }
}

/// Sockets and the like that this process's epoll descriptors watch.
size_t CountWatched() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("tfd:")) count++;
    }
  }
  return count;
}

TEST(TcpOwnerTest, APeerThatGoesWhileItsOwnerWaitsIsWatchedNoMore) {
  const DeviceSpec spec{.scheme = "tcp"};
  const auto peer = MakeChildPeer(spec);
  Endpoint near(spec);
  near.Allocate(8);
  RemoteKey key;
  peer->Allocate(8, Access::kRemoteAll, &key);
  const std::string address = FreshAddress("tcp");
  ASSERT_TRUE(peer->Run({.command = PeerCommand::kListen, .bytes = address}).status.ok());
  const size_t watched = CountWatched();
  peer->Start({.command = PeerCommand::kAccept});
  std::string reply;
  ASSERT_TRUE(near.Connect(address, "", {}, &reply).ok());
  ASSERT_TRUE(peer->Finish().status.ok());
  EXPECT_EQ(CountWatched(), watched + 1);

  ASSERT_EQ(kill(peer->process(), SIGSTOP), 0);
  ASSERT_EQ(waitpid(peer->process(), nullptr, WUNTRACED), peer->process());
  QueuePair* const pair = near.queue_pairs.back().get();
  ASSERT_TRUE(pair->PostRead(1, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled).ok());
  // By then the thread that waits owns the connection.
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(peer->Kill());
  });
  EXPECT_EQ(near.Next().code, CompletionCode::kPeerGone);
  killer.join();
  const Deadline deadline = Patience();
  while (CountWatched() != watched && !deadline.Expired()) std::this_thread::yield();
  EXPECT_EQ(CountWatched(), watched) << "the I/O thread is woken by its hang-up without end";
}

TEST_F(TcpTest, LargeWritesDoNotKeepOthersReadsWaiting) {
  QueuePair* bulk = Connect();
  QueuePair* quick = Connect();
  constexpr uint64_t kWrites = 32;
  for (uint64_t i = 0; i < kWrites; i++) {
    ASSERT_TRUE(bulk->PostWrite(i, near_.Buffer(0, 0, kBytes), Far(0), kSignaled).ok());
  }
  ASSERT_TRUE(quick->PostRead(1000, near_.Buffer(0, 0, 8), Far(0), kSignaled).ok());
  uint64_t before = 0;
  while (near_.Next().id != 1000) before++;
  EXPECT_LT(before, kWrites);
  for (; before < kWrites; before++) EXPECT_EQ(near_.Next().code, CompletionCode::kSuccess);
}

TEST_F(TcpTest, QueuesOfTheirOwnForSendsAndReceives) {
  std::unique_ptr<CompletionQueue> receives;
  ASSERT_TRUE(near_.device->CreateCompletionQueue(16, &receives).ok());
  std::unique_ptr<QueuePair> pair;
  Accept([&] {
    std::string reply;
    ASSERT_TRUE(near_.device
                    ->Connect(address(), "", {}, near_.queue.get(), receives.get(), Patience(),
                              &reply, &pair)
                    .ok());
  });
  for (uint64_t i = 0; i < 100; i++) {
    ASSERT_TRUE(pair->PostRecv(i, near_.Buffer(0, 64, 8)).ok());
    ASSERT_TRUE(pair->PostRead(i, near_.Buffer(0, 0, 8), Far(0), kSignaled).ok());
    ASSERT_TRUE(far_.queue_pairs[0]->PostSend(i, far_.Buffer(0, 0, 8), kSignaled).ok());
    Completion completion;
    while (receives->Poll(&completion, 1) == 0) receives->Wait(seconds(20)).IgnoreError();
    EXPECT_EQ(completion.opcode, Opcode::kRecv);
    EXPECT_EQ(completion.id, i);
    EXPECT_EQ(near_.Next().opcode, Opcode::kRead);
    EXPECT_EQ(far_.Next().opcode, Opcode::kSend);
  }
}

TEST_F(TcpTest, WritesToReadOnlyPartsFailWhateverTheirLength) {
  std::unique_ptr<RegionGrant> grant;
  ASSERT_TRUE(far_.regions[0]->Grant(4096, kBytes / 2, Access::kRemoteReadOnly, &grant).ok());
  for (const size_t size : {size_t{8}, size_t{100000}, kBytes / 2}) {
    QueuePair* pair = Connect();
    std::memset(near_.Data(0), 'x', size);
    const RemoteKey key = grant->remote_key();
    ASSERT_TRUE(
        pair->PostWrite(1, near_.Buffer(0, 0, size), {key.address, key.key}, kSignaled).ok());
    EXPECT_EQ(near_.Next().code, CompletionCode::kRemoteAccessError);
    EXPECT_EQ(std::string(far_.Data(0) + 4096, 8), std::string(8, '\0'));
  }
}

/// Makes the system drop whatever arrives for this process's connections, as if the network did.
void DropAllPackets() {
  sock_filter instruction = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{.len = 1, .filter = &instruction};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.ss_family != AF_INET) continue;
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
  }
}

class TcpPartitionTest : public TcpTest {
 protected:
  TcpPartitionTest() : TcpTest({.scheme = "tcp", .parameters = {{"timeout_ms", "300"}}}) {}
};

TEST_F(TcpPartitionTest, EndsWhatIsOutstandingAtBothEnds) {
  enum class Traffic { kReads, kUnsignalledWrites, kNone };
  for (const Traffic traffic : {Traffic::kReads, Traffic::kUnsignalledWrites, Traffic::kNone}) {
    QueuePair* pair = Connect();
    ExpectReads(pair);
    ASSERT_TRUE(pair->PostRecv(0, near_.Buffer(0, 0, 8)).ok());
    ASSERT_TRUE(far_.queue_pairs.back()->PostRecv(0, far_.Buffer(0, 0, 8)).ok());
    DropAllPackets();
    uint64_t posted = 0;
    for (; traffic != Traffic::kNone && posted < 4; posted++) {
      ASSERT_TRUE((traffic == Traffic::kReads
                       ? pair->PostRead(posted, near_.Buffer(0, 0, 8), Far(0), kSignaled)
                       : pair->PostWrite(posted, near_.Buffer(0, 0, 8), Far(0), 0))
                      .ok());
    }
    uint64_t completed = 0;
    for (uint64_t i = 0; i < posted + 1; i++) {
      const Completion completion = near_.Next();
      if (completion.opcode == Opcode::kRecv) {
        EXPECT_EQ(completion.code, CompletionCode::kFlushed);
        continue;
      }
      EXPECT_EQ(completion.id, completed);
      EXPECT_EQ(completion.code,
                completed++ == 0 ? CompletionCode::kPeerGone : CompletionCode::kFlushed);
    }
    EXPECT_EQ(completed, posted);
    EXPECT_TRUE(pair->broken());
    EXPECT_EQ(far_.Next().code, CompletionCode::kFlushed);
    EXPECT_TRUE(far_.queue_pairs.back()->broken());
  }
}

TEST(TcpSilenceTest, AStoppedPeerIsGivenUp) {
  const DeviceSpec spec{.scheme = "tcp", .parameters = {{"timeout_ms", "300"}}};
  const auto peer = MakeChildPeer(spec);
  Endpoint near(spec);
  near.Allocate(1 << 20);
  RemoteKey key;
  peer->Allocate(1 << 20, Access::kRemoteAll, &key);
  const std::string address = FreshAddress("tcp");
  ASSERT_TRUE(peer->Run({.command = PeerCommand::kListen, .bytes = address}).status.ok());
  for (const bool reads : {true, false}) {
    peer->Start({.command = PeerCommand::kAccept});
    std::string reply;
    ASSERT_TRUE(near.Connect(address, "", {}, &reply).ok());
    ASSERT_TRUE(peer->Finish().status.ok());
    QueuePair* const pair = near.queue_pairs.back().get();
    ASSERT_TRUE(pair->PostRecv(0, near.Buffer(0, 0, 8)).ok());
    ASSERT_EQ(kill(peer->process(), SIGSTOP), 0);
    ASSERT_EQ(waitpid(peer->process(), nullptr, WUNTRACED), peer->process());
    const int posted = 64;
    for (int i = 1; i <= posted; i++) {
      const LocalBuffer buffer = near.Buffer(0, 0, 1 << 20);
      const RemoteBuffer remote{key.address, key.key};
      ASSERT_TRUE((reads ? pair->PostRead(static_cast<uint64_t>(i), buffer, remote, kSignaled)
                         : pair->PostWrite(static_cast<uint64_t>(i), buffer, remote, 0))
                      .ok());
    }
    uint64_t next = 1;
    for (int i = 0; i <= posted; i++) {
      const Completion completion = near.Next();
      if (completion.opcode == Opcode::kRecv) {
        EXPECT_EQ(completion.code, CompletionCode::kFlushed);
        continue;
      }
      EXPECT_EQ(completion.code, next == 1 ? CompletionCode::kPeerGone : CompletionCode::kFlushed);
      EXPECT_EQ(completion.id, next++);
    }
    EXPECT_TRUE(pair->broken());
    ASSERT_EQ(kill(peer->process(), SIGCONT), 0);
  }
}

}  // namespace

}  // namespace nacre::rdma
