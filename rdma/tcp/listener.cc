#include "rdma/tcp/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rdma/memory.h"
#include "rdma/tcp/device.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxCallers = 128;
constexpr nanoseconds kGreetingTimeout = std::chrono::seconds(2);
/// When there is no room for another caller, one that was silent for that long is dropped.
constexpr nanoseconds kGreetingTimeoutInARush = std::chrono::milliseconds(200);
/// A caller that waits for an answer has an empty socket, so there is room for one.
constexpr nanoseconds kAnswerTimeout = std::chrono::milliseconds(100);

/// `tls`: over the socket; may be null.
void SendAnswer(TcpDevice* device, int socket, TlsStream* tls, GreetingType type,
                std::string_view text) {
  const std::string bytes = EncodeAnswer(type, text);
  const Deadline deadline = Deadline::After(device->clock(), kAnswerTimeout);
  const Status sent = tls != nullptr ? tls->SendAllBy(deadline, bytes.data(), bytes.size())
                                     : SendAllBy(socket, deadline, bytes.data(), bytes.size());
  sent.IgnoreError();  // The connection ends whether or not this arrives.
}

/// What a caller is told that encrypts other connections than this device does.
std::string_view WhatIsWanted(TcpEncryption encryption) {
  switch (encryption) {
    case TcpEncryption::kAll:
      return "this listener takes all connections by TLS only: connect with tls=all";
    case TcpEncryption::kControl:
      return "this listener takes control connections, and no others, by TLS: connect with tls=1";
    case TcpEncryption::kNone:
      return "this listener was started without tls=1 or tls=all: connect without it";
  }
  return "";
}

class TcpIncomingConnection final : public IncomingConnection {
 public:
  TcpIncomingConnection(TcpDevice* device, UniqueFd socket, std::unique_ptr<TlsStream> tls,
                        std::string name, std::shared_ptr<const Credential> credential,
                        TcpHello hello)
      : device_(device),
        socket_(std::move(socket)),
        tls_(std::move(tls)),
        name_(std::move(name)),
        credential_(std::move(credential)),
        hello_(std::move(hello)) {}
  ~TcpIncomingConnection() override { Reject("refused"); }

  const std::string& private_data() const override { return hello_.private_data; }
  QueueDepths depths() const override { return hello_.depths; }
  std::shared_ptr<const Credential> credential() const override { return credential_; }

  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override {
    if (!socket_.valid()) return Status::InvalidArgument("the connection was answered before");
    if (Status status = CheckTcpPrivateData(reply); !status.ok()) {
      Reject(std::string(status.message()));
      return status;
    }
    return device_->Accept(std::move(socket_), std::move(tls_), name_, credential_->may_write(),
                           hello_.depths, send_queue, receive_queue, reply, queue_pair);
  }

  void Reject(const std::string& reason) override {
    if (!socket_.valid()) return;
    SendAnswer(device_, socket_.get(), tls_.get(), GreetingType::kRejected, reason);
    socket_.Reset();
  }

 private:
  TcpDevice* const device_;
  UniqueFd socket_;
  std::unique_ptr<TlsStream> tls_;
  const std::string name_;
  const std::shared_ptr<const Credential> credential_;
  const TcpHello hello_;
};

}  // namespace

TcpListener::TcpListener(TcpDevice* device, std::string text, UniqueFd socket, UniqueFd close_fd)
    : device_(device),
      text_(std::move(text)),
      socket_(std::move(socket)),
      acceptor_(socket_.get()),
      close_fd_(std::move(close_fd)) {}

Status TcpListener::Open(TcpDevice* device, const std::string& address,
                         std::unique_ptr<Listener>* listener) {
  UniqueFd close_fd(eventfd(0, EFD_CLOEXEC));
  if (!close_fd.valid()) return SystemError("eventfd");
  UniqueFd socket;
  SocketName name;
  NACRE_RETURN_IF_ERROR(ListenOnTcp(address, &socket, &name));
  listener->reset(new TcpListener(device, name.ToString(), std::move(socket), std::move(close_fd)));
  return Status::OK();
}

TcpListener::~TcpListener() { Close(); }

void TcpListener::Close() {
  if (closed_.exchange(true)) return;
  // Ends the listening at once; the descriptor itself is in use by Accept.
  shutdown(socket_.get(), SHUT_RDWR);
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = write(close_fd_.get(), &token, sizeof(token));
}

