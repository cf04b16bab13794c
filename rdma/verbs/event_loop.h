#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "rdma/unique_fd.h"
#include "rdma/verbs/adapter.h"
#include "rdma/verbs/connection.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// The thread of a device that takes what the connection manager and the adapter tell, and passes
/// it on to whom it concerns. It also sets the time of heartbeats. It never waits for anything
/// else.
///
/// Thread safety: all methods may be called from many threads at once.
class VerbsEventLoop {
 public:
  /// `adapter` outlives the loop. `logger` may be null.
  static Status Start(const Adapter* adapter, std::shared_ptr<Logger> logger,
                      std::unique_ptr<VerbsEventLoop>* loop);
  ~VerbsEventLoop();

  /// An id whose events go to `handler`, which outlives it.
  Status CreateId(CmHandler* handler, UniqueCmId* id);

  /// Tells the connection of the adapter's end.
  void Watch(VerbsConnection* connection) EXCLUDES(mutex_);
  void Unwatch(VerbsConnection* connection) EXCLUDES(mutex_);

  /// Whether anything may be sent through the connection manager: the port is active, and no
  /// request has failed just now as if it were not.
  bool LinkIsUp() const;
  /// A request has failed as those of soft-RoCE do when the link is down. The port's state follows
  /// a moment later.
  void SuspectLink();
  /// Keeps a connection whose end cannot be told to its peer until the link is up again.
  void Park(std::shared_ptr<VerbsConnection> connection) EXCLUDES(mutex_);

  /// Counts the periods of heartbeats: four in the time after which a peer is taken for dead.
  uint64_t heartbeat_period() const { return heartbeat_period_.load(std::memory_order_relaxed); }

  /// False while the port is down, for as long as the time after which a peer is taken for dead:
  /// what carries nothing is to outlive a link that comes back.
  bool HeartbeatsHaveSense() const {
    return link_given_up_.load(std::memory_order_relaxed) || LinkIsUp();
  }

  /// True after the adapter has failed as a whole: its completions will not come.
  bool adapter_failed() const { return adapter_failed_.load(std::memory_order_acquire); }

 private:
  struct DestroyChannel {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  };

  VerbsEventLoop(const Adapter* adapter, std::shared_ptr<Logger> logger,
                 std::unique_ptr<rdma_event_channel, DestroyChannel> channel, UniqueFd stop_fd);

  void Run();
  void TakeConnectionEvents();
  void TakeAdapterEvents();
  void HandleAdapterEvent(const ibv_async_event& event);
  void FailAll() EXCLUDES(mutex_);
  /// Begins the next period of heartbeats if its time has come; when to look again.
  int RemindOfHeartbeats() EXCLUDES(mutex_);
  void EndParked() EXCLUDES(mutex_);

  const Adapter* const adapter_;
  const std::shared_ptr<Logger> logger_;
  const std::unique_ptr<rdma_event_channel, DestroyChannel> channel_;
  const UniqueFd stop_fd_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> adapter_failed_{false};
  std::atomic<uint64_t> heartbeat_period_{0};
  std::atomic<bool> link_given_up_{false};
  std::atomic<std::chrono::steady_clock::rep> suspected_until_{0};

  // Used by the thread only.
  std::chrono::steady_clock::time_point next_period_;
  /// When the port went down; the clock's beginning while it is up.
  std::chrono::steady_clock::time_point port_down_since_{};

  Mutex mutex_;
  std::set<VerbsConnection*> watched_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<VerbsConnection>> parked_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace nacre::rdma
