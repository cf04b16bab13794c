#include "rdma/verbs/queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "rdma/verbs/device.h"

namespace nacre::rdma {

namespace {

constexpr uint32_t kAtomicBytes = sizeof(uint64_t);

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsDevice* device, std::shared_ptr<VerbsConnection> connection,
                               QueueDepths depths, VerbsCompletionQueue* send_queue,
                               VerbsCompletionQueue* receive_queue, uint32_t work_requests)
    : send_queue_(send_queue),
      connection_(std::move(connection)),
      device_(device),
      // Beside the adapter's there may be as many that it never sees.
      entries_(std::make_unique<Entry[]>(
          std::bit_ceil(work_requests + static_cast<uint32_t>(depths.send)))),
      entry_mask_(std::bit_ceil(work_requests + static_cast<uint32_t>(depths.send)) - 1),
      send_depth_(static_cast<uint32_t>(depths.send)),
      receive_depth_(static_cast<uint32_t>(depths.receive)),
      control_(depths.control),
      work_requests_(work_requests),
      receive_queue_(receive_queue),
      receives_(std::make_unique<uint64_t[]>(std::bit_ceil(receive_depth_))),
      receive_mask_(std::bit_ceil(receive_depth_) - 1) {
  for (uint32_t i = 0; i < kMaxBatch; i++) {
    batch_[i].next = i + 1 < kMaxBatch ? &batch_[i + 1] : nullptr;
    batch_[i].sg_list = batch_elements_[i].data();
  }
  number_in_send_queue_ = send_queue_->Attach(this);
  number_in_receive_queue_ =
      receive_queue_ == send_queue_ ? number_in_send_queue_ : receive_queue_->Attach(this);
}

VerbsQueuePair::~VerbsQueuePair() {
  Drain();
  if (device_->loop()->LinkIsUp()) {
    connection_->Disconnect();
  } else {
    device_->loop()->Park(connection_);
  }
  queue_pair_.reset();
  send_queue_->Detach(this);
  if (receive_queue_ != send_queue_) receive_queue_->Detach(this);
  send_queue_->Unpromise(appended_ - retired_);
  if (heartbeat_under_way_) EndHeartbeat();
  receive_queue_->Unpromise(receives_posted_ - receives_done_);
  device_->Remove(this);
}

inline bool VerbsQueuePair::IsLocal(const LocalBuffer& buffer) const {
  // All regions of a caller that meets the contract are this backend's.
  const auto* region = static_cast<const VerbsRegion*>(buffer.region);
  if (region == nullptr || region->adapter() != &device_->adapter()) return false;
  const uint64_t offset =
      reinterpret_cast<uintptr_t>(buffer.data) - reinterpret_cast<uintptr_t>(region->data());
  return offset <= region->size() && buffer.size <= region->size() - offset;
}

Status VerbsQueuePair::Busy(const char* what) {
  Ring();  // The caller may need their completions to make room.
  return Status::Busy(peer() + ": " + what);
}

bool VerbsQueuePair::PeerTakesMessage(Opcode opcode) {
  if (!IsMessage(opcode) || messages_ < receive_depth_) [[likely]]
    return true;
  // Unsignalled requests are signalled to the adapter every so often, which may have more to
  // report.
  Ring();
  while (send_queue_->Collect()) {
  }
  return messages_ < receive_depth_;
}

inline Status VerbsQueuePair::Submit(const Request& request) {
  if (requests_ >= send_depth_ || !send_queue_->HasRoom()) [[unlikely]]
    return Busy("the queue for requests is full");
  const bool taken = PeerTakesMessage(request.opcode);
  if (broken()) [[unlikely]]
    return SubmitFailure(request, CompletionCode::kFlushed);
  if (!taken) return Busy("takes no more messages");
  if (appended_ - retired_ >= work_requests_) [[unlikely]]
    return Busy("the adapter's queue is full");
  const uint32_t size = request.local.size;
  if (request.misaligned) [[unlikely]]
    return SubmitFailure(request, CompletionCode::kRemoteAccessError);
  uint64_t part_bytes = device_->adapter().max_message_bytes();
  if (size > 0) {
    if (!IsLocal(request.local)) [[unlikely]]
      return SubmitFailure(request, CompletionCode::kLocalError);
    part_bytes = std::min(part_bytes,
                          static_cast<const VerbsRegion*>(request.local.region)->max_part_bytes());
    if (size > part_bytes) [[unlikely]]
      return SubmitParts(request, part_bytes);
  }
  bool signal = (request.flags & kSignaled) != 0;
  if (IsMessage(request.opcode)) {
    signal |= ++messages_posted_ % std::max(receive_depth_ / 2, 1u) == 0;
  }
  AddToBatch(request, 0, size, true, signal);
  AddEntry(request, Entry::kLast);
  if ((request.flags & kMore) == 0 || batch_count_ == kMaxBatch) Ring();
  return Status::OK();
}

Status VerbsQueuePair::SubmitParts(const Request& request, uint64_t part_bytes) {
  const uint64_t size = request.local.size;
  const uint64_t parts = (size + part_bytes - 1) / part_bytes;
  if (parts > work_requests_) {
    return Status::InvalidArgument(
        peer() + ": " + std::to_string(size) + " bytes take " + std::to_string(parts) +
        " requests of the adapter; the queue pair has " + std::to_string(work_requests_));
  }
  if (appended_ - retired_ + parts > work_requests_ || !send_queue_->HasRoom(parts)) {
    return Busy("the adapter's queue is full");
  }
  for (uint64_t offset = 0; offset < size; offset += part_bytes) {
    const bool last = offset + part_bytes >= size;
    AddToBatch(request, offset, static_cast<uint32_t>(std::min(part_bytes, size - offset)), last,
               last && (request.flags & kSignaled) != 0);
    AddEntry(request, last ? Entry::kLast : uint8_t{0});
    if (batch_count_ == kMaxBatch) Ring();
  }
  if ((request.flags & kMore) == 0) Ring();
  return Status::OK();
}

Status VerbsQueuePair::SubmitFailure(const Request& request, CompletionCode code) {
  if (broken()) {
    LookAtConnection();
    AddEntry(request, Entry::kLast);
    FlushSends();
    return Status::OK();
  }
  // A request of no bytes names no memory.
  Request marker = request;
  marker.operation = IBV_WR_RDMA_WRITE;
  marker.remote = {};
  AddToBatch(marker, 0, 0, true, true);
  AddEntry(request, Entry::kLast, code);
  Ring();
  return Status::OK();
}

inline void VerbsQueuePair::AddToBatch(const Request& request, uint64_t offset, uint32_t size,
                                       bool last, bool signal) {
  ibv_send_wr& work = batch_[batch_count_];
  std::array<ibv_sge, 2>& elements = batch_elements_[batch_count_];
  batch_count_++;
  work.wr_id = WorkRequestId::Make(number_in_send_queue_, appended_);
  work.opcode =
      last || request.opcode != Opcode::kWriteWithImm ? request.operation : IBV_WR_RDMA_WRITE;
  work.send_flags = signal ? IBV_SEND_SIGNALED : 0;
  work.num_sge = size == 0 ? 0
                           : static_cast<const VerbsRegion*>(request.local.region)
                                 ->ScatterGather(request.local.data + offset, size, &elements);
  if (request.opcode == Opcode::kCompareSwap || request.opcode == Opcode::kFetchAdd) {
    work.wr.atomic.remote_addr = request.remote.address;
    work.wr.atomic.rkey = request.remote.key;
    work.wr.atomic.compare_add = request.first;
    work.wr.atomic.swap = request.second;
    return;
  }
  if (request.opcode != Opcode::kRead && size <= inline_bytes_) work.send_flags |= IBV_SEND_INLINE;
  work.imm_data = htonl(static_cast<uint32_t>(request.first));
  work.wr.rdma.remote_addr = request.remote.address + offset;
  work.wr.rdma.rkey = request.remote.key;
}

inline void VerbsQueuePair::AddEntry(const Request& request, uint8_t flags,
                                     CompletionCode outcome) {
  if ((request.flags & kSignaled) != 0) flags |= Entry::kReported;
  entries_[appended_++ & entry_mask_] = {.id = request.id,
                                         .bytes = request.local.size,
                                         .opcode = request.opcode,
                                         .flags = flags,
                                         .outcome = outcome};
  send_queue_->Promise(1);
  if ((flags & Entry::kLast) == 0) return;
  requests_++;
  if (IsMessage(request.opcode)) messages_++;
}

void VerbsQueuePair::Ring() {
  if (batch_count_ == 0) return;
  ibv_send_wr* const last = &batch_[batch_count_ - 1];
  ibv_send_wr* const behind = std::exchange(last->next, nullptr);
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_pair_.get(), batch_.data(), &refused);
  last->next = behind;
  if (error == 0) [[likely]] {
    handed_ += std::exchange(batch_count_, 0);
    return;
  }
  handed_ += static_cast<uint64_t>(refused - batch_.data());
  device_->Warn(peer(), "ibv_post_send", error);
  Break(CompletionCode::kLocalError);
}