Status TcpListener::Accept(nanoseconds timeout, std::unique_ptr<IncomingConnection>* incoming) {
  const Deadline deadline = Deadline::After(device_->clock(), timeout);
  while (true) {
    if (closed_.load()) {
      callers_.clear();  // Callers that wait for an answer learn it at once.
      return Status::ShutdownInProgress(text_ + ": closed");
    }
    TakeUpConnections();
    if (TakeCaller(incoming)) return Status::OK();
    if (deadline.Expired()) return Status::TimedOut(text_ + ": nobody connected");
    WaitForActivity(deadline.Remaining());
  }
}

void TcpListener::WaitForActivity(nanoseconds timeout) {
  std::vector<pollfd> entries;
  entries.push_back({.fd = close_fd_.get(), .events = POLLIN, .revents = 0});
  const bool full = callers_.size() >= kMaxCallers;
  if (!full && !acceptor_.exhausted())
    entries.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  for (const Caller& caller : callers_) {
    const bool sends = caller.tls != nullptr && caller.tls->wants_to_send();
    const auto events = static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN);
    entries.push_back({.fd = caller.socket.get(), .events = events, .revents = 0});
  }
  if (acceptor_.exhausted()) timeout = std::min<nanoseconds>(timeout, Acceptor::kPause);
  // The timeout also drops callers that stay silent.
  const nanoseconds patience = full ? kGreetingTimeoutInARush : kGreetingTimeout;
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(
      callers_.empty() ? std::min<nanoseconds>(timeout, std::chrono::hours(1))
                       : std::min(timeout, patience));
  poll(entries.data(), entries.size(), static_cast<int>(limit.count()));
}

bool TcpListener::MakeRoom(uint64_t now) {
  if (callers_.size() < kMaxCallers) return true;
  if (now - callers_.front().taken_up_nanos <
      static_cast<uint64_t>(kGreetingTimeoutInARush.count())) {
    return false;
  }
  Refuse(callers_.front(), "it was silent while many called");
  callers_.erase(callers_.begin());
  return true;
}

void TcpListener::TakeUpConnections() {
  const uint64_t now = device_->clock()->NowNanos();
  while (MakeRoom(now)) {
    UniqueFd socket;
    const Acceptor::Taken taken = acceptor_.Take(&socket);
    if (taken == Acceptor::Taken::kNobody) return;
    if (taken == Acceptor::Taken::kToRefuse) {
      SendAnswer(device_, socket.get(), nullptr, GreetingType::kRejected, Acceptor::kWhy);
      device_->refusals()->Refused(text_, Acceptor::kWhy);
      continue;
    }
    if (!SetUpTcpSocket(socket.get(), device_->timeout()).ok()) continue;  // Gone already.
    std::string name = PeerName(socket.get());
    callers_.push_back(
        {.socket = std::move(socket), .name = std::move(name), .taken_up_nanos = now});
  }
}

bool TcpListener::TakeCaller(std::unique_ptr<IncomingConnection>* incoming) {
  const uint64_t now = device_->clock()->NowNanos();
  for (size_t i = 0; i < callers_.size();) {
    const Step step = Advance(&callers_[i], now);
    if (step == Step::kWaits) {
      i++;
      continue;
    }
    Caller caller = std::move(callers_[i]);
    callers_.erase(callers_.begin() + static_cast<ptrdiff_t>(i));
    if (step == Step::kOver) continue;
    *incoming = std::make_unique<TcpIncomingConnection>(
        device_, std::move(caller.socket), std::move(caller.tls), std::move(caller.name),
        std::move(caller.credential), std::move(caller.hello));
    return true;
  }
  return false;
}

TcpListener::Step TcpListener::Refuse(const Caller& caller, std::string_view why) {
  device_->refusals()->Refused(text_ + " from " + caller.name, why);
  return Step::kOver;
}

TcpListener::Step TcpListener::RefuseMalformed(const Caller& caller, std::string_view why) {
  device_->refusals()->Malformed(text_ + " from " + caller.name, why);
  return Step::kOver;
}

