#include "rdma/verbs/connector.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "rdma/verbs/device.h"

namespace nacre::rdma {

namespace {

/// Reasons of a REJ by the connection manager itself, as InfiniBand numbers them (table 106 of
/// volume 1).
constexpr int kStaleConnection = 10;
constexpr int kInvalidService = 8;
constexpr int kConsumerDefined = 28;

int Millis(const Deadline& deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, 3'600'000));
}

bool IsMappedIpv4(const ibv_gid& gid) {
  static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

}  // namespace

Status VerbsConnector::NobodyThere(const std::string& why) const {
  return Status::Unavailable(address_.ToString() + ": " + why);
}

Status VerbsConnector::Prepare(const std::string& address, const std::string& private_data,
                               QueueDepths depths, VerbsCompletionQueue* send_queue,
                               VerbsCompletionQueue* receive_queue) {
  NACRE_RETURN_IF_ERROR(ParseVerbsAddress(address, &address_));
  if (address_.port == 0) {
    return Status::InvalidArgument(address_.ToString() + ": names no listener");
  }
  NACRE_RETURN_IF_ERROR(CheckLink());
  own_ = device_->ring().own();
  NACRE_RETURN_IF_ERROR(DrawConnectorNonce(own_->id(), &hello_.nonce));
  hello_.send_depth = static_cast<uint16_t>(depths.send);
  hello_.receive_depth = static_cast<uint16_t>(depths.receive);
  hello_.SetPrivateData(private_data, depths.control);
  connection_ = std::make_shared<VerbsConnection>(address_.ToString());
  return VerbsQueuePair::Create(device_, connection_, depths, send_queue, receive_queue,
                                &queue_pair_);
}

Status VerbsConnector::Connect(std::string* reply, std::unique_ptr<QueuePair>* queue_pair) {
  handshake_.connector_nonce = hello_.nonce;
  handshake_.hello = AsBytes(hello_);
  NACRE_RETURN_IF_ERROR(Resolve());
  CmNotice notice;
  NACRE_RETURN_IF_ERROR(Ask(AsBytes(hello_), &notice));
  VerbsChallenge challenge;
  if (notice.type != RDMA_CM_EVENT_REJECTED ||
      !DecodeVerbsChallenge(notice.private_data, &challenge)) {
    return Refusal(notice);
  }
  handshake_.listener_nonce = challenge.nonce;
  const Status known = CheckProof(challenge.proof, own_->secret(), Role::kListener, handshake_);
  if (!known.ok()) {
    TurnAway();
    return NobodyThere(std::string(known.message()));
  }
  NACRE_RETURN_IF_ERROR(Answer(reply));
  *queue_pair = std::move(queue_pair_);
  return Status::OK();
}

Status VerbsConnector::Answer(std::string* reply) {
  VerbsAnswer answer;
  answer.listener_nonce = handshake_.listener_nonce;
  NACRE_RETURN_IF_ERROR(Prove(own_->secret(), Role::kConnector, handshake_, &answer.proof));
  NACRE_RETURN_IF_ERROR(Resolve());
  CmNotice notice;
  NACRE_RETURN_IF_ERROR(Ask(AsBytes(answer), &notice));
  VerbsAcceptance acceptance;
  if (notice.type != RDMA_CM_EVENT_CONNECT_RESPONSE) return Refusal(notice);
  if (!DecodeVerbsAcceptance(notice.private_data, &acceptance)) {
    return NobodyThere("its answer makes no sense");
  }
  handshake_.reply.assign(1, static_cast<char>(VerbsMessage::kAcceptance));
  handshake_.reply.append(acceptance.private_data, acceptance.private_size);
  const Status known = CheckProof(acceptance.proof, own_->secret(), Role::kListener, handshake_);
  if (!known.ok()) return NobodyThere(std::string(known.message()));
  // This must come late: from here on the peer has access.
  NACRE_RETURN_IF_ERROR(queue_pair_->BringUp(nullptr, /*peer_may_write=*/true));
  if (rdma_establish(connection_->id()) != 0) {
    return VerbsError(address_.ToString() + ": rdma_establish", errno);
  }
  queue_pair_->Establish();
  reply->assign(acceptance.private_data, acceptance.private_size);
  return Status::OK();
}

void VerbsConnector::TurnAway() {
  VerbsAnswer answer;  // This is an empty proof: ours would let an impostor guess secrets.
  answer.listener_nonce = handshake_.listener_nonce;
  CmNotice notice;
  Status told = Resolve();
  if (told.ok()) told = Ask(AsBytes(answer), &notice);
  told.IgnoreError();  // Its operator merely learns nothing.
}

Status VerbsConnector::Resolve() {
  sockaddr_storage source{};
  if (FindSource(&source)) {
    NACRE_RETURN_IF_ERROR(ResolveFrom(reinterpret_cast<sockaddr*>(&source)));
  } else {
    NACRE_RETURN_IF_ERROR(ResolveFrom(nullptr));
  }
  NACRE_RETURN_IF_ERROR(CheckAdapter());
  CmNotice notice;
  if (rdma_resolve_route(connection_->id(), Millis(deadline_)) != 0) {
    return NobodyThere(std::string("rdma_resolve_route: ") + std::strerror(errno));
  }
  NACRE_RETURN_IF_ERROR(Await(RDMA_CM_EVENT_ROUTE_RESOLVED, &notice));
  return notice.type == RDMA_CM_EVENT_ROUTE_RESOLVED ? Status::OK() : Refusal(notice);
}

