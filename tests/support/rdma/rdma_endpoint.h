#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "tests/support/rdma/fault_device.h"

namespace nacre::rdma {

/// How a test opens a device.
struct DeviceSpec {
  std::string scheme = "shm";
  std::map<std::string, std::string> parameters{};
  bool with_faults = false;  ///< Wrapped by the fault decorator, with no faults planned.
  std::string secret{};
  std::vector<SecretTerms> ring{};  ///< Counts instead of the secret, unless it is empty.
  /// The same, for a device of this process whose ring the test replaces.
  std::shared_ptr<SecretRing> shared_ring{};
};
Status OpenForTest(const DeviceSpec& spec, std::unique_ptr<Device>* device);

/// One side of the tests: a device, one completion queue, and what was made from them, by number.
/// Thread safety: none.
class Endpoint {
 public:
  static constexpr int kCompletions = 4096;
  static constexpr std::chrono::seconds kPatience{20};

  /// Fails the test (or the helper process) if the device cannot be opened.
  explicit Endpoint(const DeviceSpec& spec);
  ~Endpoint();

  /// Returns the region's number.
  int Allocate(size_t size, Access access = Access::kRemoteAll);
  LocalBuffer Buffer(int region, size_t offset, size_t size) const {
    MemoryRegion* memory = regions[static_cast<size_t>(region)].get();
    return {memory->data() + offset, static_cast<uint32_t>(size), memory};
  }
  char* Data(int region) const { return regions[static_cast<size_t>(region)]->data(); }

  Status Listen(const std::string& address);
  /// On success the new queue pair is the last one.
  Status Accept(const std::string& reply, std::string* private_data = nullptr);
  Status Reject(const std::string& reason);
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 std::string* reply, std::chrono::nanoseconds timeout = kPatience);

  /// The next completion; a code of kReceiverNotReady and opcode kRecv with id ~0 after kPatience.
  Completion Next();
  /// False if there is none within `timeout`.
  bool Next(Completion* completion, std::chrono::nanoseconds timeout);

  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> queue;
  std::vector<std::unique_ptr<MemoryRegion>> regions;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs;
  /// What the peer proved whose connection was accepted last.
  std::shared_ptr<const Credential> credential;

 private:
  const bool encrypts_;  ///< Then all connections are to be control connections.
};

/// Lets other threads go on; serves loops that poll memory.
void GiveWay();

/// The address of an RDMA device of this machine, over which the contract is tested; null where
/// there is none. The guest of tests/rdma_vm says so in NACRE_TEST_VERBS_HOST.
const char* VerbsHost();

/// Both ends in this process; the far one, which listens at `address`, accepts. Failures fail the
/// test.
void ConnectEndpoints(Endpoint* near, Endpoint* far, const std::string& address);

/// An address that no other test run uses, for devices of that scheme.
std::string FreshAddress(const std::string& scheme = "shm");
/// An address to listen at that has the system choose.
std::string AnyAddress(const std::string& scheme);

}  // namespace nacre::rdma
