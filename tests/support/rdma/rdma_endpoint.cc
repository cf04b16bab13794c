#include "tests/support/rdma/rdma_endpoint.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "rdma/unique_fd.h"
#include "util/clock.h"
#include "util/simulation.h"
#include "util/threads/thread.h"

namespace nacre::rdma {

Status OpenForTest(const DeviceSpec& spec, std::unique_ptr<Device>* device) {
  DeviceOptions options{.parameters = spec.parameters, .secret = spec.secret};
  options.ring = spec.shared_ring;
  if (!spec.ring.empty()) NACRE_RETURN_IF_ERROR(SecretRing::Create(spec.ring, &options.ring));
  NACRE_RETURN_IF_ERROR(OpenDevice(spec.scheme, options, Clock::System(), device));
  if (spec.with_faults) {
    *device = WrapWithFaults(std::move(*device), FaultPlan(), Clock::System(), nullptr);
  }
  return Status::OK();
}

Endpoint::Endpoint(const DeviceSpec& spec)
    : encrypts_(spec.parameters.contains("tls") && spec.parameters.at("tls") != "all") {
  Status status = OpenForTest(spec, &device);
  if (status.ok()) status = device->CreateCompletionQueue(kCompletions, &queue);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

Endpoint::~Endpoint() {
  queue_pairs.clear();
  listener.reset();
  regions.clear();
  queue.reset();
}

int Endpoint::Allocate(size_t size, Access access) {
  regions.emplace_back();
  const Status status = device->AllocateRegion(size, access, &regions.back());
  EXPECT_TRUE(status.ok()) << status.ToString();
  return static_cast<int>(regions.size()) - 1;
}

Status Endpoint::Listen(const std::string& address) { return device->Listen(address, &listener); }

Status Endpoint::Accept(const std::string& reply, std::string* private_data) {
  std::unique_ptr<IncomingConnection> incoming;
  NACRE_RETURN_IF_ERROR(listener->Accept(kPatience, &incoming));
  if (private_data != nullptr) *private_data = incoming->private_data();
  credential = incoming->credential();
  std::unique_ptr<QueuePair> queue_pair;
  NACRE_RETURN_IF_ERROR(incoming->Accept(queue.get(), queue.get(), reply, &queue_pair));
  queue_pairs.push_back(std::move(queue_pair));
  return Status::OK();
}

Status Endpoint::Reject(const std::string& reason) {
  std::unique_ptr<IncomingConnection> incoming;
  NACRE_RETURN_IF_ERROR(listener->Accept(kPatience, &incoming));
  incoming->Reject(reason);
  return Status::OK();
}

Status Endpoint::Connect(const std::string& address, const std::string& private_data,
                         QueueDepths depths, std::string* reply, std::chrono::nanoseconds timeout) {
  depths.control = depths.control || encrypts_;
  std::unique_ptr<QueuePair> queue_pair;
  NACRE_RETURN_IF_ERROR(device->Connect(address, private_data, depths, queue.get(), queue.get(),
                                        Deadline::After(Clock::System(), timeout), reply,
                                        &queue_pair));
  queue_pairs.push_back(std::move(queue_pair));
  return Status::OK();
}

bool Endpoint::Next(Completion* completion, std::chrono::nanoseconds timeout) {
  const Deadline deadline = Deadline::After(Clock::System(), timeout);
  while (queue->Poll(completion, 1) == 0) {
    if (deadline.Expired()) return false;
    // The loop looks at the deadline itself.
    queue->Wait(deadline.Remaining()).IgnoreError();
  }
  return true;
}

Completion Endpoint::Next() {
  Completion completion;
  if (!Next(&completion, kPatience)) {
    ADD_FAILURE() << "no completion";
    completion = {
        .id = ~uint64_t{0}, .opcode = Opcode::kRecv, .code = CompletionCode::kReceiverNotReady};
  }
  return completion;
}

void GiveWay() {
  if (Simulation::Current() != nullptr) {
    Clock::System()->SleepFor(std::chrono::microseconds(1));
  } else {
    std::this_thread::yield();
  }
}

const char* VerbsHost() { return std::getenv("NACRE_TEST_VERBS_HOST"); }

std::string FreshAddress(const std::string& scheme) {
  static std::atomic<int> next{0};
  if (scheme == "verbs") {
    // The RDMA connection manager has ports of its own.
    return "verbs:" + std::string(VerbsHost()) + ":" +
           std::to_string(10000 + (getpid() * 61 + next++) % 50000);
  }
  if (scheme != "tcp") {
    return "@nacre-test-" + std::to_string(getpid()) + "-" + std::to_string(next++);
  }
  // Below the ports that the system gives to others by itself; different test processes begin at
  // different ones.
  constexpr int kFirstPort = 10000;
  constexpr int kPorts = 20000;
  while (true) {
    const int port = kFirstPort + (getpid() * 61 + next++) % kPorts;
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      return "tcp:127.0.0.1:" + std::to_string(port);
    }
  }
}

void ConnectEndpoints(Endpoint* near, Endpoint* far, const std::string& address) {
  Thread accepting("accepting", [&] { EXPECT_TRUE(far->Accept("").ok()); });
  std::string reply;
  const Status status = near->Connect(address, "", {.send = 16, .receive = 4}, &reply);
  EXPECT_TRUE(status.ok()) << status.ToString();
  accepting.Join();
}

std::string AnyAddress(const std::string& scheme) {
  if (scheme == "verbs") return "verbs:" + std::string(VerbsHost()) + ":0";
  return scheme == "tcp" ? "tcp:127.0.0.1:0" : "@";
}

}  // namespace nacre::rdma
