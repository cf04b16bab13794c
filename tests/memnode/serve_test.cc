// Goal: a server of requests that is no memory node, and what its clients reach it with, carry
// requests of any size both ways, answer late, and notice each other's end.
// Method: a small handler, over the transports that need no adapter, all in one process.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "pool/connect/peer_connection.h"
#include "pool/serve/request_handler.h"
#include "pool/serve/request_server.h"
#include "pool/wire/control.pb.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/mutex.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline Soon(std::chrono::nanoseconds timeout = seconds(20)) {
  return Deadline::After(Clock::System(), timeout);
}

/// Answers "echo..." at once with the same, "late..." when told to, "fail..." by a failure.
class EchoHandler : public RequestHandler {
 public:
  std::string Refusal(const Hello& hello) override {
    if (refuse_) return "not today";
    return RefusalReason(hello, 0, 0, 0);
  }

  void Execute(ServerConnection* connection) override {
    const std::string& request = connection->request.member_request();
    control::Reply reply;
    if (request.starts_with("echo")) {
      reply.set_member_reply(request);
      server_->Answer(connection, Status::OK(), std::move(reply));
    } else if (request.starts_with("late")) {
      MutexLock lock(&mutex_);
      waiting_.push_back({.connection = connection->id, .reply = request});
    } else {
      server_->Answer(connection, Status::NotFound("nothing of this name"), std::move(reply));
    }
  }

  void Closing(const ServerConnection& connection) override {
    if (connection.open()) ++abandoned_;
  }

  void LifelineEnded(uint64_t client_id, bool hung_up) override {
    MutexLock lock(&mutex_);
    ended_[client_id] = hung_up;
  }

  void OnIo() override {
    std::vector<Late> ready;
    {
      MutexLock lock(&mutex_);
      ready.swap(ready_);
    }
    for (Late& late : ready) {
      ServerConnection* const connection = server_->Find(late.connection);
      if (connection == nullptr) continue;
      control::Reply reply;
      reply.set_member_reply(std::move(late.reply));
      server_->Answer(connection, Status::OK(), std::move(reply));
    }
  }

  /// Has those that wait answered; returns how many there were.
  size_t Release() {
    MutexLock lock(&mutex_);
    const size_t released = waiting_.size();
    for (Late& late : waiting_) ready_.push_back(std::move(late));
    waiting_.clear();
    server_->Wake();
    return released;
  }
  size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }
  /// 0: it has not ended; 1: it has; 2: it hung up.
  int fate(uint64_t client_id) {
    MutexLock lock(&mutex_);
    const auto it = ended_.find(client_id);
    return it == ended_.end() ? 0 : 1 + static_cast<int>(it->second);
  }
  int abandoned() const { return abandoned_; }
  void set_server(RequestServer* server) { server_ = server; }
  void Refuse() { refuse_ = true; }

 private:
  struct Late {
    uint64_t connection = 0;
    std::string reply;
  };

  RequestServer* server_ = nullptr;
  std::atomic<bool> refuse_{false};
  std::atomic<int> abandoned_{0};
  Mutex mutex_;
  std::vector<Late> waiting_ GUARDED_BY(mutex_);
  std::vector<Late> ready_ GUARDED_BY(mutex_);
  std::map<uint64_t, bool> ended_ GUARDED_BY(mutex_);
};

/// What a call came to.
struct Outcome {
  Status status;
  std::string reply;
  bool sent = false;
};

class ServeTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(IsOk(rdma::OpenDevice(GetParam(), {}, Clock::System(), &server_device_)));
    ASSERT_TRUE(IsOk(rdma::OpenDevice(GetParam(), {}, Clock::System(), &device_)));
    server_ = std::make_unique<RequestServer>(
        RequestServerOptions{.listen = AnyAddress(), .kind = "member"}, server_device_.get(),
        Clock::System(), &handler_);
    handler_.set_server(server_.get());
    ASSERT_TRUE(IsOk(server_->Listen()));
    server_->Start();
  }

  static std::string AnyAddress() { return GetParam() == "tcp" ? "tcp:127.0.0.1:0" : "shm:@"; }

  std::unique_ptr<PeerConnection> Connect() {
    std::unique_ptr<PeerConnection> connection;
    EXPECT_TRUE(IsOk(PeerConnection::Connect(device_.get(), Clock::System(), server_->address(),
                                             Soon(), &connection)));
    return connection;
  }
  static Outcome Call(PeerConnection* connection, const std::string& request,
                      std::chrono::nanoseconds timeout = seconds(20)) {
    Outcome outcome;
    outcome.status = connection->Call(request, Soon(timeout), &outcome.reply, &outcome.sent);
    return outcome;
  }
  static Outcome CallAndSleep(PeerConnection* connection, const std::string& request,
                              const std::function<Status()>& still_wanted) {
    Outcome outcome;
    outcome.status = connection->CallAndSleep(request, milliseconds(5), still_wanted,
                                              &outcome.reply, &outcome.sent);
    return outcome;
  }

  EchoHandler handler_;
  std::unique_ptr<rdma::Device> server_device_;
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<RequestServer> server_;
};

