// What the tcp backend costs, over loopback, beside sockets that do the same bare: a ping-pong of
// as many bytes for reads, a stream into a buffer for writes. The other side is a process of its
// own.

#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

constexpr size_t kNearBytes = 16 << 20;
constexpr std::chrono::seconds kPatience{10};

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void Check(bool good) {
  if (!good) throw std::runtime_error(std::strerror(errno));
}

/// A child that does `work`, given one end of a socket pair, until that is closed.
class Child {
 public:
  explicit Child(const std::function<void(int)>& work) {
    int sockets[2];
    Check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    process_ = fork();
    if (process_ == 0) {
      close(sockets[0]);
      work(sockets[1]);
      char end;
      [[maybe_unused]] const ssize_t size = read(sockets[1], &end, 1);
      _exit(0);
    }
    close(sockets[1]);
    socket_ = UniqueFd(sockets[0]);
  }
  ~Child() {
    socket_.Reset();
    waitpid(process_, nullptr, 0);
  }

  template <typename T>
  T Receive() const {
    T value;
    Check(recv(socket_.get(), &value, sizeof(value), MSG_WAITALL) == sizeof(value));
    return value;
  }

 private:
  pid_t process_;
  UniqueFd socket_;
};

template <typename T>
void SendTo(int socket, const T& value) {
  Check(send(socket, &value, sizeof(value), 0) == sizeof(value));
}

