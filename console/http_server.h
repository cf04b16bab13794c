#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::console {

/// httplib's server with bounds that it lacks: how many bytes a request has, headers included, how
/// long it takes to come, and how many connections wait for a thread. Its options for these
/// (set_read_timeout, set_payload_max_length, set_keep_alive_timeout) count for nothing here.
///
/// Thread safety: as httplib::Server, of which `stop` may be called from any thread.
class HttpServer : public httplib::Server {
 public:
  static constexpr size_t kThreads = 16;
  /// Connections that wait for a thread. Others wait in the system's queue.
  static constexpr size_t kWaitingMax = 64;
  static constexpr size_t kRequestBytesMax = 32 << 10;
  /// For all of a request to come, and for all of an answer to go.
  static constexpr std::chrono::seconds kRequestTime{10};
  static constexpr std::chrono::seconds kAnswerTime{30};
  /// How long a connection may be silent between two requests.
  static constexpr std::chrono::seconds kSilence{5};

  /// `clock` outlives this.
  explicit HttpServer(Clock* clock);

 private:
  bool process_and_close_socket(socket_t socket) override;
  void Serve(socket_t socket);
  bool AwaitRequest(socket_t socket) const;

  Clock* const clock_;
};

/// A fixed number of threads that serve connections.
///
/// Thread safety: all methods may be called from many threads at once.
class ConnectionQueue : public httplib::TaskQueue {
 public:
  ConnectionQueue(size_t threads, size_t waiting_max);
  /// Waits while too many wait already.
  void enqueue(std::function<void()> task) override EXCLUDES(mutex_);
  /// Waits until all that were accepted have been served.
  void shutdown() override EXCLUDES(mutex_);

 private:
  void Work() EXCLUDES(mutex_);

  const size_t waiting_max_;
  Mutex mutex_;
  CondVar changed_{&mutex_};
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace nacre::console