TEST_P(ServeTest, RequestsOfAnySizeFromSeveralThreads) {
  const auto connection = Connect();
  constexpr int kThreads = 6;
  // Within a SEND, beyond it, and beyond the buffer for the reply.
  const std::vector<size_t> sizes{0, 1, 100, 4095, 5000, 60'000, 70'000, 1 << 20};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        for (const size_t size : sizes) {
          const std::string request = "echo" + TestValue(static_cast<uint64_t>(100 * t), size);
          const bool sleeps = (t + round) % 2 == 0;
          const Outcome outcome =
              sleeps ? CallAndSleep(connection.get(), request, [] { return Status::OK(); })
                     : Call(connection.get(), request);
          ASSERT_TRUE(IsOk(outcome.status)) << size;
          EXPECT_TRUE(outcome.sent);
          EXPECT_TRUE(outcome.reply == request) << size;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const RequestServer::Counts counts = server_->counts();
  // A reply that does not fit is asked for once more; a channel whose region has grown has room.
  EXPECT_GE(counts.taken, kThreads * 5 * sizes.size());
  EXPECT_EQ(counts.open, 0u);
  EXPECT_EQ(counts.malformed, 0u);
  // The channels are kept.
  EXPECT_GT(counts.connections, 1u);
  EXPECT_LE(counts.connections, 1u + kThreads);
  EXPECT_FALSE(connection->ended());
}

TEST_P(ServeTest, TheServersOwnStatusIsAnsweredAsItIs) {
  const auto connection = Connect();
  const Outcome outcome = Call(connection.get(), "fail");
  EXPECT_TRUE(outcome.status.IsNotFound());
  EXPECT_EQ(outcome.status.message(), "nothing of this name");
  EXPECT_TRUE(outcome.sent);
  EXPECT_TRUE(IsOk(Call(connection.get(), "echo").status));
}

TEST_P(ServeTest, AnswersComeLaterAndCallsBeyondTheBoundWait) {
  const auto connection = Connect();
  constexpr int kMost = PeerConnection::kMaxInFlight;
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  const auto begin = [&](int i) {
    threads.emplace_back([&, i] {
      const std::string request = "late" + std::to_string(i);
      const Outcome outcome =
          i % 2 == 0 ? CallAndSleep(connection.get(), request, [] { return Status::OK(); })
                     : Call(connection.get(), request);
      EXPECT_TRUE(IsOk(outcome.status));
      EXPECT_EQ(outcome.reply, request);
      ++answered;
    });
  };
  for (int i = 0; i < kMost; ++i) begin(i);
  ASSERT_TRUE(Eventually([&] { return handler_.waiting() == size_t{kMost}; }));
  // They wait for a turn until they run out of time, or are not wanted any more.
  const Outcome late = Call(connection.get(), "echo", milliseconds(30));
  EXPECT_TRUE(IsFailure(late.status, Status::Code::kTimedOut, server_->address()));
  EXPECT_FALSE(late.sent);
  const Outcome unwanted =
      CallAndSleep(connection.get(), "echo", [] { return Status::Aborted("not wanted"); });
  EXPECT_TRUE(unwanted.status.IsAborted());
  EXPECT_FALSE(unwanted.sent);

  for (int i = 0; i < 10; ++i) begin(kMost + i);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(handler_.waiting(), size_t{kMost});
  EXPECT_EQ(server_->counts().open, uint64_t{kMost});
  EXPECT_EQ(server_->counts().connections, uint64_t{kMost} + 1);
  EXPECT_TRUE(Eventually([&] {
    handler_.Release();
    return answered == kMost + 10;
  }));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_->counts().connections, uint64_t{kMost} + 1);
}

TEST_P(ServeTest, TheServerNoticesAClientThatEnds) {
  auto connection = Connect();
  const auto other = Connect();
  const uint64_t client_id = connection->client_id();
  EXPECT_NE(client_id, other->client_id());
  EXPECT_TRUE(IsOk(Call(other.get(), "echo").status));
  // What is late may be written into its channel's memory, so that is given up.
  const Outcome outcome = Call(connection.get(), "late", milliseconds(100));
  EXPECT_TRUE(IsFailure(outcome.status, Status::Code::kTimedOut, server_->address()));
  EXPECT_TRUE(outcome.sent);
  EXPECT_TRUE(Eventually([&] { return handler_.abandoned() == 1; }));
  EXPECT_EQ(handler_.Release(), 1u);
  int asked = 0;
  const Outcome unwanted = CallAndSleep(connection.get(), "late", [&] {
    return ++asked < 3 ? Status::OK() : Status::Aborted("not wanted");
  });
  EXPECT_TRUE(unwanted.status.IsAborted());
  EXPECT_TRUE(unwanted.sent);
  EXPECT_TRUE(IsOk(Call(connection.get(), "echo").status));

  EXPECT_EQ(handler_.fate(client_id), 0);
  connection.reset();
  EXPECT_TRUE(Eventually([&] { return handler_.fate(client_id) != 0; }));
  EXPECT_EQ(handler_.fate(client_id), 2);
  EXPECT_EQ(handler_.fate(other->client_id()), 0);
  EXPECT_TRUE(IsOk(Call(other.get(), "echo").status));
  EXPECT_EQ(server_->counts().connections, 2u);
}

