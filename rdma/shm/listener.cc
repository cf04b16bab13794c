#include "rdma/shm/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "rdma/shm/control.h"
#include "rdma/shm/device.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxGreetings = 128;
constexpr nanoseconds kGreetingTimeout = std::chrono::seconds(2);
constexpr uint32_t kMaxRingSlots = 1 << 15;
constexpr nanoseconds kAnswerTimeout = std::chrono::milliseconds(100);

void Refuse(ShmDevice* device, int socket, MessageType type, const std::string& reason) {
  Answer answer;
  answer.header.type = type;
  answer.private_size = static_cast<uint32_t>(std::min(reason.size(), Device::kMaxReasonBytes));
  reason.copy(answer.private_data, answer.private_size);
  // Whether or not it arrives, the connection ends.
  SendBy(socket, Deadline::After(device->clock(), kAnswerTimeout), &answer, sizeof(answer), {})
      .IgnoreError();
}

bool IsSound(const Hello& hello, size_t fds) {
  return hello.header.type == MessageType::kHello && fds == 3 &&
         hello.private_size <= Device::kMaxPrivateData && std::has_single_bit(hello.ring_slots) &&
         hello.ring_slots <= kMaxRingSlots && hello.receive_depth <= hello.ring_slots &&
         hello.send_depth >= 1 && hello.send_depth <= kMaxRingSlots &&
         hello.regions <= ControlBlock::kRegionSlots;
}

class ShmIncomingConnection final : public IncomingConnection {
 public:
  ShmIncomingConnection(ShmDevice* device, UniqueFd socket, const Hello& hello,
                        std::vector<UniqueFd> fds)
      : device_(device),
        socket_(std::move(socket)),
        hello_(hello),
        fds_(std::move(fds)),
        private_data_(hello.private_data, hello.private_size) {}
  ~ShmIncomingConnection() override { Reject("refused"); }

  const std::string& private_data() const override { return private_data_; }
  QueueDepths depths() const override {
    return {.send = static_cast<int>(hello_.send_depth),
            .receive = static_cast<int>(hello_.receive_depth)};
  }

  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override {
    if (!socket_.valid()) return Status::InvalidArgument("the connection was answered before");
    // A second descriptor, so that a failure can still be told to the other side.
    UniqueFd copy(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return SystemError("dup");
    Status status = device_->Accept(
        std::move(copy), hello_, std::move(fds_), static_cast<ShmCompletionQueue*>(send_queue),
        static_cast<ShmCompletionQueue*>(receive_queue), reply, queue_pair);
    if (status.ok()) {
      socket_.Reset();
    } else {
      Reject(std::string(status.message()));
    }
    return status;
  }

  void Reject(const std::string& reason) override {
    if (!socket_.valid()) return;
    Refuse(device_, socket_.get(), MessageType::kRejected, reason);
    socket_.Reset();
  }

 private:
  ShmDevice* const device_;
  UniqueFd socket_;
  const Hello hello_;
  std::vector<UniqueFd> fds_;
  const std::string private_data_;
};

}  // namespace

Status CheckAnswer(const Answer& answer, size_t fds) {
  if (answer.header.magic != kWireMagic || answer.private_size > Device::kMaxReasonBytes) {
    return Status::Unavailable("the listener does not speak this protocol");
  }
  switch (answer.header.type) {
    case MessageType::kAccepted:
      if (fds == 2 && answer.regions <= ControlBlock::kRegionSlots) return Status::OK();
      break;
    case MessageType::kRejected:
      return Status::InvalidArgument(std::string(answer.private_data, answer.private_size));
    case MessageType::kOtherVersion:
      return Status::NotSupported(
          "the listener speaks version " + std::to_string(answer.header.version) +
          " of the shm protocol, this process version " + std::to_string(kWireVersion));
    default:
      break;
  }
  return Status::Unavailable("the listener's answer makes no sense");
}

