#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "rdma/verbs/completion_signal.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// Destroying an id waits until its events have been acknowledged: never under a lock that a
/// CmHandler takes.
struct DestroyCmId {
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using UniqueCmId = std::unique_ptr<rdma_cm_id, DestroyCmId>;

/// The target of an id's context pointer.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  /// Runs in the device's event thread before the event is acknowledged, so that neither the id nor
  /// this object goes away meanwhile.
  virtual void OnEvent(const rdma_cm_event& event) = 0;
};

/// An event, copied.
struct CmNotice {
  rdma_cm_event_type type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
  int status = 0;
  std::string private_data{};
};

/// What a queue pair, the handshake before it and the device's event thread share: the connection
/// manager's id, and whether the connection still stands.
///
/// Thread safety: by one thread, save what says otherwise.
class VerbsConnection final : public CmHandler {
 public:
  enum class Fate : uint8_t {
    kStands,
    kPeerGone,  ///< The peer disconnected, died, or cannot be reached; or the device is gone.
    kFailed,    ///< The adapter has put the queue pair into its error state.
  };

  explicit VerbsConnection(std::string peer) : peer_(std::move(peer)) {}
  ~VerbsConnection() override;

  const std::string& peer() const { return peer_; }

  /// Takes the place of an id before it, whose events are dropped. `id`'s context must be this.
  void Adopt(UniqueCmId id) EXCLUDES(mutex_);
  rdma_cm_id* id() const { return id_.get(); }

  void OnEvent(const rdma_cm_event& event) override EXCLUDES(mutex_);
  /// Waits for an event of the handshake. `*notice` is the wanted one, or one that ends all
  /// expectations (rejected, unreachable, an error). `TimedOut` at the deadline.
  Status Await(rdma_cm_event_type wanted, const Deadline& deadline, CmNotice* notice)
      EXCLUDES(mutex_);

  /// Sets whom to signal when the connection ends. Must precede all posts.
  void SetSignals(std::shared_ptr<CompletionSignal> send, std::shared_ptr<CompletionSignal> receive)
      EXCLUDES(mutex_);
  /// Any thread may call this; the first one's fate stays.
  void End(Fate fate) EXCLUDES(mutex_);
  /// Acquire: pairs with End's release.
  Fate fate() const { return fate_.load(std::memory_order_acquire); }
  /// The peer disconnected, not in answer to this end.
  bool peer_hung_up() const { return peer_hung_up_.load(std::memory_order_acquire); }
  /// Makes the device's event thread call RemindOfHeartbeat once a period.
  void WantHeartbeats() { wants_heartbeats_.store(true, std::memory_order_relaxed); }
  /// Has the owner of the send queue check whether a heartbeat is due. Any thread may call this.
  void RemindOfHeartbeat() EXCLUDES(mutex_);
  /// Any thread: a message arrived on a queue pair whose connection is not known to be established.
  void NotifyEstablished() EXCLUDES(mutex_);
  /// Tells the peer, once; also answers it if it told first.
  void Disconnect();

  /// Traffic of the queue pair, which alone adds; any thread may read.
  struct Tally {
    std::atomic<uint64_t> bytes_read{0};
    std::atomic<uint64_t> bytes_written{0};
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> writes{0};
  };
  Tally tally;

 private:
  const std::string peer_;
  UniqueCmId id_;
  std::atomic<bool> disconnected_{false};

  Mutex mutex_;
  CondVar changed_{&mutex_};
  std::deque<CmNotice> notices_ GUARDED_BY(mutex_);
  rdma_cm_id* live_id_ GUARDED_BY(mutex_) = nullptr;  ///< id_, for other threads.
  std::shared_ptr<CompletionSignal> send_signal_ GUARDED_BY(mutex_);
  std::shared_ptr<CompletionSignal> receive_signal_ GUARDED_BY(mutex_);
  std::atomic<Fate> fate_{Fate::kStands};
  std::atomic<bool> peer_hung_up_{false};
  std::atomic<bool> wants_heartbeats_{false};
};

}  // namespace nacre::rdma
