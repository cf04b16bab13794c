#include "tests/support/rdma_endpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "util/clock.h"

namespace nacre::rdma {

Status OpenForTest(const DeviceSpec& spec, std::unique_ptr<Device>* device) {
  const DeviceOptions options{.parameters = spec.parameters, .secret = spec.secret};
  NACRE_RETURN_IF_ERROR(OpenDevice(spec.scheme, options, Clock::System(), device));
  if (spec.with_faults) {
    *device = WrapWithFaults(std::move(*device), FaultPlan(), Clock::System(), nullptr);
  }
  return Status::OK();
}

Endpoint::Endpoint(const DeviceSpec& spec) {
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

std::string FreshAddress() {
  static std::atomic<int> next{0};
  return "@nacre-test-" + std::to_string(getpid()) + "-" + std::to_string(next++);
}

}  // namespace nacre::rdma
