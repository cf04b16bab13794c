#include "rdma/tcp/queue_pair.h"

#include <utility>

namespace nacre::rdma {

namespace {

constexpr uint32_t kAtomicBytes = sizeof(uint64_t);

TcpConnection::Parts WithSession(TcpConnection::Parts parts, Session::Parts session) {
  session.peer_may_write = parts.peer_may_write;
  parts.session = session;
  return parts;
}

}  // namespace

TcpQueuePair::TcpQueuePair(TcpConnection::Parts parts, QueueDepths depths, RegionTable* regions,
                           TcpCounters* counters, TcpCompletionQueue* send_queue,
                           TcpCompletionQueue* receive_queue)
    : regions_(regions),
      send_queue_(send_queue),
      receive_queue_(receive_queue),
      send_depth_(static_cast<uint64_t>(depths.send)),
      receive_depth_(static_cast<uint64_t>(depths.receive)),
      messages_(parts.messages),
      connection_(std::make_shared<TcpConnection>(
          WithSession(std::move(parts), {.depths = depths,
                                         .regions = regions,
                                         .counters = counters,
                                         .send_queue = send_queue,
                                         .receive_queue = receive_queue,
                                         .queue_pair = this,
                                         .messages = messages_}))) {
  send_queue_->Attach(connection_.get());
  if (receive_queue_ != send_queue_) receive_queue_->Attach(connection_.get());
}

TcpQueuePair::~TcpQueuePair() {
  connection_->Close();
  send_queue_->Detach(connection_.get(), this);
  if (receive_queue_ != send_queue_) receive_queue_->Detach(connection_.get(), this);
}

bool TcpQueuePair::IsLocal(const LocalBuffer& buffer) const {
  // All regions of a caller that meets the contract are this backend's.
  const auto* region = static_cast<const TcpRegion*>(buffer.region);
  if (region == nullptr || region->table() != regions_) return false;
  const uint64_t offset =
      reinterpret_cast<uintptr_t>(buffer.data) - reinterpret_cast<uintptr_t>(region->data());
  return offset <= region->size() && buffer.size <= region->size() - offset;
}

Status TcpQueuePair::Post(Opcode opcode, uint64_t id, const LocalBuffer& local, RemoteBuffer remote,
                          uint8_t flags, uint64_t first, uint64_t second, uint32_t immediate) {
  // Room for a completion is needed even by an unsignalled request: it might fail.
  if (!send_queue_->HasRoom() || posted_ - retired_ >= send_depth_) {
    connection_->Flush();  // The caller may need the completions of a batch to make room.
    return Status::Busy(peer() + ": the queue for requests is full");
  }
  TcpRequest request;
  request.id = id;
  request.local = local.data;
  request.address = remote.address;
  request.first = first;
  request.second = second;
  request.key = remote.key;
  request.size = local.size;
  request.immediate = immediate;
  request.opcode = opcode;
  request.flags = flags;
  request.unusable = local.size > 0 && !IsLocal(local);
  if (opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd) {
    request.unusable = local.size < kAtomicBytes || !IsLocal(local);
    request.size = kAtomicBytes;
  }
  send_queue_->Promise();
  Status status = connection_->Post(request);
  if (status.ok()) {
    posted_++;
  } else {
    send_queue_->Unpromise(1);
  }
  return status;
}

Status TcpQueuePair::PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) {
  return Post(Opcode::kRead, id, to, from, flags);
}

Status TcpQueuePair::PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) {
  return Post(Opcode::kWrite, id, from, to, flags);
}

Status TcpQueuePair::PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                      uint32_t immediate, uint8_t flags) {
  return Post(Opcode::kWriteWithImm, id, from, to, flags, 0, 0, immediate);
}

Status TcpQueuePair::PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                     uint64_t expected, uint64_t desired, uint8_t flags) {
  return Post(Opcode::kCompareSwap, id, result, target, flags, expected, desired);
}

Status TcpQueuePair::PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                  uint64_t addend, uint8_t flags) {
  return Post(Opcode::kFetchAdd, id, result, target, flags, addend);
}

Status TcpQueuePair::PostSend(uint64_t id, LocalBuffer from, uint8_t flags) {
  if (from.size > Device::kMaxSendBytes) {
    return Status::InvalidArgument("a message of " + std::to_string(from.size) +
                                   " bytes; at most " + std::to_string(Device::kMaxSendBytes) +
                                   " are possible");
  }
  if (!messages_) {
    return Status::InvalidArgument(peer() + ": messages are encrypted; this connection is not");
  }
  return Post(Opcode::kSend, id, from, {}, flags);
}

Status TcpQueuePair::PostRecv(uint64_t id, LocalBuffer to) {
  if (!receive_queue_->HasRoom() || connection_->receives_outstanding() >= receive_depth_) {
    return Status::Busy(peer() + ": the queue for receives is full");
  }
  // Without local memory the buffer takes messages of no bytes; others fail when they come.
  if (to.size > 0 && !IsLocal(to)) to = {};
  receive_queue_->Promise();
  connection_->PostReceive(id, to);
  return Status::OK();
}

}  // namespace nacre::rdma
