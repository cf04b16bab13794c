#pragma once

#include <memory>
#include <string>

#include "rdma/transport.h"
#include "tests/support/sim_transport/network.h"

namespace nacre::rdma {

/// The transport of simulations ("sim:NAME"): an adapter of the simulated process that opens it, on
/// the simulation's network. Requests take virtual time, drawn from the seed, and fail as those of
/// reliable connections between machines do.
class SimDevice final : public Device {
 public:
  /// `NotSupported` unless a simulation with a network runs, `InvalidArgument` for a parameter.
  static Status Open(const DeviceOptions& options, std::unique_ptr<Device>* device);

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override;
  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override;
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override;
  TrafficCounters traffic() const override;
  const char* scheme() const override { return "sim"; }

 private:
  SimDevice(SimNetwork* network, SimHost host, std::string secret);

  SimNetwork* const network_;
  const SimHost host_;
  const std::string secret_;
  const std::shared_ptr<SimKeys> keys_;
};

}  // namespace nacre::rdma
