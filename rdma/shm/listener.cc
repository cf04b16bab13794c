#include "rdma/shm/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "rdma/shm/device.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxGreetings = 128;
constexpr nanoseconds kGreetingTimeout = std::chrono::seconds(2);
constexpr nanoseconds kAnswerTimeout = std::chrono::milliseconds(100);

void Refuse(ShmDevice* device, int socket, MessageType type, const std::string& reason) {
  Answer answer;
  answer.header.type = type;
  answer.private_size = static_cast<uint32_t>(std::min(reason.size(), Device::kMaxReasonBytes));
  reason.copy(answer.private_data, answer.private_size);
  // The connection ends whether or not this arrives.
  SendBy(socket, Deadline::After(device->clock(), kAnswerTimeout), &answer, sizeof(answer), {})
      .IgnoreError();
}

class ShmIncomingConnection final : public IncomingConnection {
 public:
  ShmIncomingConnection(ShmDevice* device, UniqueFd socket, PeerProcess process,
                        std::shared_ptr<const Credential> credential, const Hello& hello,
                        uint32_t regions, std::vector<UniqueFd> fds)
      : device_(device),
        socket_(std::move(socket)),
        process_(std::move(process)),
        credential_(std::move(credential)),
        hello_(hello),
        regions_(regions),
        fds_(std::move(fds)),
        private_data_(hello.private_data, hello.private_size) {}
  ~ShmIncomingConnection() override { Reject("refused"); }

