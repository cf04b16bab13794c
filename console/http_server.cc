#include "console/http_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace nacre::console {
namespace {

/// Within this time a connection that is silent notices that the server ends.
constexpr std::chrono::milliseconds kLook{200};

/// Waits for `events`. False if they did not come in time.
bool AwaitEvents(socket_t socket, short events, const Deadline& deadline) {
  for (;;) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
    pollfd look{.fd = socket, .events = events, .revents = 0};
    const int found = ::poll(&look, 1, static_cast<int>(rest.count()));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

/// One request, and its answer.
class RequestStream : public httplib::Stream {
 public:
  RequestStream(socket_t socket, Clock* clock)
      : socket_(socket),
        clock_(clock),
        read_by_(Deadline::After(clock, HttpServer::kRequestTime)),
        written_by_(read_by_) {}

  bool is_readable() const override {
    return begin_ < end_ || AwaitEvents(socket_, POLLIN, read_by_);
  }
  bool is_writable() const override { return AwaitEvents(socket_, POLLOUT, WriteDeadline()); }

  ssize_t read(char* bytes, size_t size) override {
    if (begin_ == end_) {
      if (taken_ >= HttpServer::kRequestBytesMax || !AwaitEvents(socket_, POLLIN, read_by_)) {
        return -1;
      }
      const size_t size_max = std::min(buffer_.size(), HttpServer::kRequestBytesMax - taken_);
      const ssize_t got = ::recv(socket_, buffer_.data(), size_max, 0);
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      taken_ += end_;
    }
    const size_t some = std::min(size, end_ - begin_);
    std::memcpy(bytes, buffer_.data() + begin_, some);
    begin_ += some;
    return static_cast<ssize_t>(some);
  }
  ssize_t write(const char* bytes, size_t size) override {
    if (!is_writable()) return -1;
    return ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    Name(&::getpeername, &ip, &port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    Name(&::getsockname, &ip, &port);
  }
  socket_t socket() const override { return socket_; }

 private:
  /// Counts from the first write on, since an answer may take long to be made.
  const Deadline& WriteDeadline() const {
    if (!writing_) written_by_ = Deadline::After(clock_, HttpServer::kAnswerTime);
    writing_ = true;
    return written_by_;
  }
  template <typename Get>
  void Name(Get get, std::string* ip, int* port) const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (get(socket_, any, &size) != 0 ||
        ::getnameinfo(any, size, host.data(), host.size(), service.data(), service.size(),
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      return;
    }
    *ip = host.data();
    *port = std::atoi(service.data());
  }

  const socket_t socket_;
  Clock* const clock_;
  const Deadline read_by_;
  mutable Deadline written_by_;
  mutable bool writing_ = false;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t taken_ = 0;  ///< Bytes of the request so far.
};

}  // namespace

HttpServer::HttpServer(Clock* clock) : clock_(clock) {
  // A read that found this much has been refused by the stream already.
  set_payload_max_length(kRequestBytesMax);
  new_task_queue = [] { return new ConnectionQueue(kThreads, kWaitingMax); };
  set_socket_options([](socket_t socket) {
    // Not SO_REUSEPORT: a second console at the same port is a mistake.
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Serve(socket);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return true;
}

bool HttpServer::AwaitRequest(socket_t socket) const {
  const Deadline silence = Deadline::After(clock_, kSilence);
  while (svr_sock_ != INVALID_SOCKET && !silence.Expired()) {
    if (AwaitEvents(socket, POLLIN, Deadline::After(clock_, kLook))) return true;
  }
  return false;
}

void HttpServer::Serve(socket_t socket) {
  while (AwaitRequest(socket)) {
    RequestStream stream(socket, clock_);
    bool closed = false;
    if (!process_request(stream, /*close_connection=*/false, closed, nullptr) || closed) return;
  }
}

ConnectionQueue::ConnectionQueue(size_t threads, size_t waiting_max) : waiting_max_(waiting_max) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back("nacre-http", [this] { Work(); });
  }
}

void ConnectionQueue::enqueue(std::function<void()> task) {
  MutexLock lock(&mutex_);
  while (tasks_.size() >= waiting_max_) changed_.Wait();
  tasks_.push_back(std::move(task));
  changed_.SignalAll();
}

void ConnectionQueue::shutdown() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  for (Thread& thread : threads_) thread.Join();
}

void ConnectionQueue::Work() {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !ending_) changed_.Wait();
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.SignalAll();
    }
    task();
  }
}

}  // namespace nacre::console
