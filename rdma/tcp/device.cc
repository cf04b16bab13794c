#include "rdma/tcp/device.h"

#include <sys/eventfd.h>

#include <utility>

#include "rdma/memory.h"
#include "rdma/queue_depths.h"
#include "rdma/tcp/greeting.h"
#include "rdma/tcp/listener.h"
#include "rdma/tcp/queue_pair.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

constexpr int kMaxCompletions = 1 << 24;
constexpr uint64_t kDefaultTimeoutMillis = 5000;
constexpr uint64_t kDefaultSpinMicros = 50;
constexpr uint64_t kMaxSpinMicros = 10000;
constexpr std::chrono::milliseconds kAcceptTimeout{2000};

Status TakeNumber(const DeviceOptions& options, const std::string& name, uint64_t min, uint64_t max,
                  uint64_t* value) {
  const auto found = options.parameters.find(name);
  if (found == options.parameters.end()) return Status::OK();
  return ParseNumber(found->second, min, max, value)
      .WithContext("transport parameter " + name + "=" + found->second);
}

Status TakeEncryption(const DeviceOptions& options, TcpEncryption* encryption) {
  const auto found = options.parameters.find("tls");
  if (found == options.parameters.end() || found->second == "0") return Status::OK();
  const std::string context = "transport parameter tls=" + found->second + ": ";
  if (found->second == "all") {
    *encryption = TcpEncryption::kAll;
  } else if (found->second == "1" || found->second == "control") {
    *encryption = TcpEncryption::kControl;
  } else {
    return Status::InvalidArgument(context + "is none of 0, 1, control, all");
  }
  if (options.ring != nullptr || !options.secret.empty()) return Status::OK();
  return Status::InvalidArgument(context +
                                 "needs a secret of the pool, from which its keys are made");
}

}  // namespace

Status CheckTcpPrivateData(const std::string& data) {
  if (data.size() <= Device::kMaxPrivateData) return Status::OK();
  return Status::InvalidArgument("private data of " + std::to_string(data.size()) +
                                 " bytes; at most " + std::to_string(Device::kMaxPrivateData) +
                                 " are possible");
}

TcpDevice::TcpDevice(const DeviceOptions& options, std::shared_ptr<SecretRing> ring, Clock* clock,
                     std::chrono::milliseconds timeout, std::chrono::microseconds spin)
    : clock_(clock),
      ring_(std::move(ring)),
      timeout_(timeout),
      spin_(spin),
      refusals_(options.logger, clock),
      device_id_(NewDeviceId()) {}

TcpDevice::~TcpDevice() = default;

Status TcpDevice::Open(const DeviceOptions& options, Clock* clock,
                       std::unique_ptr<Device>* device) {
  for (const auto& [name, value] : options.parameters) {
    if (name != "io_threads" && name != "timeout_ms" && name != "tls" && name != "spin_us" &&
        name != "io_spin_us") {
      return Status::InvalidArgument("unknown transport parameter '" + name + "'");
    }
  }
  uint64_t io_threads = 1;
  uint64_t timeout_ms = kDefaultTimeoutMillis;
  NACRE_RETURN_IF_ERROR(TakeNumber(options, "io_threads", 1, 256, &io_threads));
  NACRE_RETURN_IF_ERROR(TakeNumber(options, "timeout_ms", 10, 3600000, &timeout_ms));
  uint64_t spin_us = kDefaultSpinMicros;
  uint64_t io_spin_us = 0;
  NACRE_RETURN_IF_ERROR(TakeNumber(options, "spin_us", 0, kMaxSpinMicros, &spin_us));
  NACRE_RETURN_IF_ERROR(TakeNumber(options, "io_spin_us", 0, kMaxSpinMicros, &io_spin_us));
  TcpEncryption encryption = TcpEncryption::kNone;
  NACRE_RETURN_IF_ERROR(TakeEncryption(options, &encryption));
  std::shared_ptr<SecretRing> ring;
  NACRE_RETURN_IF_ERROR(RingOf(options, &ring));
  std::unique_ptr<TcpDevice> made(new TcpDevice(options, std::move(ring), clock,
                                                std::chrono::milliseconds(timeout_ms),
                                                std::chrono::microseconds(spin_us)));
  made->encryption_ = encryption;
  if (encryption != TcpEncryption::kNone) {
    NACRE_RETURN_IF_ERROR(TlsContext::Create(&made->tls_));
  }
  const std::chrono::microseconds io_spin(io_spin_us);
  for (uint64_t i = 0; i < io_threads; i++) {
    made->io_threads_.emplace_back();
    NACRE_RETURN_IF_ERROR(IoThread::Start(made->timeout_, io_spin, &made->io_threads_.back()));
  }
  *device = std::move(made);
  return Status::OK();
}

IoThread* TcpDevice::NextIoThread() {
  const uint32_t number = next_io_thread_.fetch_add(1, std::memory_order_relaxed);
  return io_threads_[number % io_threads_.size()].get();
}

