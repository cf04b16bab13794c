#include "rdma/verbs/listener.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rdma/verbs/address.h"
#include "rdma/verbs/completion_queue.h"
#include "rdma/verbs/device.h"
#include "rdma/verbs/queue_pair.h"

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

constexpr int kBacklog = 128;
/// A peer that floods the table displaces challenges of others only within their round trip.
constexpr size_t kMaxChallenged = 4096;
constexpr size_t kMaxGuests = 256;
constexpr nanoseconds kAnswerTimeout = std::chrono::seconds(2);
/// The time for the last message of a handshake, by a peer that knows the secret.
constexpr nanoseconds kAcceptTimeout = std::chrono::seconds(2);

/// The connection ends whether or not this arrives.
void RejectId(rdma_cm_id* id, std::string_view bytes) {
  [[maybe_unused]] const int result =
      rdma_reject(id, bytes.data(), static_cast<uint8_t>(bytes.size()));
}

VerbsRefusal MakeRefusal(VerbsMessage message, const std::string& reason) {
  VerbsRefusal refusal;
  refusal.header.message = message;
  refusal.reason_size = static_cast<uint32_t>(std::min(reason.size(), Device::kMaxReasonBytes));
  reason.copy(refusal.reason, refusal.reason_size);
  return refusal;
}

std::string PeerName(const rdma_cm_id& id) {
  const sockaddr* const address = &id.route.addr.dst_addr;
  char text[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &id.route.addr.dst_sin.sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &id.route.addr.dst_sin6.sin6_addr, text, sizeof(text));
  }
  return std::string("verbs:") + text;
}

class VerbsIncomingConnection final : public IncomingConnection {
 public:
  VerbsIncomingConnection(VerbsDevice* device, VerbsListener::Guest guest)
      : device_(device),
        guest_(std::move(guest)),
        private_data_(guest_.hello.private_data, guest_.hello.private_size()) {}
  ~VerbsIncomingConnection() override { Reject("refused"); }

  const std::string& private_data() const override { return private_data_; }
  QueueDepths depths() const override {
    return {.send = guest_.hello.send_depth,
            .receive = guest_.hello.receive_depth,
            .control = guest_.hello.control()};
  }
  std::shared_ptr<const Credential> credential() const override { return guest_.credential; }

  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override {
    if (guest_.connection == nullptr) {
      return Status::InvalidArgument("the connection was answered before");
    }
    if (reply.size() > Device::kMaxPrivateData) {
      const Status status = Status::InvalidArgument(
          "private data of " + std::to_string(reply.size()) + " bytes; at most " +
          std::to_string(Device::kMaxPrivateData) + " are possible");
      Reject(std::string(status.message()));
      return status;
    }
    std::unique_ptr<VerbsQueuePair> made;
    Status status = VerbsQueuePair::Create(
        device_, guest_.connection, depths(), static_cast<VerbsCompletionQueue*>(send_queue),
        static_cast<VerbsCompletionQueue*>(receive_queue), &made);
    if (status.ok()) status = made->BringUp(&guest_.reads, guest_.credential->may_write());
    if (!status.ok()) {
      Reject(std::string(status.message()));
      return status;
    }
    NACRE_RETURN_IF_ERROR(Finish(reply, made->number()));
    made->Establish();
    *queue_pair = std::move(made);
    return Status::OK();
  }

  void Reject(const std::string& reason) override {
    if (guest_.connection == nullptr) return;
    RejectId(guest_.connection->id(), AsBytes(MakeRefusal(VerbsMessage::kRefused, reason)));
    guest_.connection.reset();
  }

 private:
  /// Sends the acceptance and waits until the connecting side has taken it.
  Status Finish(const std::string& reply, uint32_t queue_pair_number) {
    const std::shared_ptr<VerbsConnection> connection = std::move(guest_.connection);
    VerbsAcceptance acceptance;
    acceptance.private_size = static_cast<uint32_t>(reply.size());
    reply.copy(acceptance.private_data, reply.size());
    guest_.handshake.reply.assign(1, static_cast<char>(VerbsMessage::kAcceptance));
    guest_.handshake.reply += reply;
    NACRE_RETURN_IF_ERROR(
        Prove(guest_.credential->secret(), Role::kListener, guest_.handshake, &acceptance.proof));
    const std::string_view bytes = AsBytes(acceptance);
    rdma_conn_param parameters{};
    parameters.private_data = bytes.data();
    parameters.private_data_len = static_cast<uint8_t>(bytes.size());
    parameters.responder_resources = guest_.reads.incoming;
    parameters.initiator_depth = guest_.reads.outgoing;
    parameters.rnr_retry_count = 7;
    parameters.qp_num = queue_pair_number;
    if (rdma_accept(connection->id(), &parameters) != 0) {
      return Status::Unavailable(connection->peer() + ": rdma_accept: " + std::strerror(errno));
    }
    CmNotice notice;
    const Deadline deadline = Deadline::After(device_->clock(), kAcceptTimeout);
    const Status status = connection->Await(RDMA_CM_EVENT_ESTABLISHED, deadline, &notice);
    if (!status.ok()) return Status::Unavailable(status.message());
    if (notice.type == RDMA_CM_EVENT_ESTABLISHED) return Status::OK();
    return Status::Unavailable(connection->peer() + ": " + rdma_event_str(notice.type));
  }

