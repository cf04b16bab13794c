#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre::perf {

/// The far side of a measurement: a region that peers read and write, and a thread a connection
/// that sends every message back to where it came from.
///
/// Thread safety: Start and the destructor from one thread.
class Peer {
 public:
  /// What a connecting side is told, in the reply to its request to connect. Little-endian.
  struct Welcome {
    static constexpr size_t kBytes = 24;
    rdma::RemoteKey key;

    std::string Encode() const;
    static bool Decode(const std::string& bytes, Welcome* welcome);
  };

  /// Serves `region_bytes` at `address`. `device` outlives the peer.
  static Status Start(rdma::Device* device, const std::string& address, size_t region_bytes,
                      std::unique_ptr<Peer>* peer);
  ~Peer();

  const std::string& address() const { return listener_->address(); }

 private:
  struct Connection;

  explicit Peer(rdma::Device* device);
  void AcceptLoop();
  Status Serve(std::unique_ptr<rdma::IncomingConnection> incoming);
  void Echo(Connection* connection);

  rdma::Device* const device_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  std::unique_ptr<rdma::Listener> listener_;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  /// Owned by the acceptor thread until it has ended.
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace nacre::perf