TEST_P(ServeTest, AServerThatStopsAnswersWhatItHas) {
  const auto connection = Connect();
  Outcome late;
  std::thread caller([&] { late = Call(connection.get(), "late"); });
  ASSERT_TRUE(Eventually([&] { return handler_.waiting() == 1; }));
  server_->BeginStop(/*silently=*/false);
  const Outcome refused = Call(connection.get(), "echo");
  EXPECT_TRUE(refused.status.IsUnavailable());
  // No new channel is accepted; one that was there would be told that the member is stopping.
  EXPECT_FALSE(refused.sent);
  EXPECT_FALSE(connection->ended());
  EXPECT_EQ(handler_.Release(), 1u);
  server_->Stop(/*silently=*/false);
  caller.join();
  EXPECT_TRUE(IsOk(late.status));
  EXPECT_EQ(late.reply, "late");

  connection->LookAtPeer();
  EXPECT_TRUE(connection->ended());
  EXPECT_TRUE(connection->hung_up());
  const Outcome lost = Call(connection.get(), "echo");
  EXPECT_TRUE(IsFailure(lost.status, Status::Code::kUnavailable, server_->address()));
  EXPECT_FALSE(lost.sent);
}

TEST_P(ServeTest, CallsEndWithTheServer) {
  const auto connection = Connect();
  ASSERT_TRUE(IsOk(Call(connection.get(), "echo").status));
  std::vector<Outcome> outcomes(4);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    callers.emplace_back([&, i] {
      outcomes[i] = i % 2 == 0
                        ? Call(connection.get(), "late")
                        : CallAndSleep(connection.get(), "late", [] { return Status::OK(); });
    });
  }
  ASSERT_TRUE(Eventually([&] { return handler_.waiting() == outcomes.size(); }));
  handler_.Release();
  server_->Stop(/*silently=*/true);
  for (std::thread& caller : callers) caller.join();
  for (const Outcome& outcome : outcomes) {
    // The I/O thread may have answered before it was told to be silent.
    if (outcome.status.ok()) continue;
    EXPECT_TRUE(IsFailure(outcome.status, Status::Code::kUnavailable, server_->address()));
    EXPECT_TRUE(outcome.sent);
  }
  // The thread notices by itself.
  EXPECT_TRUE(Eventually([&] { return connection->ended(); }));
  EXPECT_TRUE(connection->hung_up());
  connection->LookAtPeer();
  EXPECT_TRUE(Call(connection.get(), "echo").status.IsUnavailable());
}

TEST_P(ServeTest, RequestsThatFindAStoppingServerAreAnswered) {
  const auto connection = Connect();
  ASSERT_TRUE(IsOk(Call(connection.get(), "echo").status));
  server_->BeginStop(/*silently=*/false);
  const Outcome outcome = Call(connection.get(), "echo");
  EXPECT_TRUE(outcome.status.IsUnavailable());
  EXPECT_EQ(outcome.status.message(), "the member is stopping");
  EXPECT_TRUE(outcome.sent);
}

TEST_P(ServeTest, AHandlerRefusesClients) {
  const auto before = Connect();
  handler_.Refuse();
  std::unique_ptr<PeerConnection> connection;
  const Status refused = PeerConnection::Connect(device_.get(), Clock::System(), server_->address(),
                                                 Soon(), &connection);
  EXPECT_TRUE(IsFailure(refused, Status::Code::kUnavailable, server_->address()));
  EXPECT_TRUE(IsFailure(refused, Status::Code::kUnavailable, "not today"));
  EXPECT_EQ(connection, nullptr);
  // It refuses channels, too.
  const Outcome outcome = Call(before.get(), "echo");
  EXPECT_TRUE(IsFailure(outcome.status, Status::Code::kUnavailable, "not today"));
  EXPECT_FALSE(outcome.sent);

  server_->Stop(/*silently=*/false);
  EXPECT_TRUE(IsFailure(PeerConnection::Connect(device_.get(), Clock::System(), server_->address(),
                                                Soon(), &connection),
                        Status::Code::kUnavailable, server_->address()));
}

TEST_P(ServeTest, AMemoryNodeSupportsNoRequestsOfMembers) {
  MemoryNodeOptions options;
  options.listen = AnyAddress();
  options.region_bytes = 8 << 20;
  options.slab_bytes = 1 << 20;
  std::unique_ptr<MemoryNode> node;
  ASSERT_TRUE(IsOk(MemoryNode::Start(options, server_device_.get(), Clock::System(), &node)));
  std::unique_ptr<PeerConnection> connection;
  ASSERT_TRUE(IsOk(PeerConnection::Connect(device_.get(), Clock::System(), node->address(), Soon(),
                                           &connection)));
  EXPECT_TRUE(Call(connection.get(), "echo").status.IsNotSupported());
  connection.reset();
}

INSTANTIATE_TEST_SUITE_P(Transports, ServeTest, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace nacre::pool