  VerbsDevice* const device_;
  VerbsListener::Guest guest_;
  const std::string private_data_;
};

}  // namespace

Status VerbsListener::Open(VerbsDevice* device, const std::string& address,
                           std::unique_ptr<Listener>* listener) {
  VerbsAddress parsed;
  NACRE_RETURN_IF_ERROR(ParseVerbsAddress(address, &parsed));
  std::unique_ptr<VerbsListener> made(new VerbsListener(device));
  NACRE_RETURN_IF_ERROR(device->loop()->CreateId(made.get(), &made->id_));
  rdma_cm_id* const id = made->id_.get();
  if (rdma_bind_addr(id, parsed.get()) != 0 || rdma_listen(id, kBacklog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return Status::Busy(parsed.ToString() + ": another process listens there");
    }
    if (error == ENODEV || error == EADDRNOTAVAIL) {
      return Status::Unavailable(parsed.ToString() + ": no RDMA device of this machine has that " +
                                 "address (" + std::strerror(error) + ")");
    }
    return VerbsError("listen at " + parsed.ToString(), error);
  }
  // A wildcard is bound to no device.
  const std::string found = id->verbs == nullptr ? "" : ibv_get_device_name(id->verbs->device);
  if (!found.empty() && found != device->adapter().name()) {
    return Status::InvalidArgument(parsed.ToString() + ": is an address of RDMA device " + found +
                                   ", but " + device->adapter().name() +
                                   " is opened; choose by '?device=" + found + "'");
  }
  parsed.port = ntohs(rdma_get_src_port(id));
  made->text_ = parsed.ToString();
  *listener = std::move(made);
  return Status::OK();
}

VerbsListener::~VerbsListener() {
  Close();
  id_.reset();  // While the rest of this still stands: its last event may be on its way.
}

void VerbsListener::Close() {
  std::deque<Guest> guests;  // Ends after the lock.
  MutexLock lock(&mutex_);
  closed_ = true;
  guests.swap(guests_);
  challenged_.clear();
  challenged_order_.clear();
  changed_.SignalAll();
}

Status VerbsListener::Accept(nanoseconds timeout, std::unique_ptr<IncomingConnection>* incoming) {
  const Deadline deadline = Deadline::After(device_->clock(), timeout);
  std::deque<Guest> gone;  // Their ids end after the lock.
  MutexLock lock(&mutex_);
  while (true) {
    if (closed_) return Status::ShutdownInProgress(text_ + ": closed");
    while (!guests_.empty()) {
      Guest guest = std::move(guests_.front());
      guests_.pop_front();
      if (guest.connection->fate() != VerbsConnection::Fate::kStands) {
        gone.push_back(std::move(guest));
        continue;
      }
      *incoming = std::make_unique<VerbsIncomingConnection>(device_, std::move(guest));
      return Status::OK();
    }
    if (deadline.Expired()) return Status::TimedOut(text_ + ": nobody connected");
    changed_.WaitFor(deadline.Remaining());
  }
}

void VerbsListener::OnEvent(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    Close();
    return;
  }
  if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  UniqueCmId id(event.id);
  const std::string bytes(static_cast<const char*>(event.param.conn.private_data),
                          event.param.conn.private_data_len);
  {
    MutexLock lock(&mutex_);
    if (closed_) return;  // The id's end rejects it.
  }
  VerbsHello hello;
  VerbsAnswer answer;
  switch (DecodeVerbsRequest(bytes, &hello, &answer)) {
    case VerbsRequest::kHello:
      TakeHello(std::move(id), hello);
      return;
    case VerbsRequest::kAnswer:
      TakeAnswer(std::move(id), event.param.conn, answer);
      return;
    case VerbsRequest::kOtherVersion:
      Refuse(std::move(id), VerbsMessage::kOtherVersion, "", true);
      return;
    case VerbsRequest::kOtherProtocol:
      Refuse(std::move(id), VerbsMessage::kNotAdmitted, "another protocol is spoken here", true);
      return;
    case VerbsRequest::kMalformed:
      Refuse(std::move(id), VerbsMessage::kNotAdmitted, "a malformed greeting", true);
      return;
    case VerbsRequest::kOutOfTurn:
      Refuse(std::move(id), VerbsMessage::kNotAdmitted, "a message out of turn", true);
      return;
  }
}

