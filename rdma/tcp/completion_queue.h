#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "rdma/tcp/polite_spin.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "util/mutex.h"

namespace nacre::rdma {

class TcpConnection;
class TcpQueuePair;

/// Completions come from the threads that serve the sockets: the device's I/O threads or, while it
/// waits for replies, the thread that uses the queue, in Poll and Wait, so that a reply costs no
/// hand-over between threads. The latter happens only while the queue has few connections: a queue
/// of many would have to ask each of them.
class TcpCompletionQueue final : public CompletionQueue {
 public:
  /// `spin`: how long a Wait may spin before it sleeps.
  TcpCompletionQueue(int capacity, UniqueFd event_fd, std::chrono::nanoseconds spin);
  ~TcpCompletionQueue() override;

  int Poll(Completion* completions, int n) override EXCLUDES(mutex_);
  Status Wait(std::chrono::nanoseconds timeout) override EXCLUDES(mutex_);
  void Wake() override EXCLUDES(mutex_);
  bool waits_awake() const override { return true; }

  /// Called by the thread that uses the queue.
  void Attach(TcpConnection* connection);
  /// Detaches the queue pair and removes its completions. Nothing may push more of them.
  void Detach(TcpConnection* connection, const QueuePair* queue_pair) EXCLUDES(mutex_);

  /// Whether one more completion fits beside those that wait and those promised to requests.
  bool HasRoom() const { return used_.load(std::memory_order_relaxed) < capacity_; }
  void Promise() { used_.fetch_add(1, std::memory_order_relaxed); }
  /// Takes back promises for requests that complete without being reported.
  void Unpromise(uint64_t count) {
    used_.fetch_sub(static_cast<int64_t>(count), std::memory_order_relaxed);
  }
  /// What was promised. `send_number`: of a send-side request, counted from 1, to free its place
  /// when polled; 0 for a receive. Any thread.
  void Push(const Completion& completion, uint64_t send_number) EXCLUDES(mutex_);

 private:
  struct Entry {
    Completion completion;
    uint64_t send_number = 0;
  };

  bool serves() const { return !connections_.empty() && connections_.size() <= kServedMax; }
  void ServeConnections();
  /// True if a Poll may find something or Wake was called; consumes the Wake. If not, announces
  /// sleep.
  bool TakeReasonOrSleep() EXCLUDES(mutex_);
  void WakeSleeper() REQUIRES(mutex_);
  /// Spins, then sleeps until there may be a reason, serving connections if it may.
  void Sleep(std::chrono::nanoseconds timeout);

  static constexpr size_t kServedMax = 8;

  const int64_t capacity_;
  const UniqueFd event_fd_;
  std::atomic<int64_t> used_{0};  ///< Completions that wait or are promised; a mere count.
  /// Entries in the ring. Relaxed where it is only looked at: taking them is under the mutex.
  std::atomic<uint64_t> ready_{0};
  std::vector<TcpConnection*> connections_;
  PoliteSpin spin_;

  Mutex mutex_;
  const uint64_t mask_;
  std::vector<Entry> ring_ GUARDED_BY(mutex_);
  uint64_t head_ GUARDED_BY(mutex_) = 0;  ///< Pushed so far.
  uint64_t tail_ GUARDED_BY(mutex_) = 0;  ///< Polled so far.
  bool wake_ GUARDED_BY(mutex_) = false;
  bool sleeping_ GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::rdma
