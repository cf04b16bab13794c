#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "server/cluster/cluster.h"
#include "server/cluster/server_message.pb.h"
#include "server/loop/worker_pool.h"
#include "util/mutex.h"

namespace nacre::server {

/// Sends the messages of channels to the other servers of a cluster: to each in the order in which
/// they were published, many at a time. As channels have it, a message reaches a server at most
/// once: those are dropped that one has not taken in a second, or is too slow for.
///
/// Thread safety: all methods may be called from many threads at once.
class Broadcast {
 public:
  /// Both outlive it. `workers` wait for the answers, one for each other server at most.
  Broadcast(Cluster* cluster, WorkerPool* workers) : cluster_(cluster), workers_(workers) {}

  void Publish(std::string_view channel, std::string_view message) EXCLUDES(mutex_);
  /// Sends nothing more, and returns once nothing is under way.
  void Close() EXCLUDES(mutex_);

 private:
  struct Outbox {
    wire::ServerRequest waiting;
    size_t bytes = 0;      ///< What the messages take that wait.
    bool sending = false;  ///< A worker sends what is in it, until it is empty.
    bool drops = false;    ///< It was full, which is said once.
  };

  void Send(int64_t server) EXCLUDES(mutex_);
  bool Take(int64_t server, wire::ServerRequest* request) EXCLUDES(mutex_);
  void Deliver(int64_t server, const wire::ServerRequest& request) const;

  Cluster* const cluster_;
  WorkerPool* const workers_;
  Mutex mutex_;
  CondVar sent_{&mutex_};
  bool closed_ GUARDED_BY(mutex_) = false;
  std::map<int64_t, Outbox> outboxes_ GUARDED_BY(mutex_);  ///< By server, while it has any.
};

}  // namespace nacre::server
