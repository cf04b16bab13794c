#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "rdma/memory.h"
#include "rdma/refusals.h"
#include "rdma/shm/control.h"
#include "rdma/shm/kept_memory.h"
#include "rdma/shm/peer_process.h"
#include "rdma/shm/ring.h"
#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// A region of the peer, as announced, with this process's mapping of it.
struct PeerRegion {
  RemoteKey key;
  Access access = Access::kLocalOnly;
  std::shared_ptr<Mapping> mapping;
};

/// What a connection's socket, its monitor and its queue pair share. Lives until the last of them
/// lets go.
///
/// Thread safety: the methods may be called from many threads, save those of the handshake.
class Connection {
 public:
  /// How to ring the peer's receive completion queue.
  struct PeerDoorbell {
    std::shared_ptr<Mapping> control;
    Doorbell* word = nullptr;
    uint64_t bit = 0;
    UniqueFd event_fd;
  };

  struct Parts {
    uint64_t id = 0;  ///< Within the device.
    UniqueFd socket;
    PeerProcess process;
    std::string peer;  ///< Name for messages.
    int side = 0;      ///< 0: connected; 1: accepted.
    uint32_t ring_slots = 0;
    std::shared_ptr<Mapping> memory;
    std::shared_ptr<LocalDoorbell> send_doorbell;  ///< The doorbell of our send completion queue.
    std::shared_ptr<LocalDoorbell>
        receive_doorbell;          ///< The doorbell of our receive completion queue.
    uint64_t receive_bit = 0;      ///< The queue pair's group in it.
    Refusals* refusals = nullptr;  ///< The device's refusals.
    /// Hears of the peer's memory that outlives it; null: it may stay here as well.
    KeptMemory* kept_memory = nullptr;
    /// Whether the peer's secret lets it write to this process's regions.
    bool peer_may_write = true;
  };
  explicit Connection(Parts parts) : parts_(std::move(parts)) {}

  uint64_t id() const { return parts_.id; }
  int socket() const { return parts_.socket.get(); }
  const std::string& peer() const { return parts_.peer; }
  const PeerProcess& peer_process() const { return parts_.process; }
  /// Whether the peer's device is in this process; known after SetPeerDoorbell.
  bool same_process() const { return same_process_.load(std::memory_order_relaxed); }
  int side() const { return parts_.side; }
  uint32_t ring_slots() const { return parts_.ring_slots; }
  ConnectionMemory* memory() const {
    return reinterpret_cast<ConnectionMemory*>(parts_.memory->data());
  }
  uint64_t receive_bit() const { return parts_.receive_bit; }

  /// Handshake, before other threads see the connection. `Unavailable` if the peer's name for its
  /// doorbell makes no sense; `fds`: its control block and eventfd.
  Status SetPeerDoorbell(const DoorbellName& name, UniqueFd control, UniqueFd event_fd);
  const PeerDoorbell& peer_doorbell() const { return peer_doorbell_; }
  ControlBlock* peer_control() const {
    return reinterpret_cast<ControlBlock*>(peer_doorbell_.control->data());
  }

  /// Handshake, as above: whether this process's secret lets it write to the peer's regions.
  void set_may_write(bool may_write) { may_write_ = may_write; }
  bool may_write() const { return may_write_; }
  /// What the peer is handed with the announcement of a region with the memory `*file`: that, or a
  /// descriptor of it for reading only, which `*made` then keeps, or -1 if it needs none.
  Status FileToHandOut(int* file, UniqueFd* made) const;

  /// Reads `count` announcements, waiting for them. A malformed one is `Unavailable` and counted.
  Status ReadAnnouncements(uint32_t count, const Deadline& deadline) EXCLUDES(mutex_);
  /// Reads the announcements that are there; never blocks. False if the peer closed, or has sent
  /// what makes no sense, which is counted.
  bool Drain() EXCLUDES(mutex_);
  /// Drains first if the key is unknown. False if it stays so.
  bool FindRegion(uint32_t key, PeerRegion* region) EXCLUDES(mutex_);
  /// Tells the peer of a region. A peer that does not make room by the deadline is cut off.
  void Announce(const RegionMessage& message, int fd, const Deadline& deadline);

  /// Records that the peer has taken its last action: breaks the queue pair at its next use and
  /// wakes threads that wait on its completion queues.
  void MarkPeerGone();
  /// Does that if the socket says so; the monitor will, too.
  void LookAtPeer() EXCLUDES(mutex_);
  /// This end takes no more part: breaks the peer's end.
  void CloseThisEnd();
  /// The part of it that needs no doorbell: requests that the peer begins from now on fail.
  void RefuseRequests();
  /// The mark of what the peer writes into this process's memory now; see WriteMark.
  uint64_t PeerWrites() const {
    return memory()->writes[1 - parts_.side].word.load(std::memory_order_acquire);
  }
  bool PeerClosed() const {
    return memory()->closed[1 - parts_.side].load(std::memory_order_acquire) != 0;
  }
  /// Whether the peer closed by itself or its process ended, rather than being cut off by us.
  bool PeerHungUp() const { return PeerClosed() && !cut_off_.load(std::memory_order_acquire); }

  /// Traffic of the queue pair, which alone adds; any thread may read.
  struct Tally {
    std::atomic<uint64_t> bytes_read{0};
    std::atomic<uint64_t> bytes_written{0};
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> writes{0};
  };
  Tally tally;

 private:
  Status TakeAnnouncement(Packet packet) REQUIRES(mutex_);
  Status AddRegion(const RegionMessage& message, const std::vector<UniqueFd>& fds) REQUIRES(mutex_);
  /// Counts it and ends the connection, which the monitor then notices.
  void Malformed(const Status& why) REQUIRES(mutex_);
  /// Ends the connection, though the peer may live.
  void CutOff();

  const Parts parts_;
  PeerDoorbell peer_doorbell_;
  bool may_write_ = true;
  /// Regions are announced while the peer's answer is still awaited, by then as to another process.
  std::atomic<bool> same_process_{false};
  std::atomic<bool> cut_off_{false};
  Mutex mutex_;
  std::map<uint32_t, PeerRegion> regions_ GUARDED_BY(mutex_);
  bool malformed_ GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::rdma
