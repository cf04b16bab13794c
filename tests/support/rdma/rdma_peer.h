#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rdma/rdma_endpoint.h"

namespace nacre::rdma {

/// What a test asks of the far side; its arguments mean what PeerEndpoint::Execute says.
enum class PeerCommand : uint32_t {
  kAllocate,
  kFree,
  kStore,
  kLoad,
  kListen,
  kAccept,
  kReject,
  kConnect,
  kPost,
  kPostRecv,
  kNext,
  kDropQueuePair,
  kAddRemotely,
  kAddLocally,
  kSwapRemotely,
  kServeRequests,
  kEcho,
  kTraffic,
  kGrant,
  kDropGrant,
  kExit,
};

struct PeerRequest {
  PeerCommand command = PeerCommand::kExit;
  std::vector<uint64_t> numbers{};
  std::string bytes{};
  std::string more_bytes{};
};

struct PeerAnswer {
  Status status{};
  std::vector<uint64_t> numbers{};
  std::string bytes{};
};

/// The far side of a test: in this process, or in a child that is executed for it. Either carries
/// out the same commands on an Endpoint, one after another.
class Peer {
 public:
  virtual ~Peer() = default;

  PeerAnswer Run(PeerRequest request) {
    Start(std::move(request));
    return Finish();
  }
  /// For commands that wait for the near side (accept, connect, work beside it).
  virtual void Start(PeerRequest request) = 0;
  virtual PeerAnswer Finish() = 0;
  /// kill -9; null for a peer in this process.
  virtual bool Kill() = 0;
  virtual pid_t process() const = 0;

  // The commands, typed. Failures of the far side fail the test.
  int Allocate(size_t size, Access access, RemoteKey* key);
  void Free(int region);
  void Store(int region, size_t offset, const std::string& bytes);
  std::string Load(int region, size_t offset, size_t size);
  void PostRecv(int queue_pair, uint64_t id, int region, size_t offset, size_t size);
  /// `arguments`: immediate, or expected/addend and desired.
  Status Post(Opcode opcode, int queue_pair, uint64_t id, int region, size_t offset, size_t size,
              RemoteBuffer remote, uint8_t flags, uint64_t argument = 0, uint64_t argument2 = 0);
  /// Waits for it. `queue_pair` of the completion is null.
  Completion Next();
  /// False if none comes within the time.
  bool Next(Completion* completion, std::chrono::milliseconds timeout);
  void DropQueuePair(int queue_pair);
  TrafficCounters Traffic();
  /// Returns the grant's number.
  int Grant(int region, size_t offset, size_t size, Access access, RemoteKey* key);
  void DropGrant(int grant);
};

std::unique_ptr<Peer> MakeLocalPeer(const DeviceSpec& spec);
/// Executes this test binary again; its main passes the arguments on to RunPeerProcess.
std::unique_ptr<Peer> MakeChildPeer(const DeviceSpec& spec);

/// True if the arguments are those of a peer process, which then has run to its end.
bool RunPeerProcess(int argc, char** argv);

}  // namespace nacre::rdma
