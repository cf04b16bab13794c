#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rdma/shm/completion_queue.h"
#include "rdma/shm/connection.h"
#include "rdma/shm/control.h"
#include "rdma/shm/region.h"
#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::rdma {

// The `shm` transport: peers on one host. A region is memory that peers map as well, so a read or
// write is a copy by whoever posts it. A Unix socket per connection carries the handshake and the
// regions' descriptors; its hang-up tells that the peer has gone. That a process was killed shows
// earlier, in the life sign of its control block.
//
// Locks, in order: announce_mutex_, then any of watch_mutex_, Connection's, MappingTable's.

/// Opened by OpenDevice. Regions, queues, queue pairs and listeners must be gone before it.
class ShmDevice final : public Device {
 public:
  /// `scheme`: "shm", or "embedded" for a device whose peers are all in this process; its regions
  /// are then private memory, which gets huge pages by default where shared memory does not.
  /// `clock` outlives the device.
  static Status Open(const char* scheme, Clock* clock, std::unique_ptr<Device>* device);
  ~ShmDevice() override;

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override
      EXCLUDES(announce_mutex_);
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override
      EXCLUDES(announce_mutex_);
  TrafficCounters traffic() const override EXCLUDES(watch_mutex_);
  const char* scheme() const override { return scheme_; }

  Clock* clock() const { return clock_; }

  /// The accepting end of a handshake, from the greeting to the queue pair.
  Status Accept(UniqueFd socket, const Hello& hello, std::vector<UniqueFd> fds,
                ShmCompletionQueue* send_queue, ShmCompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair)
      EXCLUDES(announce_mutex_);
  /// By the queue pair's destructor.
  void Disconnect(const std::shared_ptr<Connection>& connection) EXCLUDES(announce_mutex_);
  /// By the region's destructor.
  void DropRegion(const ShmRegion* region) EXCLUDES(announce_mutex_);

 private:
  ShmDevice(const char* scheme, Clock* clock, std::shared_ptr<DeviceControl> control,
            UniqueFd epoll_fd, UniqueFd kick_fd);

  bool this_process_only() const { return memory_kind_ == MemoryKind::kPrivate; }
  /// Sends the handshake message and all regions; from then on the connection hears of each
  /// change. `regions` is the message's field for their number.
  Status Introduce(const std::shared_ptr<Connection>& connection, void* message, size_t size,
                   uint32_t* regions, const std::vector<int>& fds, const Deadline& deadline)
      EXCLUDES(announce_mutex_);
  void AnnounceToAll(const RegionMessage& message, int fd) REQUIRES(announce_mutex_);

  /// The monitor: reads announcements, so that their senders never wait, and notices deaths.
  void Monitor() EXCLUDES(watch_mutex_);
  void HandleSocket(uint64_t connection_id, uint32_t events) EXCLUDES(watch_mutex_);
  void LookForDeaths() EXCLUDES(watch_mutex_);
  void KickMonitor();
  Status Watch(const std::shared_ptr<Connection>& connection) EXCLUDES(watch_mutex_);
  void Unwatch(const Connection& connection) EXCLUDES(watch_mutex_);

  const char* const scheme_;
  const MemoryKind memory_kind_;
  Clock* const clock_;
  const std::shared_ptr<DeviceControl> control_;
  std::atomic<uint32_t> next_connection_{1};

  /// Held while regions are announced, so that each connection hears of all of them in order.
  Mutex announce_mutex_;
  std::map<uint32_t, const ShmRegion*> regions_ GUARDED_BY(announce_mutex_);
  std::map<uint64_t, std::shared_ptr<Connection>> connections_ GUARDED_BY(announce_mutex_);

  mutable Mutex watch_mutex_;
  std::map<uint64_t, std::shared_ptr<Connection>> watched_ GUARDED_BY(watch_mutex_);
  TrafficCounters past_traffic_ GUARDED_BY(watch_mutex_);  ///< Of queue pairs that are gone.

  const UniqueFd epoll_fd_;
  const UniqueFd kick_fd_;
  std::atomic<bool> stopping_{false};
  /// Some watched peer is another process.
  std::atomic<bool> has_remote_peers_{false};
  std::thread monitor_;
};

}  // namespace nacre::rdma
