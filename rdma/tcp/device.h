#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/refusals.h"
#include "rdma/secret_ring.h"
#include "rdma/tcp/counters.h"
#include "rdma/tcp/io_thread.h"
#include "rdma/tcp/region.h"
#include "rdma/tcp/socket.h"
#include "rdma/tcp/tls.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

class TcpQueuePair;

/// The `tcp` transport: the operations of a NIC as frames over sockets (see frame.h), one socket
/// for each queue pair, carried out by the I/O threads of the device that owns the memory.
///
/// Thread safety: as a Device.
class TcpDevice final : public Device {
 public:
  /// Parameters: "io_threads" (1); "timeout_ms" (5000): how long a peer may be silent while
  /// something is awaited of it; "spin_us" (50): how long at most a thread that waits for a
  /// completion looks for it before it sleeps; "io_spin_us" (0): how long the I/O threads look for
  /// more to do before they sleep; "tls" (0): 1 encrypts control connections
  /// (QueueDepths::control), has both ends insist on that, and lets no other connection carry
  /// messages. `InvalidArgument` for "tls" in a pool without a secret. `clock` outlives the device.
  static Status Open(const DeviceOptions& options, Clock* clock, std::unique_ptr<Device>* device);
  ~TcpDevice() override;

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override;
  Status MapRegion(int fd, size_t size, Access access,
                   std::unique_ptr<MemoryRegion>* region) override;
  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override;
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override;
  bool callers_move_bytes() const override { return true; }
  TrafficCounters traffic() const override;
  const char* scheme() const override { return "tcp"; }

  Clock* clock() const { return clock_; }
  const SecretRing& ring() const { return *ring_; }
  Refusals* refusals() { return &refusals_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  TcpEncryption encryption() const { return encryption_; }
  /// Whether it encrypts such connections.
  bool Encrypts(QueueDepths depths) const {
    return encryption_ == TcpEncryption::kAll ||
           (encryption_ == TcpEncryption::kControl && depths.control);
  }

  /// TLS over the socket of a peer that has proved to know `secret`, by what was `said`.
  Status StartTls(Role role, const std::string& secret, const Handshake& said, int socket,
                  std::unique_ptr<TlsStream>* tls) const;
  /// The end of a handshake: `socket` is that of a peer which has proved what it had to, with `tls`
  /// established over it where that was agreed on. `may_write`: what the peer is allowed.
  Status Accept(UniqueFd socket, std::unique_ptr<TlsStream> tls, const std::string& peer,
                bool may_write, QueueDepths depths, CompletionQueue* send_queue,
                CompletionQueue* receive_queue, const std::string& reply,
                std::unique_ptr<QueuePair>* queue_pair);

 private:
  TcpDevice(const DeviceOptions& options, std::shared_ptr<SecretRing> ring, Clock* clock,
            std::chrono::milliseconds timeout, std::chrono::microseconds spin);

  /// The connecting end of a handshake. `Aborted` with the peer's reason if it refused.
  Status Greet(int socket, const std::string& peer, const std::string& private_data,
               QueueDepths depths, const Deadline& deadline, std::unique_ptr<TlsStream>* tls,
               std::string* reply);
  /// The connection over a socket whose peer has proved what it had to.
  std::unique_ptr<TcpQueuePair> MakePair(UniqueFd socket, std::unique_ptr<TlsStream> tls,
                                         const std::string& peer, bool peer_may_write,
                                         QueueDepths depths, CompletionQueue* send_queue,
                                         CompletionQueue* receive_queue, IoThread* io_thread);
  Status MakeRegion(std::shared_ptr<Mapping> memory, size_t size, Access access,
                    std::unique_ptr<MemoryRegion>* region);
  IoThread* NextIoThread();

  Clock* const clock_;
  const std::shared_ptr<SecretRing> ring_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::microseconds spin_;  ///< For its completion queues.
  Refusals refusals_;
  TcpCounters counters_;
  RegionTable regions_;
  TcpEncryption encryption_ = TcpEncryption::kNone;  ///< Constant once it is open.
  std::unique_ptr<TlsContext> tls_;                  ///< Null: nothing is encrypted.
  const uint64_t device_id_;
  std::atomic<uint32_t> next_region_{1};
  std::atomic<uint32_t> next_io_thread_{0};
  std::vector<std::unique_ptr<IoThread>> io_threads_;
};

/// `InvalidArgument` if it is more than a handshake carries.
Status CheckTcpPrivateData(const std::string& data);

}  // namespace nacre::rdma
