// Goal: with "tls" nothing that a control connection carries, or any connection if it is for all,
// can be read on the way or changed unnoticed, both ends insist on it, and no others pay for it.
// Method: devices of this process, and between them a wire that hears every byte, and can change or
// swallow some.

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <thread>

#include "rdma/tcp/greeting.h"
#include "rdma/tcp/socket.h"
#include "tests/rdma/contract_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;

constexpr char kAnyTlsAddress[] = "tcp:127.0.0.1:0";
constexpr char kMessage[] = "a message that nobody else is to read";
constexpr QueueDepths kControl{.send = 16, .receive = 16, .control = true};
/// What either side says before TLS begins.
constexpr size_t kGreetingBytes[] = {kHelloBytes + kIntroductionBytes, kChallengeBytes};

/// What the parameter "tls" may be, and a connection for each kind of data.
constexpr char kNone[] = "0";
constexpr char kControlOnly[] = "1";
constexpr char kAll[] = "all";
constexpr QueueDepths kData{.send = 16, .receive = 16};

DeviceSpec Spec(const std::string& tls, const std::string& secret = "a secret") {
  return {.scheme = "tcp", .parameters = {{"timeout_ms", "500"}, {"tls", tls}}, .secret = secret};
}

/// Carries one connection to `target`, telling what passes.
class Wire {
 public:
  /// Changes what the connector (0) or the listener (1) said from its byte number `offset` on.
  using Change = std::function<void(size_t from, size_t offset, std::string* bytes)>;

  explicit Wire(
      std::string target, Change change = [](size_t, size_t, std::string*) {})
      : target_(std::move(target)), change_(std::move(change)) {
    SocketName name;
    EXPECT_TRUE(IsOk(ListenOnTcp(kAnyTlsAddress, &listener_, &name)));
    address_ = name.ToString();
    thread_ = std::thread([this] { Run(); });
  }
  ~Wire() { Stop(); }

  const std::string& address() const { return address_; }
  /// How many bytes this side has said.
  size_t heard_from(size_t side) const { return heard_bytes_[side].load(); }
  /// All that passed, once the wire is cut.
  std::string Heard() {
    Stop();
    return heard_[0] + heard_[1];
  }