void VerbsQueuePair::Heartbeat() {
  if (!send_queue_->PromiseHeartbeat()) return;
  heartbeat_under_way_ = true;
  AddToBatch({.id = 0,
              .opcode = Opcode::kWrite,
              .operation = IBV_WR_RDMA_WRITE,
              .local = {},
              .remote = {},
              .flags = 0},
             0, 0, true, true);
  entries_[appended_++ & entry_mask_] = {.flags = Entry::kHeartbeat};
  Ring();
}

bool VerbsQueuePair::PostMarker() {
  ibv_send_wr marker{};
  marker.wr_id = WorkRequestId::Make(number_in_send_queue_, handed_);
  marker.opcode = IBV_WR_RDMA_WRITE;
  marker.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(queue_pair_.get(), &marker, &refused) == 0;
}

Status VerbsQueuePair::PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) {
  return Submit({.id = id,
                 .opcode = Opcode::kRead,
                 .operation = IBV_WR_RDMA_READ,
                 .local = to,
                 .remote = from,
                 .flags = flags});
}

Status VerbsQueuePair::PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) {
  return Submit({.id = id,
                 .opcode = Opcode::kWrite,
                 .operation = IBV_WR_RDMA_WRITE,
                 .local = from,
                 .remote = to,
                 .flags = flags});
}

