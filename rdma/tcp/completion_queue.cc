#include "rdma/tcp/completion_queue.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "rdma/tcp/connection.h"
#include "rdma/tcp/queue_pair.h"
#include "rdma/wait.h"

namespace nacre::rdma {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

TcpCompletionQueue::TcpCompletionQueue(int capacity, UniqueFd event_fd, nanoseconds spin)
    : capacity_(capacity),
      event_fd_(std::move(event_fd)),
      spin_(spin),
      mask_(std::bit_ceil(static_cast<uint64_t>(capacity)) - 1),
      ring_(mask_ + 1) {}

TcpCompletionQueue::~TcpCompletionQueue() {
  assert(connections_.empty() && "a completion queue outlives its queue pairs");
}

void TcpCompletionQueue::Attach(TcpConnection* connection) {
  connections_.push_back(connection);
  if (connections_.size() != kServedMax + 1) return;
  // The I/O threads serve them from now on.
  for (TcpConnection* each : connections_) each->GiveBack();
}

void TcpCompletionQueue::Detach(TcpConnection* connection, const QueuePair* queue_pair) {
  std::erase(connections_, connection);
  MutexLock lock(&mutex_);
  uint64_t kept = tail_;
  for (uint64_t i = tail_; i != head_; i++) {
    if (ring_[i & mask_].completion.queue_pair == queue_pair) continue;
    ring_[kept++ & mask_] = ring_[i & mask_];
  }
  Unpromise(head_ - kept);
  head_ = kept;
  ready_.store(head_ - tail_, std::memory_order_relaxed);
}

void TcpCompletionQueue::Push(const Completion& completion, uint64_t send_number) {
  MutexLock lock(&mutex_);
  ring_[head_++ & mask_] = {completion, send_number};
  ready_.store(head_ - tail_, std::memory_order_relaxed);
  if (sleeping_) WakeSleeper();
}

void TcpCompletionQueue::WakeSleeper() {
  sleeping_ = false;
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd_.get(), &token, sizeof(token));
}

void TcpCompletionQueue::Wake() {
  MutexLock lock(&mutex_);
  wake_ = true;
  if (sleeping_) WakeSleeper();
}

int TcpCompletionQueue::Poll(Completion* completions, int n) {
  if (ready_.load(std::memory_order_relaxed) == 0) {
    if (!serves()) return 0;
    ServeConnections();
    if (ready_.load(std::memory_order_relaxed) == 0) return 0;
  }
  int taken = 0;
  MutexLock lock(&mutex_);
  while (taken < n && tail_ != head_) {
    const Entry& entry = ring_[tail_++ & mask_];
    completions[taken++] = entry.completion;
    if (entry.send_number != 0) {
      static_cast<TcpQueuePair*>(entry.completion.queue_pair)->Retire(entry.send_number);
    }
  }
  ready_.store(head_ - tail_, std::memory_order_relaxed);
  Unpromise(static_cast<uint64_t>(taken));
  return taken;
}

void TcpCompletionQueue::ServeConnections() {
  for (TcpConnection* connection : connections_) connection->ServeAsOwner();
}

bool TcpCompletionQueue::TakeReasonOrSleep() {
  MutexLock lock(&mutex_);
  if (head_ == tail_ && !wake_) {
    sleeping_ = true;
    return false;
  }
  sleeping_ = false;
  wake_ = false;
  return true;
}

Status TcpCompletionQueue::Wait(nanoseconds timeout) {
  // If there is no time to sleep, check here for what has arrived; otherwise sleep would end at
  // once.
  if (timeout <= nanoseconds(0) && serves()) ServeConnections();
  const auto start = steady_clock::now();
  while (!TakeReasonOrSleep()) {
    const nanoseconds waited = steady_clock::now() - start;
    if (waited >= timeout) {
      // What came at the last moment counts; else this takes the announcement back.
      MutexLock lock(&mutex_);
      sleeping_ = false;
      if (head_ == tail_ && !wake_) return Status::TimedOut("no completion");
      wake_ = false;
      return Status::OK();
    }
    Sleep(timeout - waited);
  }
  return Status::OK();
}

void TcpCompletionQueue::Sleep(nanoseconds timeout) {
  std::array<pollfd, kServedMax + 1> entries;
  std::array<TcpConnection*, kServedMax + 1> owned;
  nfds_t count = 1;
  entries[0] = {.fd = event_fd_.get(), .events = POLLIN, .revents = 0};
  if (serves()) {
    for (TcpConnection* connection : connections_) {
      pollfd& entry = entries[count];
      entry.revents = 0;
      if (!connection->BeginOwnersWait(&entry.fd, &entry.events)) continue;
      owned[count++] = connection;
    }
  }
  const auto look = [&](nanoseconds limit) { return WaitForAny(entries.data(), count, limit) > 0; };
  if (!spin_.Until([&] { return look(nanoseconds(0)); }, timeout)) look(timeout);
  {
    MutexLock lock(&mutex_);
    sleeping_ = false;  // Awake: what this thread pushes itself needs no bell.
  }
  for (nfds_t i = 1; i < count; i++) {
    owned[i]->EndOwnersWait();
    if (entries[i].revents != 0) owned[i]->ServeAsOwner();
  }
  if ((entries[0].revents & POLLIN) != 0) {
    uint64_t tokens;
    [[maybe_unused]] const ssize_t size = read(event_fd_.get(), &tokens, sizeof(tokens));
  }
}

}  // namespace nacre::rdma
