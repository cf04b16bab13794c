// Goal: the faults of the simulated network are those of reliable connections: a request that is
// held up takes place once, later; one whose answer is lost has taken place; and a machine that
// vanishes is given up in time, with and without requests.
// Method: two simulated machines with a connection, and a fault, for several seeds each. (What
// holds without faults is in tests/rdma/*_contract_test.cc.)

#include "tests/support/sim_transport/network.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "rdma/transport.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using rdma::Completion;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kNetworkSeeds = 20;

/// A machine that lets others use its memory, and one (the test's) that is connected to it.
class TwoMachines {
 public:
  TwoMachines(Scheduler* scheduler, bool control)
      : scheduler_(scheduler),
        network_(scheduler, {}),
        far_(scheduler->NewProcess("far")),
        serving_(scheduler->Start(far_, "main", [this] { Serve(); })) {
    Check(rdma::OpenDevice("sim", {}, Clock::System(), &device_));
    Check(device_->CreateCompletionQueue(64, &queue_));
    Check(device_->AllocateRegion(4096, rdma::Access::kLocalOnly, &region_));
    while (!listens_) Clock::System()->SleepFor(milliseconds(1));
    std::string reply;
    Check(device_->Connect("sim:far", "", {.send = 16, .receive = 4, .control = control},
                           queue_.get(), queue_.get(), Deadline::After(Clock::System(), seconds(5)),
                           &reply, &pair_));
    Clock::System()->SleepFor(milliseconds(1));
  }

  rdma::SimNetwork& network() { return network_; }
  ProcessId near() const { return 0; }
  ProcessId far() const { return far_; }
  rdma::QueuePair* pair() { return pair_.get(); }
  /// What is in the far machine's first word.
  uint64_t Word() const {
    uint64_t word = 0;
    std::memcpy(&word, far_memory_, sizeof(word));
    return word;
  }
  void PostWrite(uint64_t value) {
    std::memcpy(region_->data(), &value, sizeof(value));
    Check(pair_->PostWrite(1, {region_->data(), 8, region_.get()}, {key_.address, key_.key},
                           rdma::kSignaled));
  }
  void PostAdd() {
    Check(pair_->PostFetchAdd(2, {region_->data() + 64, 8, region_.get()}, {key_.address, key_.key},
                              1, rdma::kSignaled));
  }
  /// How the next request ended, and after how many milliseconds.
  std::string Next() {
    const uint64_t begin = scheduler_->TrueNanos();
    Completion completion;
    while (queue_->Poll(&completion, 1) == 0) queue_->Wait(seconds(30)).IgnoreError();
    millis_ = (scheduler_->TrueNanos() - begin) / 1'000'000;
    return rdma::ToString(completion.code);
  }
  uint64_t millis() const { return millis_; }
  void End(bool told) {
    network_.EndHost(far_, told);
    scheduler_->Kill(far_);
  }

 private:
  void Check(const Status& status) {
    if (!status.ok()) scheduler_->Fail(status.ToString());
  }
  void Serve() {
    std::unique_ptr<rdma::Device> device;
    std::unique_ptr<rdma::CompletionQueue> queue;
    std::unique_ptr<rdma::MemoryRegion> region;
    std::unique_ptr<rdma::Listener> listener;
    std::unique_ptr<rdma::IncomingConnection> incoming;
    std::unique_ptr<rdma::QueuePair> pair;
    Check(rdma::OpenDevice("sim", {}, Clock::System(), &device));
    Check(device->CreateCompletionQueue(64, &queue));
    Check(device->AllocateRegion(4096, rdma::Access::kRemoteAll, &region));
    Check(device->Listen("sim:far", &listener));
    far_memory_ = region->data();
    key_ = region->remote_key();
    listens_ = true;
    Check(listener->Accept(seconds(60), &incoming));
    Check(incoming->Accept(queue.get(), queue.get(), "", &pair));
    scheduler_->Park(this, Simulation::kForever, "its end");
  }

