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

constexpr uint64_t kSeeds = 20;
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
  std::string Call(const std::string& request, bool* sent) {
    std::string reply;
    const Status s = connection_->Call(request, Soon(), &reply, sent);
    if (s.ok()) return reply == request ? "echo" : "another reply";
    return s.IsUnavailable() ? "unavailable" : s.ToString();
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
void ExpectOfAll(const std::string& expected,
                 const std::function<std::string(ServedMachine*)>& scenario) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = RunSeed(seed, [&](Scheduler* scheduler, uint64_t) {
      // It is never destroyed: the far machine's thread has no end.
      return scenario(std::make_unique<ServedMachine>(scheduler).release());
    });
    EXPECT_EQ(outcome.summary, expected) << "seed " << seed << ": " << outcome.failure;
  }
}

TEST(PeerCaseTest, RequestsOfSeveralThreadsAreAnswered) {
  ExpectOfAll("stands 0", [](ServedMachine* machine) {
    int wrong = 0;
    RunTogether("caller", 3, [&](size_t i) {
      for (const size_t size : {size_t{10}, size_t{5000}, size_t{200'000}}) {
        bool sent = false;
        if (machine->Call(std::string(size + i, 'x'), &sent) != "echo" || !sent) ++wrong;
      }
    });
    machine->connection()->LookAtPeer();
    return machine->Fate() + " " + std::to_string(wrong);
  });
}

TEST(PeerCaseTest, AProcessThatEndsIsNoticedAtOnce) {
  ExpectOfAll("hung up unavailable 0", [](ServedMachine* machine) {
    bool sent = true;
    machine->Call("before", &sent);
    machine->End(/*told=*/true);
    Clock::System()->SleepFor(milliseconds(10));
    const std::string fate = machine->Fate();
    const std::string after = machine->Call("after", &sent);
    return fate + " " + after + " " + std::to_string(sent);
  });
}

TEST(PeerCaseTest, AMachineThatVanishesIsGivenUp) {
  ExpectOfAll("unavailable 1 1, vanished unavailable 0", [](ServedMachine* machine) {
    std::string during;
    RunTogether("caller", 2, [&](size_t i) {
      if (i == 0) {
        Clock::System()->SleepFor(milliseconds(50));
        machine->End(/*told=*/false);
        return;
      }
      bool sent = false;
      const uint64_t begin = Clock::System()->NowNanos();
      during = machine->Call(kSilence, &sent);
      during += " " + std::to_string(sent);
      const uint64_t took = Clock::System()->NowNanos() - begin;
      during += " " + std::to_string(took < 2'000'000'000);
    });
    Clock::System()->SleepFor(seconds(1));
    bool sent = true;
    const std::string fate = machine->Fate();
    const std::string after = machine->Call("after", &sent);
    return during + ", " + fate + " " + after + " " + std::to_string(sent);
  });
}

}  // namespace
}  // namespace nacre::sim
