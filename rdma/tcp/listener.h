#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/acceptor.h"
#include "rdma/secret_ring.h"
#include "rdma/tcp/greeting.h"
#include "rdma/tcp/socket.h"
#include "rdma/tcp/tls.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"

namespace nacre::rdma {

class TcpDevice;

/// Accepts connections, reads their greeting, challenges them and checks their proof; only then
/// does Accept see them. Callers that connect and then stay silent cost a descriptor for a few
/// seconds, and never delay others.
///
/// Threads: Accept by one thread at a time; Close by any.
class TcpListener final : public Listener {
 public:
  static Status Open(TcpDevice* device, const std::string& address,
                     std::unique_ptr<Listener>* listener);
  ~TcpListener() override;

  Status Accept(std::chrono::nanoseconds timeout,
                std::unique_ptr<IncomingConnection>* incoming) override;
  void Close() override;
  const std::string& address() const override { return text_; }

 private:
  struct Caller {
    UniqueFd socket;
    std::string name;
    uint64_t taken_up_nanos = 0;
    std::string received{};  ///< Received bytes of the message that is awaited.
    std::string hello_bytes{};
    TcpHello hello{};
    std::shared_ptr<const Credential> credential{};  ///< What it is to prove, once challenged.
    TcpChallenge challenge{};
    std::unique_ptr<TlsStream> tls{};  ///< Once it has proved what it had to.

    bool challenged() const { return !hello_bytes.empty(); }
  };
  enum class Step : uint8_t { kWaits, kOver, kProven };

  TcpListener(TcpDevice* device, std::string text, UniqueFd socket, UniqueFd close_fd);

  /// Waits for anything to do; the caller looks itself.
  void WaitForActivity(std::chrono::nanoseconds timeout);
  void TakeUpConnections();
  /// Makes room for one more caller. False if those present deserve more time.
  bool MakeRoom(uint64_t now);
  bool TakeCaller(std::unique_ptr<IncomingConnection>* incoming);
  static bool StillMayWait(const Caller& caller, uint64_t now);
  /// What can be done now for a caller.
  Step Advance(Caller* caller, uint64_t now);
  Step TakeHello(Caller* caller);
  Step TakeIntroduction(Caller* caller);
  Step AdvanceTls(const Caller& caller);
  Step Refuse(const Caller& caller, std::string_view why);
  Step RefuseMalformed(const Caller& caller, std::string_view why);

  TcpDevice* const device_;
  const std::string text_;
  UniqueFd socket_;
  Acceptor acceptor_;
  const UniqueFd close_fd_;
  std::atomic<bool> closed_{false};
  std::vector<Caller> callers_;  ///< These are in order of arrival.
};

}  // namespace nacre::rdma