Status VerbsConnector::ResolveFrom(sockaddr* source) {
  UniqueCmId id;
  NACRE_RETURN_IF_ERROR(device_->loop()->CreateId(connection_.get(), &id));
  connection_->Adopt(std::move(id));
  if (rdma_resolve_addr(connection_->id(), source, address_.get(), Millis(deadline_)) != 0) {
    return NobodyThere(std::string("rdma_resolve_addr: ") + std::strerror(errno));
  }
  CmNotice notice;
  NACRE_RETURN_IF_ERROR(Await(RDMA_CM_EVENT_ADDR_RESOLVED, &notice));
  return notice.type == RDMA_CM_EVENT_ADDR_RESOLVED ? Status::OK() : Refusal(notice);
}

Status VerbsConnector::CheckLink() const {
  if (device_->loop()->LinkIsUp()) return Status::OK();
  return NobodyThere("port " + std::to_string(device_->adapter().port()) + " of " +
                     device_->adapter().name() + " is down");
}

Status VerbsConnector::CheckAdapter() const {
  const Adapter& adapter = device_->adapter();
  const rdma_cm_id* const id = connection_->id();
  const std::string found = id->verbs == nullptr ? "" : ibv_get_device_name(id->verbs->device);
  if (found == adapter.name() && id->port_num == adapter.port()) return Status::OK();
  return Status::InvalidArgument(
      address_.ToString() + ": the route to it goes through RDMA device " + found + " port " +
      std::to_string(id->port_num) + ", but " + adapter.name() + " port " +
      std::to_string(adapter.port()) + " is opened; choose by '?device=" + found +
      "&port=" + std::to_string(id->port_num) + "'");
}

bool VerbsConnector::FindSource(sockaddr_storage* source) const {
  const VerbsParameters& parameters = device_->adapter().parameters();
  const bool asked = parameters.gid >= 0 || parameters.port > 0 || !parameters.device.empty();
  if (!asked) return false;
  const int family = address_.socket_address.ss_family;
  const int first = std::max(parameters.gid, 0);
  constexpr int kMaxGids = 256;
  const int last = parameters.gid >= 0 ? parameters.gid : kMaxGids - 1;
  for (int index = first; index <= last; index++) {
    ibv_gid_entry entry{};
    if (!device_->adapter().FindGid(index, &entry)) continue;
    if (entry.gid_type == IBV_GID_TYPE_IB) return false;  // No IP address.
    if (parameters.gid < 0 && entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    if (family == AF_INET && IsMappedIpv4(entry.gid)) {
      auto* const address = reinterpret_cast<sockaddr_in*>(source);
      address->sin_family = AF_INET;
      std::memcpy(&address->sin_addr, entry.gid.raw + 12, 4);
      return true;
    }
    const bool link_local = entry.gid.raw[0] == 0xfe && (entry.gid.raw[1] & 0xc0) == 0x80;
    if (family == AF_INET6 && !IsMappedIpv4(entry.gid) && (parameters.gid >= 0 || !link_local)) {
      auto* const address = reinterpret_cast<sockaddr_in6*>(source);
      address->sin6_family = AF_INET6;
      std::memcpy(&address->sin6_addr, entry.gid.raw, 16);
      if (link_local) address->sin6_scope_id = entry.ndev_ifindex;
      return true;
    }
  }
  return false;
}

Status VerbsConnector::Ask(std::string_view request, CmNotice* notice) {
  const ReadLimits reads = MaxReadLimits(device_->adapter());
  rdma_conn_param parameters{};
  parameters.private_data = request.data();
  parameters.private_data_len = static_cast<uint8_t>(request.size());
  parameters.responder_resources = reads.incoming;
  parameters.initiator_depth = reads.outgoing;
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  // In the first request as well, which never gets it: the number tells requests of this machine
  // apart.
  parameters.qp_num = queue_pair_->number();
  // Once more: to resolve the route has taken its time.
  NACRE_RETURN_IF_ERROR(CheckLink());
  if (rdma_connect(connection_->id(), &parameters) != 0) {
    return NobodyThere(std::string("rdma_connect: ") + std::strerror(errno));
  }
  return Await(RDMA_CM_EVENT_CONNECT_RESPONSE, notice);
}

Status VerbsConnector::Await(rdma_cm_event_type wanted, CmNotice* notice) {
  const Status status = connection_->Await(wanted, deadline_, notice);
  return status.IsTimedOut() ? NobodyThere("the listener did not answer in time") : status;
}

Status VerbsConnector::Refusal(const CmNotice& notice) const {
  VerbsHeader header;
  std::string reason;
  if (notice.type == RDMA_CM_EVENT_REJECTED &&
      DecodeVerbsRefusal(notice.private_data, &header, &reason)) {
    if (header.message == VerbsMessage::kOtherVersion || header.version != kVerbsVersion) {
      return Status::NotSupported(
          address_.ToString() + ": speaks version " + std::to_string(header.version) +
          " of the verbs protocol, this process version " + std::to_string(kVerbsVersion));
    }
    if (header.message == VerbsMessage::kRefused) return Status::InvalidArgument(reason);
    if (header.message == VerbsMessage::kNotAdmitted) return NobodyThere(reason);
    return NobodyThere("its answer makes no sense");
  }
  switch (notice.type) {
    case RDMA_CM_EVENT_REJECTED:
      switch (notice.status) {
        case kInvalidService:
          return NobodyThere("nobody listens there");
        case kStaleConnection:
          return NobodyThere("an earlier connection has not ended there yet");
        case kConsumerDefined:
          return NobodyThere("the listener closed");
        default:
          return NobodyThere("rejected with InfiniBand's code " + std::to_string(notice.status));
      }
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return NobodyThere(std::string("no route to it through an RDMA device (") +
                         std::strerror(std::abs(notice.status)) + ")");
    default:
      return NobodyThere(std::string(rdma_event_str(notice.type)) + " (" +
                         std::strerror(std::abs(notice.status)) + ")");
  }
}

}  // namespace nacre::rdma
