#include "rdma/tcp/io_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rdma/memory.h"
#include "rdma/tcp/connection.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Longer than the system's own, as a rule: a timer that ends before costs several times as much.
constexpr milliseconds kTickPeriod{5};
/// A peer's silence is measured in so many periods.
constexpr int kSweepsPerTimeout = 8;

}  // namespace

IoThread::IoThread(milliseconds timeout, std::chrono::nanoseconds spin, UniqueFd epoll_fd,
                   UniqueFd kick_fd)
    : sweep_period_(std::max(milliseconds(1), timeout / kSweepsPerTimeout)),
      epoll_fd_(std::move(epoll_fd)),
      kick_fd_(std::move(kick_fd)),
      spin_(spin),
      thread_([this] { Run(); }) {}

Status IoThread::Start(milliseconds timeout, std::chrono::nanoseconds spin,
                       std::unique_ptr<IoThread>* thread) {
  UniqueFd epoll_fd(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd kick_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (!epoll_fd.valid() || !kick_fd.valid() ||
      epoll_ctl(epoll_fd.get(), EPOLL_CTL_ADD, kick_fd.get(), &event) != 0) {
    return SystemError("start an I/O thread");
  }
  thread->reset(new IoThread(timeout, spin, std::move(epoll_fd), std::move(kick_fd)));
  return Status::OK();
}

IoThread::~IoThread() {
  stopping_.store(true);
  Kick();
  thread_.join();
}

void IoThread::Kick() {
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(kick_fd_.get(), &token, sizeof(token));
}

Status IoThread::Add(std::shared_ptr<TcpConnection> connection) {
  TcpConnection* const key = connection.get();
  MutexLock lock(&mutex_);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = key}};
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, key->socket(), &event) != 0) {
    return SystemError("epoll_ctl");
  }
  connections_.emplace(key, std::move(connection));
  return Status::OK();
}

void IoThread::SetInterest(TcpConnection* connection, uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = connection}};
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_MOD, connection->socket(), &event);
}

void IoThread::Unwatch(TcpConnection* connection) {
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, connection->socket(), nullptr);
}

void IoThread::WatchOwned(TcpConnection* connection) {
  bool first;
  {
    MutexLock lock(&mutex_);
    first = owned_.empty();
    if (std::find(owned_.begin(), owned_.end(), connection) == owned_.end()) {
      owned_.push_back(connection);
    }
  }
  if (first) Kick();  // It may be asleep for long.
}

void IoThread::Retire(TcpConnection* connection) {
  {
    MutexLock lock(&mutex_);
    if (!connections_.contains(connection)) return;
    retired_.push_back(connection);
  }
  Kick();
}

milliseconds IoThread::NextTimeout() {
  MutexLock lock(&mutex_);
  return owned_.empty() ? sweep_period_ : kTickPeriod;
}

void IoThread::Run() {
  std::array<epoll_event, 64> events;
  auto next_tick = steady_clock::now();
  auto next_sweep = next_tick + sweep_period_;
  while (!stopping_.load()) {
    int count = 0;
    const auto look = [&](milliseconds limit) {
      count = epoll_wait(epoll_fd_.get(), events.data(), events.size(),
                         static_cast<int>(limit.count()));
      return count > 0;
    };
    const milliseconds limit = NextTimeout();
    if (!spin_.Until([&] { return look(milliseconds(0)); }, limit)) look(limit);
    for (int i = 0; i < count; i++) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.ptr != nullptr) {
        static_cast<TcpConnection*>(event.data.ptr)->TakeEvents(event.events);
      } else {
        uint64_t tokens;
        [[maybe_unused]] const ssize_t size = read(kick_fd_.get(), &tokens, sizeof(tokens));
      }
    }
    const auto now = steady_clock::now();
    if (now >= next_tick) {
      Tick();
      next_tick = now + kTickPeriod;
    }
    if (now >= next_sweep) {
      Sweep();
      next_sweep = now + sweep_period_;
    }
    DropFinished();
  }
}

void IoThread::Tick() {
  std::vector<TcpConnection*> owned;
  {
    MutexLock lock(&mutex_);
    owned = owned_;
  }
  if (owned.empty()) return;
  for (TcpConnection* connection : owned) connection->Tick();
  // The state is read under the lock: an owner of a connection sets it before WatchOwned takes it.
  MutexLock lock(&mutex_);
  std::erase_if(owned_, [](const TcpConnection* connection) { return !connection->owned(); });
}

void IoThread::Sweep() {
  std::vector<TcpConnection*> all;
  {
    MutexLock lock(&mutex_);
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(key);
  }
  for (TcpConnection* connection : all) connection->Sweep(kSweepsPerTimeout);
}

void IoThread::DropFinished() {
  std::vector<TcpConnection*> finished;
  {
    MutexLock lock(&mutex_);
    if (retired_.empty()) return;
    finished = retired_;
  }
  std::erase_if(finished, [](TcpConnection* connection) { return !connection->finished(); });
  // A thread that gave one up may hold it, and with it the socket, for a moment yet.
  for (TcpConnection* connection : finished) Unwatch(connection);
  std::vector<std::shared_ptr<TcpConnection>> dropped;  // Their sockets close outside the lock.
  MutexLock lock(&mutex_);
  for (TcpConnection* connection : finished) {
    std::erase(retired_, connection);
    std::erase(owned_, connection);
    const auto found = connections_.find(connection);
    dropped.push_back(std::move(found->second));
    connections_.erase(found);
  }
}

}  // namespace nacre::rdma