TcpListener::Step TcpListener::Advance(Caller* caller, uint64_t now) {
  if (caller->tls != nullptr) {
    const Step step = AdvanceTls(*caller);
    if (step != Step::kWaits || StillMayWait(*caller, now)) return step;
    return Refuse(*caller, "it stayed silent");
  }
  const size_t wanted = caller->challenged() ? kIntroductionBytes : kHelloBytes;
  char bytes[kHelloBytes];
  static_assert(kIntroductionBytes <= kHelloBytes);
  while (caller->received.size() < wanted) {
    const ssize_t size =
        recv(caller->socket.get(), bytes, wanted - caller->received.size(), MSG_DONTWAIT);
    if (size > 0) {
      caller->received.append(bytes, static_cast<size_t>(size));
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else if (caller->challenged()) {
      return Refuse(*caller, "it left instead of proving that it knows the secret");
    } else {
      return Step::kOver;  // It has only checked whether a listener is here.
    }
  }
  if (caller->received.size() >= kGreetingHeaderBytes) {
    GreetingType type;
    const Status sound = DecodeGreetingHeader(caller->received, &type);
    if (sound.IsNotSupported()) {
      SendAnswer(device_, caller->socket.get(), nullptr, GreetingType::kOtherVersion, "");
      return Refuse(*caller, sound.message());
    }
    if (!sound.ok()) return RefuseMalformed(*caller, sound.message());
  }
  if (caller->received.size() == wanted) {
    return caller->challenged() ? TakeIntroduction(caller) : TakeHello(caller);
  }
  if (StillMayWait(*caller, now)) return Step::kWaits;
  return Refuse(*caller, "it stayed silent");
}

TcpListener::Step TcpListener::TakeHello(Caller* caller) {
  const Status sound = DecodeHello(caller->received, &caller->hello);
  if (!sound.ok()) return RefuseMalformed(*caller, sound.message());
  const bool encrypts_all = device_->encryption() == TcpEncryption::kAll;
  if (caller->hello.tls != device_->Encrypts(caller->hello.depths) ||
      caller->hello.tls_always != encrypts_all) {
    const std::string_view why = WhatIsWanted(device_->encryption());
    SendAnswer(device_, caller->socket.get(), nullptr, GreetingType::kRejected, why);
    return Refuse(*caller, why);
  }
  caller->hello_bytes = std::exchange(caller->received, {});
  caller->credential = device_->ring().Find(IdIn(caller->hello.nonce));
  TcpChallenge& challenge = caller->challenge;
  Status status = DrawNonce(&challenge.nonce);
  if (status.ok()) {
    status = Prove(caller->credential->secret(), Role::kListener,
                   SaidOverTcp(caller->hello_bytes, challenge), &challenge.proof);
  }
  if (status.ok()) {
    const std::string bytes = EncodeChallenge(challenge);
    status = SendAllBy(caller->socket.get(), Deadline::After(device_->clock(), nanoseconds(0)),
                       bytes.data(), bytes.size());
  }
  return status.ok() ? Step::kWaits : Refuse(*caller, status.message());
}

TcpListener::Step TcpListener::TakeIntroduction(Caller* caller) {
  Proof proof;
  const Status sound = DecodeIntroduction(caller->received, &proof);
  if (!sound.ok()) return RefuseMalformed(*caller, sound.message());
  const Handshake said = SaidOverTcp(caller->hello_bytes, caller->challenge);
  const std::string& secret = caller->credential->secret();
  Status status = CheckProof(proof, secret, Role::kConnector, said);
  if (status.ok() && !caller->hello.tls) return Step::kProven;
  if (status.ok()) {
    status = device_->StartTls(Role::kListener, secret, said, caller->socket.get(), &caller->tls);
  }
  return status.ok() ? AdvanceTls(*caller) : Refuse(*caller, status.message());
}

TcpListener::Step TcpListener::AdvanceTls(const Caller& caller) {
  if (caller.tls->Advance()) return caller.tls->established() ? Step::kProven : Step::kWaits;
  return errno == EBADMSG ? RefuseMalformed(caller, "no TLS of this pool")
                          : Refuse(caller, "it left amid the handshake of TLS");
}

bool TcpListener::StillMayWait(const Caller& caller, uint64_t now) {
  return now - caller.taken_up_nanos < static_cast<uint64_t>(kGreetingTimeout.count());
}

}  // namespace nacre::rdma
