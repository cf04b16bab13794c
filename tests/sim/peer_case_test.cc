// Goal: a connection to a server that is no memory node ends with it, whether its machine says so
// or vanishes, and tells the two apart.
// Method: a server on a simulated machine and a client on another, and a fault, for several seeds.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pool/connect/peer_connection.h"
#include "pool/serve/request_handler.h"
#include "pool/serve/request_server.h"
#include "pool/wire/control.pb.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/sim_transport/network.h"
#include "util/clock.h"
#include "util/threads/thread.h"

namespace nacre::sim {
namespace {

using pool::PeerConnection;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kPeerSeeds = 20;
constexpr char kSilence[] = "silence";

/// Answers with the request, but kSilence by nothing.
class EchoHandler : public pool::RequestHandler {
 public:
  std::string Refusal(const pool::Hello& hello) override { return RefusalReason(hello, 0, 0, 0); }
  void Execute(pool::ServerConnection* connection) override {
    const std::string& request = connection->request.member_request();
    if (request == kSilence) return;
    control::Reply reply;
    reply.set_member_reply(request);
    server->Answer(connection, Status::OK(), std::move(reply));
  }

  pool::RequestServer* server = nullptr;
};

/// A machine that serves, and one (the test's) that is connected to it.
class ServedMachine {
 public:
  explicit ServedMachine(Scheduler* scheduler)
      : scheduler_(scheduler),
        network_(scheduler, {}),
        far_(scheduler->NewProcess("far")),
        serving_(scheduler->Start(far_, "main", [this] { Serve(); })) {
    Check(rdma::OpenDevice("sim", {}, Clock::System(), &device_));
    while (!serves_) Clock::System()->SleepFor(milliseconds(1));
    Check(PeerConnection::Connect(device_.get(), Clock::System(), "sim:far", Soon(), &connection_));
  }

  PeerConnection* connection() { return connection_.get(); }
  /// What it came to, and whether the machine may have seen it.
  std::string Call(const std::string& request) {
    std::string reply;
    bool sent = false;
    const Status s = connection_->Call(request, Soon(), &reply, &sent);
    const std::string answer = reply == request ? "echo" : "another reply";
    const std::string failure = s.IsUnavailable() ? "unavailable" : s.ToString();
    return (s.ok() ? answer : failure) + (sent ? ", sent" : ", not sent");
  }
  void End(bool told) {
    network_.EndHost(far_, told);
    scheduler_->Kill(far_);
  }
  /// Whether the connection has ended, and how.
  std::string Fate() const {
    if (!connection_->ended()) return "stands";
    return connection_->hung_up() ? "hung up" : "vanished";
  }

 private:
  static Deadline Soon() { return Deadline::After(Clock::System(), seconds(20)); }
  void Check(const Status& status) {
    if (!status.ok()) scheduler_->Fail(status.ToString());
  }
  void Serve() {
    std::unique_ptr<rdma::Device> device;
    Check(rdma::OpenDevice("sim", {}, Clock::System(), &device));
    EchoHandler handler;
    pool::RequestServer server({.listen = "sim:far"}, device.get(), Clock::System(), &handler);
    handler.server = &server;
    Check(server.Listen());
    server.Start();
    serves_ = true;
    scheduler_->Park(this, Simulation::kForever, "its end");
  }

  Scheduler* const scheduler_;
  rdma::SimNetwork network_;
  const ProcessId far_;
  bool serves_ = false;
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<PeerConnection> connection_;
  Thread serving_;
};

/// What a scenario says, which is the same for all seeds.
void ExpectOfAllPeers(const std::string& expected,
                      const std::function<std::string(ServedMachine*)>& scenario) {
  for (uint64_t seed = 1; seed <= kPeerSeeds; ++seed) {
    const Outcome outcome = RunSeed(seed, [&](Scheduler* scheduler, uint64_t) {
      // It is never destroyed: the far machine's thread has no end.
      return scenario(std::make_unique<ServedMachine>(scheduler).release());
    });
    EXPECT_EQ(outcome.summary, expected) << "seed " << seed << ": " << outcome.failure;
  }
}

TEST(PeerCaseTest, RequestsOfSeveralThreadsAreAnswered) {
  ExpectOfAllPeers("stands; 0 wrong", [](ServedMachine* machine) {
    int wrong = 0;
    RunTogether("caller", 3, [&](size_t i) {
      for (const size_t size : {size_t{10}, size_t{5000}, size_t{200'000}}) {
        if (machine->Call(std::string(size + i, 'x')) != "echo, sent") ++wrong;
      }
    });
    machine->connection()->LookAtPeer();
    return machine->Fate() + "; " + std::to_string(wrong) + " wrong";
  });
}

TEST(PeerCaseTest, AProcessThatEndsIsNoticedAtOnce) {
  ExpectOfAllPeers("echo, sent; hung up; unavailable, not sent", [](ServedMachine* machine) {
    const std::string before = machine->Call("before");
    machine->End(/*told=*/true);
    Clock::System()->SleepFor(milliseconds(10));
    const std::string fate = machine->Fate();
    return before + "; " + fate + "; " + machine->Call("after");
  });
}

TEST(PeerCaseTest, AMachineThatVanishesIsGivenUp) {
  ExpectOfAllPeers("unavailable, sent; vanished; unavailable, not sent",
                   [](ServedMachine* machine) {
                     std::string during;
                     RunTogether("caller", 2, [&](size_t i) {
                       if (i == 1) {
                         Clock::System()->SleepFor(milliseconds(50));
                         machine->End(/*told=*/false);
                         return;
                       }
                       const uint64_t begin = Clock::System()->NowNanos();
                       during = machine->Call(kSilence);
                       if (Clock::System()->NowNanos() - begin > 2'000'000'000)
                         during += " too late";
                     });
                     Clock::System()->SleepFor(seconds(1));
                     const std::string fate = machine->Fate();
                     return during + "; " + fate + "; " + machine->Call("after");
                   });
}

}  // namespace
}  // namespace nacre::sim