  const std::string& private_data() const override { return private_data_; }
  QueueDepths depths() const override {
    return {.send = static_cast<int>(hello_.send_depth),
            .receive = static_cast<int>(hello_.receive_depth),
            .control = hello_.control != 0};
  }
  std::shared_ptr<const Credential> credential() const override { return credential_; }

  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override {
    if (!socket_.valid()) return Status::InvalidArgument("the connection was answered before");
    // A second descriptor, so that a failure can still be told to the other side.
    UniqueFd copy(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return SystemError("dup");
    Status status =
        device_->Accept(std::move(copy), std::move(process_), hello_, credential_->may_write(),
                        regions_, std::move(fds_), static_cast<ShmCompletionQueue*>(send_queue),
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
  PeerProcess process_;
  const std::shared_ptr<const Credential> credential_;
  const Hello hello_;
  const uint32_t regions_;
  std::vector<UniqueFd> fds_;
  const std::string private_data_;
};

}  // namespace

ShmListener::ShmListener(ShmDevice* device, const ShmAddress& address, UniqueFd socket,
                         UniqueFd close_fd)
    : device_(device),
      address_(address),
      text_(address.ToString(device->scheme())),
      socket_(std::move(socket)),
      acceptor_(socket_.get()),
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
      greetings_.clear();  // Peers that wait for an answer learn it at once.
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
  if (greetings_.size() < kMaxGreetings && !acceptor_.exhausted()) {
    entries.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  }
  for (const Greeting& greeting : greetings_) {
    entries.push_back({.fd = greeting.socket.get(), .events = POLLIN, .revents = 0});
  }
  if (acceptor_.exhausted()) timeout = std::min<nanoseconds>(timeout, Acceptor::kPause);
  // The limit also serves to drop peers that stay silent.
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(
      greetings_.empty() ? std::min<nanoseconds>(timeout, std::chrono::hours(1))
                         : std::min(timeout, kGreetingTimeout));
  poll(entries.data(), entries.size(), static_cast<int>(limit.count()));
}

void ShmListener::TakeUpConnections() {
  while (greetings_.size() < kMaxGreetings) {
    UniqueFd socket;
    const Acceptor::Taken taken = acceptor_.Take(&socket);
    if (taken == Acceptor::Taken::kNobody) return;
    if (taken == Acceptor::Taken::kToRefuse) {
      Refuse(device_, socket.get(), MessageType::kRejected, Acceptor::kWhy);
      device_->refusals()->Refused(text_, Acceptor::kWhy);
      continue;
    }
    greetings_.push_back({.socket = std::move(socket),
                          .process = {},
                          .taken_up_nanos = device_->clock()->NowNanos()});
  }
}

bool ShmListener::TakeGreeting(std::unique_ptr<IncomingConnection>* incoming) {
  const uint64_t now = device_->clock()->NowNanos();
  for (size_t i = 0; i < greetings_.size();) {
    Packet packet;
    Introduction introduction;
    const Step step = Advance(&greetings_[i], now, &packet, &introduction);
    if (step == Step::kWaits) {
      i++;
      continue;
    }
    Greeting greeting = std::move(greetings_[i]);
    greetings_.erase(greetings_.begin() + static_cast<ptrdiff_t>(i));
    if (step == Step::kOver) continue;
    *incoming = std::make_unique<ShmIncomingConnection>(
        device_, std::move(greeting.socket), std::move(greeting.process),
        std::move(greeting.credential), greeting.hello, introduction.regions,
        std::move(packet.fds));
    return true;
  }
  return false;
}

ShmListener::Step ShmListener::Advance(Greeting* greeting, uint64_t now, Packet* packet,
                                       Introduction* introduction) {
  switch (Receive(greeting->socket.get(), packet)) {
    case ReceiveResult::kMessage:
      return greeting->challenged ? TakeIntroduction(*greeting, *packet, introduction)
                                  : TakeHello(greeting, *packet);
    case ReceiveResult::kNothing:
      if (now - greeting->taken_up_nanos < static_cast<uint64_t>(kGreetingTimeout.count())) {
        return Step::kWaits;
      }
      device_->refusals()->Refused(text_, "it stayed silent");
      return Step::kOver;
    case ReceiveResult::kClosed:
      // A peer that leaves without a word has only checked whether a listener is here.
      if (greeting->challenged) {
        device_->refusals()->Refused(text_, "it left instead of proving that it knows the secret");
      }
      return Step::kOver;
    case ReceiveResult::kMalformed:
      break;
  }
  device_->refusals()->Malformed(text_, "a message longer than any");
  return Step::kOver;
}

ShmListener::Step ShmListener::TakeHello(Greeting* greeting, const Packet& packet) {
  const Status sound = DecodeHello(packet.bytes(), packet.fds.size(), &greeting->hello);
  if (sound.IsNotSupported()) {
    device_->refusals()->Refused(text_, sound.message());
    Refuse(device_, greeting->socket.get(), MessageType::kOtherVersion, "");
    return Step::kOver;
  }
  if (!sound.ok()) {
    device_->refusals()->Malformed(text_, sound.message());
    return Step::kOver;
  }
  // The caller answers to the challenge that follows.
  greeting->process = PeerProcess::Of(greeting->socket.get());
  greeting->credential = device_->ring().Find(IdIn(greeting->hello.nonce));
  Challenge& challenge = greeting->challenge;
  Status status = DrawNonce(&challenge.nonce);
  if (status.ok()) {
    status = Prove(greeting->credential->secret(), Role::kListener,
                   Said(greeting->hello, challenge), &challenge.proof);
  }
  // There is room for it unless the caller is up to something.
  if (status.ok()) {
    status = SendBy(greeting->socket.get(), Deadline::After(device_->clock(), nanoseconds(0)),
                    &challenge, sizeof(challenge), {});
  }
  if (!status.ok()) {
    device_->refusals()->Refused(text_, status.message());
    return Step::kOver;
  }
  greeting->challenged = true;
  return Step::kWaits;
}

ShmListener::Step ShmListener::TakeIntroduction(const Greeting& greeting, const Packet& packet,
                                                Introduction* introduction) {
  const Status sound = DecodeIntroduction(packet.bytes(), packet.fds.size(), introduction);
  if (!sound.ok()) {
    device_->refusals()->Malformed(text_, sound.message());
    return Step::kOver;
  }
  const Status proven = CheckProof(introduction->proof, greeting.credential->secret(),
                                   Role::kConnector, Said(greeting.hello, greeting.challenge));
  if (proven.ok()) return Step::kProven;
  device_->refusals()->Refused(text_, proven.message());
  return Step::kOver;
}

}  // namespace nacre::rdma