  Scheduler* const scheduler_;
  rdma::SimNetwork network_;
  const ProcessId far_;
  bool listens_ = false;
  char* far_memory_ = nullptr;
  rdma::RemoteKey key_;
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  std::unique_ptr<rdma::QueuePair> pair_;
  uint64_t millis_ = 0;
  Thread serving_;
};

/// What a scenario says, which is the same for all seeds.
void ExpectOfAll(const std::string& expected,
                 const std::function<std::string(TwoMachines*)>& scenario, bool control = false) {
  for (uint64_t seed = 1; seed <= kNetworkSeeds; ++seed) {
    const Outcome outcome = RunSeed(seed, [&](Scheduler* scheduler, uint64_t) {
      // It is never destroyed: the far machine's thread has no end.
      return scenario(std::make_unique<TwoMachines>(scheduler, control).release());
    });
    EXPECT_EQ(outcome.summary, expected) << "seed " << seed << ": " << outcome.failure;
  }
}

TEST(SimNetworkTest, ARequestWithoutFaultsTakesMicroseconds) {
  ExpectOfAll("success 7 1", [](TwoMachines* machines) {
    machines->PostWrite(7);
    const std::string code = machines->Next();
    return code + " " + std::to_string(machines->Word()) + " " +
           std::to_string(machines->millis() < 2);
  });
}

TEST(SimNetworkTest, ARequestThatIsHeldUpTakesPlaceOnce) {
  ExpectOfAll("success success 2", [](TwoMachines* machines) {
    machines->network().Block(machines->near(), machines->far());
    machines->PostAdd();
    machines->PostAdd();
    Clock::System()->SleepFor(milliseconds(200));
    if (machines->Word() != 0) return std::string("went through");
    machines->network().Unblock(machines->near(), machines->far());
    const std::string first = machines->Next();
    const std::string second = machines->Next();
    return first + " " + second + " " + std::to_string(machines->Word());
  });
}

TEST(SimNetworkTest, ARequestWhoseAnswerIsLostHasTakenPlace) {
  ExpectOfAll("peer gone 1 1", [](TwoMachines* machines) {
    machines->network().Block(machines->far(), machines->near());
    machines->PostAdd();
    const std::string code = machines->Next();
    return code + " " + std::to_string(machines->Word()) + " " +
           std::to_string(machines->pair()->broken());
  });
}

TEST(SimNetworkTest, AnAnswerThatIsHeldUpComesOnce) {
  ExpectOfAll("success 1 0", [](TwoMachines* machines) {
    machines->network().Block(machines->far(), machines->near());
    machines->PostAdd();
    Clock::System()->SleepFor(milliseconds(200));
    machines->network().Unblock(machines->far(), machines->near());
    const std::string code = machines->Next();
    Clock::System()->SleepFor(seconds(2));
    return code + " " + std::to_string(machines->Word()) + " " +
           std::to_string(machines->pair()->broken());
  });
}

TEST(SimNetworkTest, AProcessThatEndsIsNoticedAtOnce) {
  ExpectOfAll("peer gone 1", [](TwoMachines* machines) {
    machines->End(/*told=*/true);
    Clock::System()->SleepFor(milliseconds(10));
    machines->PostWrite(9);
    const std::string code = machines->Next();
    return code + " " + std::to_string(machines->millis() < 2);
  });
}

TEST(SimNetworkTest, AMachineThatVanishesIsGivenUpByWhoAsksIt) {
  ExpectOfAll("peer gone 1", [](TwoMachines* machines) {
    machines->End(/*told=*/false);
    machines->PostWrite(9);
    const std::string code = machines->Next();
    return code + " " + std::to_string(machines->millis() > 400 && machines->millis() < 1000);
  });
}

TEST(SimNetworkTest, ControlConnectionsNoticeWithoutRequests) {
  const auto broken_after_a_second = [](TwoMachines* machines) {
    machines->End(/*told=*/false);
    Clock::System()->SleepFor(seconds(1));
    return std::string(machines->pair()->broken() ? "broken" : "whole");
  };
  ExpectOfAll("broken", broken_after_a_second, /*control=*/true);
  ExpectOfAll("whole", broken_after_a_second, /*control=*/false);
}

}  // namespace
}  // namespace nacre::sim