 private:
  void Stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  bool Readable(pollfd* entries, nfds_t count) {
    while (!stop_.load()) {
      if (poll(entries, count, 5) > 0) return true;
    }
    return false;
  }
  void Run() {
    pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (!Readable(&waiting, 1)) return;
    UniqueFd ends[2];
    ends[0] = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const Deadline deadline = Deadline::After(Clock::System(), Endpoint::kPatience);
    if (!ConnectTcp(target_, deadline, &ends[1]).ok()) return;
    while (true) {
      pollfd entries[2] = {{.fd = ends[0].get(), .events = POLLIN, .revents = 0},
                           {.fd = ends[1].get(), .events = POLLIN, .revents = 0}};
      if (!Readable(entries, 2)) return;
      for (size_t from = 0; from < 2; from++) {
        if (entries[from].revents == 0) continue;
        std::string bytes(64 << 10, '\0');
        const ssize_t size = recv(ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (size <= 0) return;  // The other end learns of it as this goes.
        bytes.resize(static_cast<size_t>(size));
        const size_t offset = heard_[from].size();
        heard_[from] += bytes;
        heard_bytes_[from].store(heard_[from].size());
        change_(from, offset, &bytes);
        if (!SendAllBy(ends[1 - from].get(), deadline, bytes.data(), bytes.size()).ok()) return;
      }
    }
  }

  const std::string target_;
  const Change change_;
  std::string address_;
  UniqueFd listener_;
  std::string heard_[2];  ///< The thread's, until it has ended.
  std::atomic<size_t> heard_bytes_[2]{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Two devices.
class Pair {
 public:
  Pair(const std::string& near_tls, const std::string& far_tls)
      : near(Spec(near_tls)), far(Spec(far_tls)) {
    near.Allocate(1 << 20);
    far.Allocate(1 << 20);
    EXPECT_TRUE(IsOk(far.Listen(kAnyTlsAddress)));
  }
  explicit Pair(const std::string& tls) : Pair(tls, tls) {}

  /// Connects the devices' next queue pairs, by way of `address`; what the connector got.
  Status Connect(const std::string& address, QueueDepths depths) {
    std::atomic<bool> connected{false};  // Also set when connecting has failed.
    std::thread accepting([&] {
      std::unique_ptr<IncomingConnection> incoming;
      while (!connected.load() && incoming == nullptr) {
        far.listener->Accept(milliseconds(20), &incoming).IgnoreError();
      }
      if (incoming == nullptr) return;
      std::unique_ptr<QueuePair> made;
      const Status status = incoming->Accept(far.queue.get(), far.queue.get(), "", &made);
      if (status.ok()) far.queue_pairs.push_back(std::move(made));
    });
    std::string reply;
    std::unique_ptr<QueuePair> made;
    const Status status =
        near.device->Connect(address, "", depths, near.queue.get(), near.queue.get(),
                             Deadline::After(Clock::System(), Endpoint::kPatience), &reply, &made);
    if (status.ok()) near.queue_pairs.push_back(std::move(made));
    connected.store(true);
    accepting.join();
    return status;
  }
  RemoteBuffer Far(size_t offset) const {
    const RemoteKey key = far.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }

  Endpoint near;
  Endpoint far;
};

/// A SEND, a WRITE and a READ of the message.
void SayIt(Pair* pair, bool with_send) {
  const std::string message = kMessage;
  const auto size = static_cast<uint32_t>(message.size());
  QueuePair* const near = pair->near.queue_pairs.back().get();
  message.copy(pair->near.Data(0), message.size());
  if (with_send) {
    ASSERT_TRUE(IsOk(pair->far.queue_pairs.back()->PostRecv(1, pair->far.Buffer(0, 4096, 4096))));
    ASSERT_TRUE(IsOk(near->PostSend(2, pair->near.Buffer(0, 0, size), kSignaled)));
    EXPECT_EQ(pair->far.Next().code, CompletionCode::kSuccess);
    EXPECT_EQ(std::string(pair->far.Data(0) + 4096, message.size()), message);
    EXPECT_EQ(pair->near.Next().code, CompletionCode::kSuccess);
  }
  ASSERT_TRUE(IsOk(near->PostWrite(3, pair->near.Buffer(0, 0, size), pair->Far(64), kSignaled)));
  EXPECT_EQ(pair->near.Next().code, CompletionCode::kSuccess);
  ASSERT_TRUE(IsOk(near->PostRead(4, pair->near.Buffer(0, 512, size), pair->Far(64), kSignaled)));
  EXPECT_EQ(pair->near.Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(pair->near.Data(0) + 512, message.size()), message);
}

TEST(TcpTlsTest, WhoListensOnTheWireHearsNothing) {
  for (const char* const tls : {kNone, kControlOnly, kAll}) {
    Pair pair(tls);
    Wire wire(pair.far.listener->address());
    ASSERT_TRUE(IsOk(pair.Connect(wire.address(), kControl)));
    SayIt(&pair, /*with_send=*/true);
    const bool heard = wire.Heard().find(kMessage) != std::string::npos;
    EXPECT_EQ(heard, tls == kNone) << tls;
  }
}

TEST(TcpTlsTest, BulkDataGoesAsItIsAndCarriesNoMessages) {
  Pair pair(kControlOnly);
  Wire wire(pair.far.listener->address());
  ASSERT_TRUE(IsOk(pair.Connect(wire.address(), kData)));
  SayIt(&pair, /*with_send=*/false);
  for (Endpoint* const end : {&pair.near, &pair.far}) {
    EXPECT_TRUE(IsFailure(end->queue_pairs[0]->PostSend(1, end->Buffer(0, 0, 8), kSignaled),
                          Status::Code::kInvalidArgument, "encrypted"));
  }
  EXPECT_NE(wire.Heard().find(kMessage), std::string::npos);
}

TEST(TcpTlsTest, BulkDataIsEncryptedIfAllIs) {
  constexpr uint32_t kBytes = 300'000;  // Several frames, of many records each.
  Pair pair(kAll);
  Wire wire(pair.far.listener->address());
  ASSERT_TRUE(IsOk(pair.Connect(wire.address(), kData)));
  SayIt(&pair, /*with_send=*/true);
  QueuePair* const near = pair.near.queue_pairs[0].get();
  const std::string message = kMessage;
  std::string bulk;
  while (bulk.size() < kBytes) bulk += message;
  bulk.resize(kBytes);
  bulk.copy(pair.near.Data(0), kBytes);
  ASSERT_TRUE(IsOk(near->PostWrite(1, pair.near.Buffer(0, 0, kBytes), pair.Far(0), kSignaled)));
  EXPECT_EQ(pair.near.Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(pair.far.Data(0), kBytes), bulk);
  ASSERT_TRUE(IsOk(near->PostRead(2, pair.near.Buffer(0, kBytes, kBytes), pair.Far(0), kSignaled)));
  EXPECT_EQ(pair.near.Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(pair.near.Data(0) + kBytes, kBytes), bulk);
  const uint64_t before = 41;
  std::memcpy(pair.far.Data(0) + 4096, &before, sizeof(before));
  ASSERT_TRUE(IsOk(near->PostFetchAdd(3, pair.near.Buffer(0, 0, 8), pair.Far(4096), 1, kSignaled)));
  EXPECT_EQ(pair.near.Next().code, CompletionCode::kSuccess);
  ASSERT_TRUE(
      IsOk(near->PostCompareSwap(4, pair.near.Buffer(0, 8, 8), pair.Far(4096), 42, 7, kSignaled)));
  EXPECT_EQ(pair.near.Next().code, CompletionCode::kSuccess);
  uint64_t words[2];
  std::memcpy(words, pair.near.Data(0), sizeof(words));
  EXPECT_EQ(words[0], 41u);
  EXPECT_EQ(words[1], 42u);
  EXPECT_EQ(wire.Heard().find(kMessage), std::string::npos);
}

TEST(TcpTlsTest, NeedsASecret) {
  std::unique_ptr<Device> device;
  EXPECT_TRUE(
      IsFailure(OpenForTest(Spec(kAll, ""), &device), Status::Code::kInvalidArgument, "secret"));
  DeviceSpec odd = Spec(kControlOnly);
  odd.parameters["tls"] = "2";
  EXPECT_TRUE(IsFailure(OpenForTest(odd, &device), Status::Code::kInvalidArgument, "tls"));
  odd.parameters["tls"] = "0";
  EXPECT_TRUE(IsOk(OpenForTest(odd, &device)));
  for (const char* const scheme : {"shm", "embedded"}) {
    odd.scheme = scheme;
    odd.parameters = {{"tls", "1"}};
    EXPECT_TRUE(IsFailure(OpenForTest(odd, &device), Status::Code::kInvalidArgument, "tls"));
  }
}

TEST(TcpTlsTest, BothEndsMustWantIt) {
  for (const char* const near : {kNone, kControlOnly, kAll}) {
    for (const char* const far : {kNone, kControlOnly, kAll}) {
      if (near == far) continue;
      SCOPED_TRACE(std::string(near) + " / " + far);
      Pair pair(near, far);
      const std::string& address = pair.far.listener->address();
      const char* const named = far == kAll ? "tls=all" : "tls=1";
      EXPECT_TRUE(
          IsFailure(pair.Connect(address, kControl), Status::Code::kInvalidArgument, named));
      // Data goes in the clear with both of these.
      const bool alike = near != kAll && far != kAll;
      const Status data = pair.Connect(address, kData);
      EXPECT_TRUE(alike ? IsOk(data) : IsFailure(data, Status::Code::kInvalidArgument, named));
      EXPECT_EQ(pair.far.device->traffic().peers_refused, alike ? 1u : 2u);
      EXPECT_EQ(pair.far.device->traffic().frames_malformed, 0u);
    }
  }
}

/// The bound for either side, little compared with what the test below says afterwards.
constexpr size_t kHandshakeBytesMax = 600;

TEST(TcpTlsTest, WhatIsChangedOnTheWayEndsTheConnection) {
  Random random(TestSeed(7401));
  for (size_t round = 0; round < Scaled(60); round++) {
    // A byte of the handshake of TLS, or of what follows. Of the handshake a few say nothing, and
    // so may be anything: legacy versions, and records that are there for old boxes on the way.
    const size_t liar = random.Uniform(2);
    const size_t at = kGreetingBytes[liar] + random.Uniform(2 * kHandshakeBytesMax);
    const auto bits = static_cast<char>(1 + random.Uniform(255));
    std::atomic<bool> changed{false};
    const bool all = round % 2 == 1;
    Pair pair(all ? kAll : kControlOnly);
    Wire wire(pair.far.listener->address(), [&](size_t from, size_t offset, std::string* bytes) {
      if (from != liar || at < offset || at >= offset + bytes->size()) return;
      (*bytes)[at - offset] = static_cast<char>((*bytes)[at - offset] ^ bits);
      changed.store(true);
    });
    const Status connected = pair.Connect(wire.address(), all ? kData : kControl);
    if (!connected.ok()) {
      EXPECT_TRUE(connected.IsUnavailable()) << connected.ToString();
      EXPECT_LT(at, kGreetingBytes[liar] + kHandshakeBytesMax);
      continue;
    }
    QueuePair* const near = pair.near.queue_pairs[0].get();
    const std::string secret(8, 's');
    secret.copy(pair.far.Data(0) + 8192, secret.size());
    bool failed = false;
    for (uint64_t i = 0; i < 40 && !failed; i++) {
      ASSERT_TRUE(IsOk(near->PostRead(i, pair.near.Buffer(0, 0, 8), pair.Far(8192), kSignaled)));
      failed = pair.near.Next().code != CompletionCode::kSuccess;
      // What did arrive is what was sent.
      if (!failed) {
        EXPECT_EQ(std::string(pair.near.Data(0), 8), secret);
      }
    }
    EXPECT_TRUE(changed.load());
    if (at < kGreetingBytes[liar] + kHandshakeBytesMax) continue;
    EXPECT_TRUE(failed) << "byte " << at << " of "
                        << (liar == 0 ? "the connector" : "the listener");
    EXPECT_TRUE(near->broken());
  }
}

TEST(TcpTlsTest, ARecordThatIsCutOffIsNeverDelivered) {
  constexpr uint32_t kBytes = 100'000;
  constexpr size_t kLiar = 1;  // The listener, whose reply it is.
  Pair pair(kAll);
  std::atomic<size_t> cut_at{SIZE_MAX};
  Wire wire(pair.far.listener->address(), [&](size_t from, size_t offset, std::string* bytes) {
    const size_t end = cut_at.load();
    if (from == kLiar && offset + bytes->size() > end) {
      bytes->resize(offset >= end ? 0 : end - offset);
    }
  });
  ASSERT_TRUE(IsOk(pair.Connect(wire.address(), kData)));
  SayIt(&pair, /*with_send=*/false);
  QueuePair* const near = pair.near.queue_pairs[0].get();
  const std::string secret(kBytes, 's');
  secret.copy(pair.far.Data(0) + 8192, kBytes);
  std::memset(pair.near.Data(0), 0, kBytes);
  cut_at.store(wire.heard_from(kLiar) + kBytes / 2);
  ASSERT_TRUE(IsOk(near->PostRead(9, pair.near.Buffer(0, 0, kBytes), pair.Far(8192), kSignaled)));
  EXPECT_EQ(pair.near.Next().code, CompletionCode::kPeerGone);
  EXPECT_TRUE(near->broken());
  EXPECT_EQ(pair.near.Data(0)[kBytes - 1], '\0');
}

TEST(TcpTlsTest, WhoGoesSilentIsGivenUp) {
  for (const size_t silent : {size_t{0}, size_t{1}}) {
    Pair pair(kAll);
    Wire wire(pair.far.listener->address(), [&](size_t from, size_t offset, std::string* bytes) {
      if (from != silent) return;
      const size_t end = kGreetingBytes[from];
      bytes->resize(offset >= end ? 0 : std::min(bytes->size(), end - offset));
    });
    EXPECT_TRUE(IsFailure(pair.Connect(wire.address(), kControl), Status::Code::kUnavailable));
  }
}

}  // namespace

}  // namespace nacre::rdma