bool ReceiveAll(int socket, char* bytes, size_t size) {
  return recv(socket, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

/// A bare socket, connected to a child that serves it by `work`.
class BareLink {
 public:
  explicit BareLink(const std::function<void(int)>& work)
      : child_([&](int parent) {
          const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
          sockaddr_in address = Loopback(0);
          socklen_t size = sizeof(address);
          auto* const generic = reinterpret_cast<sockaddr*>(&address);
          Check(bind(listener.get(), generic, size) == 0 && listen(listener.get(), 1) == 0 &&
                getsockname(listener.get(), generic, &size) == 0);
          SendTo(parent, address.sin_port);
          const UniqueFd accepted(accept(listener.get(), nullptr, nullptr));
          SetUp(accepted.get());
          work(accepted.get());
        }),
        socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = Loopback(child_.Receive<in_port_t>());
    Check(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
    SetUp(socket_.get());
  }
  ~BareLink() { shutdown(socket_.get(), SHUT_RDWR); }

  int get() const { return socket_.get(); }

 private:
  static sockaddr_in Loopback(in_port_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static void SetUp(int socket) {
    const int one = 1;
    Check(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
  }

  Child child_;
  UniqueFd socket_;
};

/// A device connected to that of a child.
class TcpLink {
 public:
  explicit TcpLink(size_t far_bytes)
      : child_([far_bytes](int parent) { Serve(parent, far_bytes); }) {
    const auto address = child_.Receive<std::array<char, 64>>();
    far_ = child_.Receive<RemoteKey>();
    Check(OpenDevice("tcp", {}, Clock::System(), &device_));
    Check(device_->CreateCompletionQueue(1024, &queue_));
    Check(device_->AllocateRegion(kNearBytes, Access::kRemoteAll, &region_));
    std::memset(region_->data(), 1, region_->size());
    std::string reply;
    Check(device_->Connect(address.data(), "", {}, queue_.get(), queue_.get(),
                           Deadline::After(Clock::System(), kPatience), &reply, &pair_));
  }

  QueuePair* pair() const { return pair_.get(); }
  LocalBuffer Near(size_t offset, size_t size) const {
    return {region_->data() + offset, static_cast<uint32_t>(size), region_.get()};
  }
  RemoteBuffer Far(size_t offset) const { return {far_.address + offset, far_.key}; }
  /// Busy-polls until `count` requests are done at least; returns how many are.
  int Finish(int count) const {
    std::array<Completion, 64> completions;
    int done = 0;
    while (done < count) {
      const int taken = queue_->Poll(completions.data(), completions.size());
      for (int i = 0; i < taken; i++) {
        if (completions[static_cast<size_t>(i)].code != CompletionCode::kSuccess) {
          throw std::runtime_error("failed");
        }
      }
      done += taken;
    }
    return done;
  }
  void Wait() const { Check(queue_->Wait(kPatience)); }

 private:
  static void Serve(int parent, size_t bytes) {
    std::unique_ptr<Device> device;
    std::unique_ptr<CompletionQueue> queue;
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<Listener> listener;
    Check(OpenDevice("tcp", {}, Clock::System(), &device));
    Check(device->CreateCompletionQueue(1024, &queue));
    Check(device->AllocateRegion(bytes, Access::kRemoteAll, &region));
    std::memset(region->data(), 1, region->size());
    Check(device->Listen("tcp:127.0.0.1:0", &listener));
    std::array<char, 64> address{};
    listener->address().copy(address.data(), address.size() - 1);
    SendTo(parent, address);
    SendTo(parent, region->remote_key());
    std::unique_ptr<IncomingConnection> incoming;
    std::unique_ptr<QueuePair> pair;
    Check(listener->Accept(kPatience, &incoming));
    Check(incoming->Accept(queue.get(), queue.get(), "", &pair));
    char end;
    [[maybe_unused]] const ssize_t size = read(parent, &end, 1);
    _exit(0);
  }

  Child child_;
  RemoteKey far_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> pair_;
};

constexpr size_t kFarBytes = 256 << 20;
constexpr size_t kRequestBytes = 32;
constexpr size_t kHeaderBytes = 32;

/// Both sides block: what a program does that knows no better.
void BM_TcpBarePingPong(benchmark::State& state) {
  const size_t reply_bytes = static_cast<size_t>(state.range(0)) + kHeaderBytes;
  const BareLink link([&](int socket) {
    std::vector<char> reply(reply_bytes);
    char request[kRequestBytes];
    while (ReceiveAll(socket, request, sizeof(request))) {
      Check(send(socket, reply.data(), reply.size(), MSG_NOSIGNAL) > 0);
    }
  });
  char request[kRequestBytes] = {};
  std::vector<char> reply(reply_bytes);
  for (auto _ : state) {
    Check(send(link.get(), request, sizeof(request), MSG_NOSIGNAL) > 0);
    Check(ReceiveAll(link.get(), reply.data(), reply.size()));
  }
}
BENCHMARK(BM_TcpBarePingPong)->Arg(512)->Arg(4096)->UseRealTime();

void BM_TcpRead(benchmark::State& state) {
  const TcpLink link(kFarBytes);
  const auto size = static_cast<size_t>(state.range(0));
  Random random(42);
  for (auto _ : state) {
    Check(link.pair()->PostRead(1, link.Near(0, size), link.Far(random.Uniform(kFarBytes / 2)),
                                kSignaled));
    link.Finish(1);
  }
}
BENCHMARK(BM_TcpRead)->Arg(512)->Arg(4096)->UseRealTime();

/// Reads as BM_TcpRead, asleep until the reply comes.
void BM_TcpReadWaiting(benchmark::State& state) {
  const TcpLink link(kFarBytes);
  const auto size = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    Check(link.pair()->PostRead(1, link.Near(0, size), link.Far(0), kSignaled));
    link.Wait();
    link.Finish(1);
  }
}
BENCHMARK(BM_TcpReadWaiting)->Arg(512)->UseRealTime();

/// 32 reads of 512 B in one batch.
void BM_TcpReadBatch(benchmark::State& state) {
  constexpr size_t kBatch = 32;
  constexpr size_t kBytes = 512;
  const TcpLink link(kFarBytes);
  Random random(42);
  for (auto _ : state) {
    for (size_t i = 0; i < kBatch; i++) {
      const int more = i + 1 < kBatch ? int{kMore} : 0;
      Check(link.pair()->PostRead(i, link.Near(i * kBytes, kBytes),
                                  link.Far(random.Uniform(kFarBytes / 2)),
                                  static_cast<uint8_t>(kSignaled | more)));
    }
    link.Finish(kBatch);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
}
BENCHMARK(BM_TcpReadBatch)->UseRealTime();

/// Requests of one size, 16 outstanding.
template <typename Post>
void Stream(benchmark::State& state, const TcpLink& link, Post post) {
  constexpr int kDepth = 16;
  int outstanding = 0;
  size_t next = 0;
  for (auto _ : state) {
    if (outstanding == kDepth) outstanding -= link.Finish(1);
    post(next++);
    outstanding++;
  }
  link.Finish(outstanding);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_TcpWriteStream(benchmark::State& state) {
  const TcpLink link(kFarBytes);
  const auto size = static_cast<size_t>(state.range(0));
  Stream(state, link, [&](size_t i) {
    Check(link.pair()->PostWrite(i, link.Near(i * size % kNearBytes, size),
                                 link.Far(i * size % kFarBytes), kSignaled));
  });
}
BENCHMARK(BM_TcpWriteStream)->Arg(64)->Arg(4 << 10)->Arg(64 << 10)->Arg(256 << 10)->UseRealTime();

void BM_TcpReadStream(benchmark::State& state) {
  const TcpLink link(kFarBytes);
  const auto size = static_cast<size_t>(state.range(0));
  Stream(state, link, [&](size_t i) {
    Check(link.pair()->PostRead(i, link.Near(i * size % kNearBytes, size),
                                link.Far(i * size % kFarBytes), kSignaled));
  });
}
BENCHMARK(BM_TcpReadStream)->Arg(4 << 10)->Arg(64 << 10)->Arg(256 << 10)->UseRealTime();

/// What iperf3 measures: 128 KiB at a time, read into one buffer and forgotten.
void BM_TcpBareStream(benchmark::State& state) {
  constexpr size_t kBytes = 128 << 10;
  const BareLink link([](int socket) {
    std::vector<char> buffer(kBytes);
    while (recv(socket, buffer.data(), buffer.size(), 0) > 0) {
    }
  });
  const std::vector<char> bytes(kBytes, 1);
  for (auto _ : state) {
    Check(send(link.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(kBytes));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}
BENCHMARK(BM_TcpBareStream)->UseRealTime();

}  // namespace

}  // namespace nacre::rdma
