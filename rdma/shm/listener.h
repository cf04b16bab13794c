#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rdma/acceptor.h"
#include "rdma/secret_ring.h"
#include "rdma/shm/peer_process.h"
#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"

namespace nacre::rdma {

class ShmDevice;

/// Accepts connections, reads their greeting, challenges them and checks their proof; only then
/// does Accept see them. Callers that connect and then stay silent cost a descriptor for a few
/// seconds, and never delay others.
///
/// Threads: Accept by one thread at a time; Close by any.
class ShmListener final : public Listener {
 public:
  static Status Open(ShmDevice* device, const std::string& address,
                     std::unique_ptr<Listener>* listener);
  ~ShmListener() override;

  Status Accept(std::chrono::nanoseconds timeout,
                std::unique_ptr<IncomingConnection>* incoming) override;
  void Close() override;
  const std::string& address() const override { return text_; }

 private:
  struct Greeting {
    UniqueFd socket;
    PeerProcess process;
    uint64_t taken_up_nanos = 0;
    bool challenged = false;
    std::shared_ptr<const Credential> credential{};  ///< What it is to prove, once challenged.
    Hello hello{};
    Challenge challenge{};
  };
  enum class Step : uint8_t { kWaits, kOver, kProven };

  ShmListener(ShmDevice* device, const ShmAddress& address, UniqueFd socket, UniqueFd close_fd);

  /// Waits for anything to do; the caller looks itself.
  void WaitForActivity(std::chrono::nanoseconds timeout);
  void TakeUpConnections();
  bool TakeGreeting(std::unique_ptr<IncomingConnection>* incoming);
  /// What can be done now for a caller. kProven: `packet` has its descriptors.
  Step Advance(Greeting* greeting, uint64_t now, Packet* packet, Introduction* introduction);
  Step TakeHello(Greeting* greeting, const Packet& packet);
  Step TakeIntroduction(const Greeting& greeting, const Packet& packet, Introduction* introduction);

  ShmDevice* const device_;
  const ShmAddress address_;
  const std::string text_;
  const UniqueFd socket_;
  Acceptor acceptor_;
  const UniqueFd close_fd_;
  std::atomic<bool> closed_{false};
  std::vector<Greeting> greetings_;
};

}  // namespace nacre::rdma