void VerbsListener::Refuse(UniqueCmId id, VerbsMessage message, const std::string& reason,
                           bool count) {
  if (count) {
    device_->refusals()->Refused(
        text_, PeerName(*id) + ": " + (reason.empty() ? "another version" : reason));
  }
  RejectId(id.get(), AsBytes(MakeRefusal(message, reason)));
}

void VerbsListener::TakeHello(UniqueCmId id, const VerbsHello& hello) {
  Challenged entry;
  VerbsChallenge challenge;
  const uint64_t now = device_->clock()->NowNanos();
  entry.hello = hello;
  entry.credential = device_->ring().Find(IdIn(hello.nonce));
  entry.until_nanos = now + static_cast<uint64_t>(kAnswerTimeout.count());
  entry.handshake.connector_nonce = entry.hello.nonce;
  entry.handshake.hello = AsBytes(entry.hello);
  if (!DrawNonce(&entry.handshake.listener_nonce).ok() ||
      !Prove(entry.credential->secret(), Role::kListener, entry.handshake, &challenge.proof).ok()) {
    Refuse(std::move(id), VerbsMessage::kNotAdmitted, "the listener cannot prove itself", false);
    return;
  }
  challenge.nonce = entry.handshake.listener_nonce;
  size_t silent = 0;
  {
    MutexLock lock(&mutex_);
    while (!challenged_order_.empty()) {
      const auto oldest = challenged_.find(challenged_order_.front());
      if (oldest != challenged_.end()) {
        if (oldest->second.until_nanos > now && challenged_.size() < kMaxChallenged) break;
        challenged_.erase(oldest);
        silent++;
      }
      challenged_order_.pop_front();
    }
    challenged_order_.push_back(challenge.nonce);
    challenged_.emplace(challenge.nonce, std::move(entry));
  }
  RejectId(id.get(), AsBytes(challenge));
  for (; silent > 0; silent--)
    device_->refusals()->Refused(text_, "one that was challenged and stayed silent");
}

void VerbsListener::TakeAnswer(UniqueCmId id, const rdma_conn_param& parameters,
                               const VerbsAnswer& answer) {
  Challenged entry;
  bool found = false;
  {
    MutexLock lock(&mutex_);
    // Taken out whatever comes of it: a challenge is answered once.
    const auto node = challenged_.extract(answer.listener_nonce);
    if (!node.empty()) {
      found = node.mapped().until_nanos > device_->clock()->NowNanos();
      entry = std::move(node.mapped());
    }
  }
  if (!found) {
    Refuse(std::move(id), VerbsMessage::kNotAdmitted, "answers no challenge", true);
    return;
  }
  const Status known =
      CheckProof(answer.proof, entry.credential->secret(), Role::kConnector, entry.handshake);
  if (!known.ok()) {
    Refuse(std::move(id), VerbsMessage::kNotAdmitted, std::string(known.message()), true);
    return;
  }
  const ReadLimits limits = MaxReadLimits(device_->adapter());
  Guest guest{.hello = entry.hello,
              .credential = std::move(entry.credential),
              .handshake = std::move(entry.handshake),
              .connection = std::make_shared<VerbsConnection>(PeerName(*id)),
              .reads = {.incoming = std::min(limits.incoming, parameters.responder_resources),
                        .outgoing = std::min(limits.outgoing, parameters.initiator_depth)}};
  bool full = false;
  {
    MutexLock lock(&mutex_);
    full = guests_.size() >= kMaxGuests;
  }
  if (full) {
    Refuse(std::move(id), VerbsMessage::kNotAdmitted, "too many wait to be accepted", false);
    return;
  }
  // From here on its events are the connection's.
  id->context = static_cast<CmHandler*>(guest.connection.get());
  guest.connection->Adopt(std::move(id));
  MutexLock lock(&mutex_);
  guests_.push_back(std::move(guest));
  changed_.SignalAll();
}

}  // namespace nacre::rdma