Status VerbsQueuePair::PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                        uint32_t immediate, uint8_t flags) {
  return Submit({.id = id,
                 .opcode = Opcode::kWriteWithImm,
                 .operation = IBV_WR_RDMA_WRITE_WITH_IMM,
                 .local = from,
                 .remote = to,
                 .first = immediate,
                 .flags = flags});
}

Status VerbsQueuePair::SubmitAtomic(Request request) {
  if (!device_->adapter().has_atomics()) {
    return Status::NotSupported(device_->adapter().name() + " has no atomic operations");
  }
  const uint32_t room = request.local.size;
  request.local.size = kAtomicBytes;
  // Adapters differ in what they make of it.
  request.misaligned = request.remote.address % kAtomicBytes != 0;
  if (room < kAtomicBytes) request.local.region = nullptr;  // Fails as a buffer of no region does.
  return Submit(request);
}

Status VerbsQueuePair::PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                       uint64_t expected, uint64_t desired, uint8_t flags) {
  return SubmitAtomic({.id = id,
                       .opcode = Opcode::kCompareSwap,
                       .operation = IBV_WR_ATOMIC_CMP_AND_SWP,
                       .local = result,
                       .remote = target,
                       .first = expected,
                       .second = desired,
                       .flags = flags});
}

Status VerbsQueuePair::PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                    uint64_t addend, uint8_t flags) {
  return SubmitAtomic({.id = id,
                       .opcode = Opcode::kFetchAdd,
                       .operation = IBV_WR_ATOMIC_FETCH_AND_ADD,
                       .local = result,
                       .remote = target,
                       .first = addend,
                       .flags = flags});
}

Status VerbsQueuePair::PostSend(uint64_t id, LocalBuffer from, uint8_t flags) {
  if (from.size > Device::kMaxSendBytes) {
    return Status::InvalidArgument("a send of " + std::to_string(from.size) + " bytes; at most " +
                                   std::to_string(Device::kMaxSendBytes) + " are possible");
  }
  return Submit({.id = id,
                 .opcode = Opcode::kSend,
                 .operation = IBV_WR_SEND,
                 .local = from,
                 .remote = {},
                 .flags = flags});
}

Status VerbsQueuePair::PostRecv(uint64_t id, LocalBuffer to) {
  if (receives_posted_ - receives_done_ >= receive_depth_ || !receive_queue_->HasRoom()) {
    return Status::Busy(peer() + ": the queue for receives is full");
  }
  LookAtConnection();
  if (!broken_) {
    std::array<ibv_sge, 2> elements{};
    ibv_recv_wr work{};
    work.wr_id =
        WorkRequestId::Make(number_in_receive_queue_, receives_posted_) | WorkRequestId::kReceive;
    work.sg_list = elements.data();
    // No message is longer, so two elements always do.
    to.size = std::min(to.size, static_cast<uint32_t>(Device::kMaxSendBytes));
    if (to.size > 0 && IsLocal(to)) {
      work.num_sge =
          static_cast<const VerbsRegion*>(to.region)->ScatterGather(to.data, to.size, &elements);
    } else if (to.size > 0) {
      // The adapter finds it wrong when a message arrives.
      elements[0] = {.addr = reinterpret_cast<uintptr_t>(to.data), .length = to.size, .lkey = 0};
      work.num_sge = 1;
    }
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(queue_pair_.get(), &work, &refused); error != 0) {
      return VerbsError(peer() + ": ibv_post_recv", error);
    }
    receives_handed_++;
  }
  receives_[receives_posted_++ & receive_mask_] = id;
  receive_queue_->Promise(1);
  if (broken_) FlushReceives();
  return Status::OK();
}

}  // namespace nacre::rdma
