#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rdma/refusals.h"
#include "rdma/secret_ring.h"
#include "rdma/shm/completion_queue.h"
#include "rdma/shm/connection.h"
#include "rdma/shm/control.h"
#include "rdma/shm/kept_memory.h"
#include "rdma/shm/peer_writers.h"
#include "rdma/shm/region.h"
#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::rdma {

// The `shm` transport: peers on one host. A region is memory that peers map as well, so a read or
// write is a copy by the process that posts it. A Unix socket per connection carries the handshake
// and the regions' descriptors; its hang-up tells that the peer has gone. That a process was killed
// shows earlier, in the life sign of its control block.
//
// The poster of a request checks its access rights, though a process that was given the descriptor
// of a region could do anything with it. So the keys guard against mistakes of peers that know the
// secret, and the handshake against those that do not.
//
// Locks, in order: announce_mutex_, then any of watch_mutex_, PeerWriters', Connection's, then
// KeptMemory's, and last MappingTable's.

/// Opened by OpenDevice. Regions, queues, queue pairs and listeners must be gone before it.
class ShmDevice final : public Device {
 public:
  /// `scheme`: "shm"; "cxl", whose peers' regions of files or devices go from this process when the
  /// peer has; or "embedded" for a device whose peers are all in this process; its regions are then
  /// private memory, which gets huge pages by default where shared memory does not.
  /// `options`: secret and logger. `clock` outlives the device.
  static Status Open(const char* scheme, const DeviceOptions& options, Clock* clock,
                     std::unique_ptr<Device>* device);
  ~ShmDevice() override;

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override
      EXCLUDES(announce_mutex_);
  Status MapRegion(int fd, size_t size, Access access,
                   std::unique_ptr<MemoryRegion>* region) override EXCLUDES(announce_mutex_);
  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override;
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override
      EXCLUDES(announce_mutex_);
  bool callers_move_bytes() const override { return true; }
  TrafficCounters traffic() const override EXCLUDES(watch_mutex_);
  /// "map" of the device's parameters.
  bool may_map() const override { return may_map_; }
  const char* scheme() const override { return scheme_; }

  Clock* clock() const { return clock_; }
  const SecretRing& ring() const { return *ring_; }
  Refusals* refusals() { return &refusals_; }

  /// The accepting end of a handshake, from the introduction of a peer that has proven itself to
  /// the queue pair. `may_write`: what it is allowed. `regions`: announcements that follow.
  Status Accept(UniqueFd socket, PeerProcess process, const Hello& hello, bool may_write,
                uint32_t regions, std::vector<UniqueFd> fds, ShmCompletionQueue* send_queue,
                ShmCompletionQueue* receive_queue, const std::string& reply,
                std::unique_ptr<QueuePair>* queue_pair) EXCLUDES(announce_mutex_);
  /// Called by the queue pair's destructor.
  void Disconnect(const std::shared_ptr<Connection>& connection) EXCLUDES(announce_mutex_);
  /// Called by the region's destructor.
  void DropRegion(const ShmRegion* region) EXCLUDES(announce_mutex_);
  Status Grant(const ShmRegion* region, size_t offset, size_t size, Access access,
               std::unique_ptr<RegionGrant>* grant);
  /// Ends a grant's key, with the result of RegionGrant::Revoke; `first`: it was in force until
  /// now. On success the key may be used for another grant.
  Status EndGrant(uint32_t key, bool first);

 private:
  ShmDevice(const char* scheme, const DeviceOptions& options, Clock* clock,
            std::shared_ptr<SecretRing> ring, std::shared_ptr<DeviceControl> control,
            UniqueFd epoll_fd, UniqueFd kick_fd);

  Status MakeRegion(uint32_t key, size_t size, Access access, UniqueFd fd,
                    std::shared_ptr<Mapping> mapping, std::unique_ptr<MemoryRegion>* region)
      EXCLUDES(announce_mutex_);
  bool this_process_only() const { return memory_kind_ == MemoryKind::kPrivate; }
  /// The connecting end of a handshake, up to the listener's proof.
  Status ProveTo(const Connection& connection, const std::string& secret, const Hello& hello,
                 const Deadline& deadline, Introduction* introduction);
  /// Sends the handshake message and all regions, whose messages `*told` then has. `regions` is the
  /// message's field for their number. The peer must have proven itself. Holds no lock as it sends:
  /// the peer may read only after another thread's connection has come to be.
  Status Introduce(const std::shared_ptr<Connection>& connection, void* message, size_t size,
                   uint32_t* regions, const std::vector<int>& fds, const Deadline& deadline,
                   std::vector<RegionMessage>* told) EXCLUDES(announce_mutex_);
  /// Tells the peer what has changed since it was told; from then on the connection hears of each
  /// change. The peer must have taken the connection: its monitor reads.
  void KeepInformed(const std::shared_ptr<Connection>& connection,
                    const std::vector<RegionMessage>& told) EXCLUDES(announce_mutex_);
  void AnnounceToAll(const RegionMessage& message, int fd) REQUIRES(announce_mutex_);
  /// Makes a key valid that TakeKey has just given; `part_of` as in GrantSlot.
  void PutInForce(const RemoteKey& key, uint32_t part_of, Access access);
  void Invalidate(uint32_t key);

  /// The monitor: reads announcements, so that their senders never wait, and notices deaths.
  void Monitor() EXCLUDES(watch_mutex_);
  void HandleSocket(uint64_t connection_id, uint32_t events) EXCLUDES(watch_mutex_);
  void LookForDeaths() EXCLUDES(watch_mutex_);
  void KickMonitor();
  Status Watch(const std::shared_ptr<Connection>& connection) EXCLUDES(watch_mutex_);
  void Unwatch(const Connection& connection) EXCLUDES(watch_mutex_);

  const char* const scheme_;
  const MemoryKind memory_kind_;
  const bool lets_memory_go_;  ///< When peers have ended: see KeptMemory.
  const bool may_map_;
  Clock* const clock_;
  const std::shared_ptr<SecretRing> ring_;
  Refusals refusals_;
  const std::shared_ptr<DeviceControl> control_;
  PeerWriters writers_;
  KeptMemory kept_memory_;
  std::atomic<uint32_t> next_connection_{1};

  /// Held while regions are announced, so that each connection hears of all of them in order.
  Mutex announce_mutex_;
  std::map<uint32_t, const ShmRegion*> regions_ GUARDED_BY(announce_mutex_);
  std::map<uint64_t, std::shared_ptr<Connection>> connections_ GUARDED_BY(announce_mutex_);

  mutable Mutex watch_mutex_;
  std::map<uint64_t, std::shared_ptr<Connection>> watched_ GUARDED_BY(watch_mutex_);
  /// Traffic of queue pairs that are gone.
  TrafficCounters past_traffic_ GUARDED_BY(watch_mutex_);

  const UniqueFd epoll_fd_;
  const UniqueFd kick_fd_;
  std::atomic<bool> stopping_{false};
  /// Some watched peer is another process.
  std::atomic<bool> has_remote_peers_{false};
  std::thread monitor_;
};

}  // namespace nacre::rdma