Status TcpDevice::AllocateRegion(size_t size, Access access,
                                 std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  NACRE_RETURN_IF_ERROR(MappingTable::Process()->CheckRoomFor(size));
  UniqueFd no_fd;
  std::shared_ptr<Mapping> memory;
  const uint32_t number = next_region_.fetch_add(1, std::memory_order_relaxed);
  NACRE_RETURN_IF_ERROR(CreateMemory({device_id_, RegionObject(number)}, size, MemoryKind::kPrivate,
                                     &no_fd, &memory));
  return MakeRegion(std::move(memory), size, access, region);
}

Status TcpDevice::MapRegion(int fd, size_t size, Access access,
                            std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  std::shared_ptr<Mapping> memory;
  const uint32_t number = next_region_.fetch_add(1, std::memory_order_relaxed);
  NACRE_RETURN_IF_ERROR(MapFile({device_id_, RegionObject(number)}, fd, size, &memory));
  return MakeRegion(std::move(memory), size, access, region);
}

Status TcpDevice::MakeRegion(std::shared_ptr<Mapping> memory, size_t size, Access access,
                             std::unique_ptr<MemoryRegion>* region) {
  uint32_t key;
  NACRE_RETURN_IF_ERROR(regions_.Add(memory, 0, size, access, &key));
  *region = std::make_unique<TcpRegion>(&regions_, std::move(memory), size, key);
  return Status::OK();
}

Status TcpDevice::RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  return MakeRegion(Mapping::Borrow(data, size), size, Access::kLocalOnly, region);
}

Status TcpDevice::CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) {
  if (capacity < 1 || capacity > kMaxCompletions) {
    return Status::InvalidArgument("a completion queue for " + std::to_string(capacity) +
                                   " completions: 1 to " + std::to_string(kMaxCompletions) +
                                   " are possible");
  }
  UniqueFd event_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_fd.valid()) return SystemError("eventfd");
  *queue = std::make_unique<TcpCompletionQueue>(capacity, std::move(event_fd), spin_);
  return Status::OK();
}

Status TcpDevice::Listen(const std::string& address, std::unique_ptr<Listener>* listener) {
  return TcpListener::Open(this, address, listener);
}

Status TcpDevice::Greet(int socket, const std::string& peer, const std::string& private_data,
                        QueueDepths depths, const Deadline& deadline,
                        std::unique_ptr<TlsStream>* tls, std::string* reply) {
  TcpHello hello{.depths = depths,
                 .tls = Encrypts(depths),
                 .tls_always = encryption_ == TcpEncryption::kAll,
                 .private_data = private_data};
  const std::shared_ptr<const Credential> own = ring_->own();
  NACRE_RETURN_IF_ERROR(DrawConnectorNonce(own->id(), &hello.nonce));
  const std::string hello_bytes = EncodeHello(hello);
  NACRE_RETURN_IF_ERROR(SendAllBy(socket, deadline, hello_bytes.data(), hello_bytes.size()));

  // The next message is the challenge, or the answer if this is refused at once.
  std::string message(kGreetingHeaderBytes, '\0');
  const auto receive = [&](size_t from, size_t size) {
    message.resize(size);
    if (*tls != nullptr) {
      return (*tls)->ReceiveAllBy(deadline, message.data() + from, size - from);
    }
    return ReceiveAllBy(socket, deadline, message.data() + from, size - from);
  };
  NACRE_RETURN_IF_ERROR(receive(0, kGreetingHeaderBytes));
  GreetingType type;
  NACRE_RETURN_IF_ERROR(DecodeGreetingHeader(message, &type));
  if (type == GreetingType::kChallenge) {
    NACRE_RETURN_IF_ERROR(receive(kGreetingHeaderBytes, kChallengeBytes));
    TcpChallenge challenge;
    NACRE_RETURN_IF_ERROR(DecodeChallenge(message, &challenge));
    const Handshake said = SaidOverTcp(hello_bytes, challenge);
    const Status proven = CheckProof(challenge.proof, own->secret(), Role::kListener, said);
    if (!proven.ok()) {
      refusals_.Refused(peer, proven.message());
      return proven;
    }
    Proof proof;
    NACRE_RETURN_IF_ERROR(Prove(own->secret(), Role::kConnector, said, &proof));
    const std::string introduction = EncodeIntroduction(proof);
    NACRE_RETURN_IF_ERROR(SendAllBy(socket, deadline, introduction.data(), introduction.size()));
    if (hello.tls) {
      NACRE_RETURN_IF_ERROR(StartTls(Role::kConnector, own->secret(), said, socket, tls));
      NACRE_RETURN_IF_ERROR((*tls)->Establish(deadline));
    }
    NACRE_RETURN_IF_ERROR(receive(0, kGreetingHeaderBytes));
  }
  NACRE_RETURN_IF_ERROR(receive(kGreetingHeaderBytes, kAnswerBytes));
  std::string text;
  NACRE_RETURN_IF_ERROR(DecodeAnswer(message, &type, &text));
  if (type == GreetingType::kRejected) return Status::Aborted(text);
  if (type != GreetingType::kAccepted) {
    return Status::NotSupported("the listener speaks another version of the tcp protocol");
  }
  *reply = std::move(text);
  return Status::OK();
}