ShmListener::ShmListener(ShmDevice* device, const ShmAddress& address, UniqueFd socket,
                         UniqueFd close_fd)
    : device_(device),
      address_(address),
      text_(address.ToString(device->scheme())),
      socket_(std::move(socket)),
      close_fd_(std::move(close_fd)) {}

Status ShmListener::Open(ShmDevice* device, const std::string& address,
                         std::unique_ptr<Listener>* listener) {
  ShmAddress parsed;
  NACRE_RETURN_IF_ERROR(ParseShmAddress(address, &parsed));
  UniqueFd close_fd(eventfd(0, EFD_CLOEXEC));
  if (!close_fd.valid()) return SystemError("eventfd");
  UniqueFd socket;
  NACRE_RETURN_IF_ERROR(ListenOn(&parsed, &socket));
  listener->reset(new ShmListener(device, parsed, std::move(socket), std::move(close_fd)));
  return Status::OK();
}

ShmListener::~ShmListener() {
  if (!closed_.load(std::memory_order_relaxed)) Close();
}

void ShmListener::Close() {
  if (closed_.exchange(true)) return;
  StopListening(address_, socket_.get());
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(close_fd_.get(), &token, sizeof(token));
}

Status ShmListener::Accept(nanoseconds timeout, std::unique_ptr<IncomingConnection>* incoming) {
  const Deadline deadline = Deadline::After(device_->clock(), timeout);
  while (true) {
    if (closed_.load()) {
      greetings_.clear();  // So that those who wait for an answer learn it at once.
      return Status::ShutdownInProgress(text_ + ": closed");
    }
    TakeUpConnections();
    if (TakeGreeting(incoming)) return Status::OK();
    if (deadline.Expired()) return Status::TimedOut(text_ + ": nobody connected");
    WaitForActivity(deadline.Remaining());
  }
}

void ShmListener::WaitForActivity(nanoseconds timeout) {
  std::vector<pollfd> entries;
  entries.push_back({.fd = close_fd_.get(), .events = POLLIN, .revents = 0});
  if (greetings_.size() < kMaxGreetings) {
    entries.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  }
  for (const Greeting& greeting : greetings_) {
    entries.push_back({.fd = greeting.socket.get(), .events = POLLIN, .revents = 0});
  }
  // Also to drop those that stay silent.
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(
      greetings_.empty() ? std::min<nanoseconds>(timeout, std::chrono::hours(1))
                         : std::min(timeout, kGreetingTimeout));
  poll(entries.data(), entries.size(), static_cast<int>(limit.count()));
}

void ShmListener::TakeUpConnections() {
  while (greetings_.size() < kMaxGreetings) {
    UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Out of descriptors, or nobody there: those who wait in the backlog are tried again later.
    if (!socket.valid()) return;
    greetings_.push_back({std::move(socket), device_->clock()->NowNanos()});
  }
}

bool ShmListener::TakeGreeting(std::unique_ptr<IncomingConnection>* incoming) {
  const uint64_t now = device_->clock()->NowNanos();
  for (size_t i = 0; i < greetings_.size();) {
    Hello hello;
    std::vector<UniqueFd> fds;
    UniqueFd& socket = greetings_[i].socket;
    const ReceiveResult result = Receive(socket.get(), &hello, sizeof(hello), &fds);
    if (result == ReceiveResult::kNothing &&
        now - greetings_[i].taken_up_nanos < static_cast<uint64_t>(kGreetingTimeout.count())) {
      i++;
      continue;
    }
    bool usable = result == ReceiveResult::kMessage && hello.header.magic == kWireMagic;
    if (usable && hello.header.version != kWireVersion) {
      Refuse(device_, socket.get(), MessageType::kOtherVersion, "");
      usable = false;
    }
    if (usable && IsSound(hello, fds.size())) {
      *incoming = std::make_unique<ShmIncomingConnection>(device_, std::move(socket), hello,
                                                          std::move(fds));
    } else {
      usable = false;
    }
    greetings_.erase(greetings_.begin() + static_cast<ptrdiff_t>(i));
    if (usable) return true;
  }
  return false;
}

}  // namespace nacre::rdma