Status TcpDevice::Connect(const std::string& address, const std::string& private_data,
                          QueueDepths depths, CompletionQueue* send_queue,
                          CompletionQueue* receive_queue, Deadline deadline, std::string* reply,
                          std::unique_ptr<QueuePair>* queue_pair) {
  NACRE_RETURN_IF_ERROR(CheckTcpPrivateData(private_data));
  NACRE_RETURN_IF_ERROR(CheckDepths(depths));
  UniqueFd socket;
  NACRE_RETURN_IF_ERROR(ConnectTcp(address, deadline, &socket));
  NACRE_RETURN_IF_ERROR(SetUpTcpSocket(socket.get(), timeout_));
  const std::string peer = address.starts_with("tcp:") ? address : "tcp:" + address;
  std::unique_ptr<TlsStream> tls;
  const Status greeted = Greet(socket.get(), peer, private_data, depths, deadline, &tls, reply);
  if (greeted.IsAborted()) {
    return Status::InvalidArgument(peer + ": " + std::string(greeted.message()));
  }
  if (greeted.IsInvalidArgument()) {
    // What the peer said makes no sense; the caller's arguments do.
    refusals_.Malformed(peer, greeted.message());
  }
  if (greeted.IsInvalidArgument() || greeted.IsTimedOut()) {
    return Status::Unavailable(peer + ": " + std::string(greeted.message()));
  }
  NACRE_RETURN_IF_ERROR(greeted.WithContext(peer));
  IoThread* const io_thread = NextIoThread();
  std::unique_ptr<TcpQueuePair> made =
      MakePair(std::move(socket), std::move(tls), peer, /*peer_may_write=*/true, depths, send_queue,
               receive_queue, io_thread);
  NACRE_RETURN_IF_ERROR(io_thread->Add(made->connection()));
  *queue_pair = std::move(made);
  return Status::OK();
}

Status TcpDevice::Accept(UniqueFd socket, std::unique_ptr<TlsStream> tls, const std::string& peer,
                         bool may_write, QueueDepths depths, CompletionQueue* send_queue,
                         CompletionQueue* receive_queue, const std::string& reply,
                         std::unique_ptr<QueuePair>* queue_pair) {
  const int fd = socket.get();
  TlsStream* const stream = tls.get();
  IoThread* const io_thread = NextIoThread();
  std::unique_ptr<TcpQueuePair> made = MakePair(std::move(socket), std::move(tls), peer, may_write,
                                                depths, send_queue, receive_queue, io_thread);
  // Served only from here on, so that the first bytes sent are the answer.
  const std::string answer = EncodeAnswer(GreetingType::kAccepted, reply);
  const Deadline deadline = Deadline::After(clock_, kAcceptTimeout);
  const Status answered = stream != nullptr
                              ? stream->SendAllBy(deadline, answer.data(), answer.size())
                              : SendAllBy(fd, deadline, answer.data(), answer.size());
  NACRE_RETURN_IF_ERROR(answered.WithContext(peer));
  NACRE_RETURN_IF_ERROR(io_thread->Add(made->connection()));
  *queue_pair = std::move(made);
  return Status::OK();
}

Status TcpDevice::StartTls(Role role, const std::string& secret, const Handshake& said, int socket,
                           std::unique_ptr<TlsStream>* tls) const {
  Proof key;
  NACRE_RETURN_IF_ERROR(DeriveKey(secret, said, &key));
  return TlsStream::Create(*tls_, role, key, socket, tls);
}

std::unique_ptr<TcpQueuePair> TcpDevice::MakePair(UniqueFd socket, std::unique_ptr<TlsStream> tls,
                                                  const std::string& peer, bool peer_may_write,
                                                  QueueDepths depths, CompletionQueue* send_queue,
                                                  CompletionQueue* receive_queue,
                                                  IoThread* io_thread) {
  return std::make_unique<TcpQueuePair>(
      TcpConnection::Parts{.socket = std::move(socket),
                           .peer = peer,
                           .io_thread = io_thread,
                           .refusals = &refusals_,
                           .tls = std::move(tls),
                           .messages = tls_ == nullptr || Encrypts(depths),
                           .peer_may_write = peer_may_write,
                           .session = {}},
      depths, &regions_, &counters_, static_cast<TcpCompletionQueue*>(send_queue),
      static_cast<TcpCompletionQueue*>(receive_queue));
}

TrafficCounters TcpDevice::traffic() const {
  TrafficCounters sum = counters_.Read();
  refusals_.AddTo(&sum);
  return sum;
}

}  // namespace nacre::rdma
