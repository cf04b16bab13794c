// The life of a queue pair beside its requests: from its creation to ready, its completions, and
// how it breaks.

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "rdma/verbs/device.h"
#include "rdma/verbs/queue_pair.h"

namespace nacre::rdma {

namespace {

/// Room for requests that go to the adapter in several parts.
constexpr uint32_t kSpareWorkRequests = 64;
constexpr uint32_t kMarkers = 2;  ///< One at the break, one at the end.
/// Inline data saves the adapter a read over the bus; beyond this it costs more than it saves.
constexpr uint32_t kInlineBytes = 128;
constexpr std::chrono::milliseconds kDrainTimeout{50};
/// The most there is but for 7, which soft-RoCE takes for "without end"; the time between them
/// follows from the parameter timeout_ms.
constexpr uint8_t kRetries = 6;
/// The adapter retries without end: the peer's depth bounds how many messages wait for a receive,
/// and a caller that waits too long for an answer destroys the queue pair.
constexpr uint8_t kReceiverNotReadyRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;  ///< 0.64 ms between them.

/// A request is given up after 1 + kRetries times 4.096 us << exponent; adapters take up to four
/// times as long.
uint8_t TimeoutExponent(std::chrono::nanoseconds timeout) {
  const uint64_t units = static_cast<uint64_t>(timeout.count()) / (1 + kRetries) / 4096;
  return static_cast<uint8_t>(std::clamp(static_cast<int>(std::bit_width(units)) - 1, 1, 31));
}

/// The tally has one writer, so that no read-modify-write is needed.
void Add(std::atomic<uint64_t>* counter, uint64_t amount) {
  counter->store(counter->load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

CompletionCode CodeOfSend(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
    // A misaligned atomic; a receive too small for its message; what the secret does not allow.
    case IBV_WC_REM_INV_REQ_ERR:
      return CompletionCode::kRemoteAccessError;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return CompletionCode::kReceiverNotReady;
    case IBV_WC_WR_FLUSH_ERR:
      return CompletionCode::kFlushed;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_LOC_QP_OP_ERR:  // How soft-RoCE says that its link is down.
      return CompletionCode::kPeerGone;
    default:
      return CompletionCode::kLocalError;
  }
}

CompletionCode CodeOfReceive(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
      return CompletionCode::kFlushed;
    case IBV_WC_REM_ABORT_ERR:
      return CompletionCode::kPeerGone;
    default:
      return CompletionCode::kLocalError;
  }
}

unsigned int AccessOf(bool peer_may_write, bool control) {
  if (peer_may_write) {
    return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  }
  return control ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
}

}  // namespace

Status VerbsQueuePair::Create(VerbsDevice* device, std::shared_ptr<VerbsConnection> connection,
                              QueueDepths depths, VerbsCompletionQueue* send_queue,
                              VerbsCompletionQueue* receive_queue,
                              std::unique_ptr<VerbsQueuePair>* queue_pair) {
  const Adapter& adapter = device->adapter();
  const uint32_t work_requests = static_cast<uint32_t>(depths.send) + kSpareWorkRequests;
  if (static_cast<int>(work_requests + kMarkers) > adapter.attributes().max_qp_wr ||
      depths.receive > adapter.attributes().max_qp_wr) {
    return Status::InvalidArgument(
        "queue depths " + std::to_string(depths.send) + " and " + std::to_string(depths.receive) +
        ": " + adapter.name() + " has room for " + std::to_string(adapter.attributes().max_qp_wr));
  }
  ibv_qp_init_attr wanted{};
  wanted.qp_context = connection.get();
  wanted.send_cq = send_queue->get();
  wanted.recv_cq = receive_queue->get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = work_requests + kMarkers;
  wanted.cap.max_recv_wr = static_cast<uint32_t>(std::max(depths.receive, 1));
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 2;
  wanted.cap.max_inline_data = kInlineBytes;
  ibv_qp_init_attr granted = wanted;
  UniqueQueuePair made(ibv_create_qp(adapter.protection_domain(), &granted));
  if (made == nullptr) {
    granted = wanted;
    granted.cap.max_inline_data = 0;
    made.reset(ibv_create_qp(adapter.protection_domain(), &granted));
  }
  if (made == nullptr) {
    const int error = errno;
    const std::string what = "ibv_create_qp on " + adapter.name();
    return error == ENOMEM || error == ENOSPC
               ? Status::NoSpace(what + ": no room for another queue pair")
               : VerbsError(what, error);
  }
  queue_pair->reset(new VerbsQueuePair(device, std::move(connection), depths, send_queue,
                                       receive_queue, work_requests));
  (*queue_pair)->queue_pair_ = std::move(made);
  (*queue_pair)->inline_bytes_ = std::min(granted.cap.max_inline_data, kInlineBytes);
  (*queue_pair)->connection_->SetSignals(send_queue->signal(), receive_queue->signal());
  device->Insert(queue_pair->get());
  return Status::OK();
}

Status VerbsQueuePair::BringUp(const ReadLimits* reads, bool peer_may_write) {
  const Adapter& adapter = device_->adapter();
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    if (rdma_init_qp_attr(connection_->id(), &attributes, &mask) != 0) {
      return VerbsError(peer() + ": rdma_init_qp_attr", errno);
    }
    mask &= ~kKernelOnlyMask;
    attributes.qp_access_flags = AccessOf(peer_may_write, control_);
    attributes.min_rnr_timer = kReceiverNotReadyTimer;
    attributes.timeout = TimeoutExponent(adapter.parameters().timeout);
    attributes.retry_cnt = kRetries;
    attributes.rnr_retry = kReceiverNotReadyRetries;
    if (reads != nullptr) {
      attributes.max_dest_rd_atomic = reads->incoming;
      attributes.max_rd_atomic = reads->outgoing;
    }
    if (state == IBV_QPS_RTR) NACRE_RETURN_IF_ERROR(CheckPath(attributes));
    if (const int error = ibv_modify_qp(queue_pair_.get(), &attributes, mask); error != 0) {
      return VerbsError(peer() + ": ibv_modify_qp on " + adapter.name(), error);
    }
  }
  return Status::OK();
}

Status VerbsQueuePair::CheckPath(const ibv_qp_attr& attributes) const {
  const Adapter& adapter = device_->adapter();
  const int chosen = attributes.ah_attr.is_global != 0 ? attributes.ah_attr.grh.sgid_index : -1;
  ibv_gid_entry entry{};
  entry.gid_type = IBV_GID_TYPE_IB;
  if (chosen >= 0) adapter.FindGid(chosen, &entry);
  const int wanted = adapter.parameters().gid;
  if (wanted >= 0 && chosen != wanted) {
    return Status::InvalidArgument(
        peer() + ": the connection manager chose GID index " + std::to_string(chosen) + " (" +
        GidTypeName(entry) + "), not gid=" + std::to_string(wanted) +
        "; the RoCE mode is set by default_roce_mode in /sys/kernel/config/rdma_cm");
  }
  device_->TellPath(peer(), chosen, GidTypeName(entry), 128 << attributes.path_mtu);
  return Status::OK();
}

void VerbsQueuePair::Complete(const ibv_wc& completion) {
  if ((completion.wr_id & WorkRequestId::kReceive) != 0) {
    CompleteReceive(completion);
  } else {
    CompleteSend(completion);
  }
}

inline void VerbsQueuePair::Succeed(const Entry& entry) {
  send_queue_->Unpromise(1);
  if ((entry.flags & Entry::kLast) == 0) {
    if ((entry.flags & Entry::kHeartbeat) != 0) EndHeartbeat();
    return;
  }
  requests_--;
  switch (entry.opcode) {
    case Opcode::kRead:
      Add(&connection_->tally.bytes_read, entry.bytes);
      Add(&connection_->tally.reads, 1);
      break;
    case Opcode::kSend:
    case Opcode::kWriteWithImm:
      messages_--;
      [[fallthrough]];
    case Opcode::kWrite:
      Add(&connection_->tally.bytes_written, entry.bytes);
      Add(&connection_->tally.writes, 1);
      break;
    default:
      break;
  }
}

void VerbsQueuePair::RetireUntil(uint64_t number) {
  while (retired_ != number) Succeed(entries_[retired_++ & entry_mask_]);
}

void VerbsQueuePair::FailOldest(CompletionCode code) {
  const Entry& entry = entries_[retired_++ & entry_mask_];
  send_queue_->Unpromise(1);
  // A request says once why it failed: for its first part that did.
  if (part_failure_ == CompletionCode::kSuccess) part_failure_ = code;
  if ((entry.flags & Entry::kLast) == 0) return;
  requests_--;
  if (IsMessage(entry.opcode)) messages_--;
  send_queue_->Emit({.id = entry.id,
                     .queue_pair = this,
                     .bytes = entry.bytes,
                     .opcode = entry.opcode,
                     .code = std::exchange(part_failure_, CompletionCode::kSuccess)});
}

void VerbsQueuePair::EndHeartbeat() {
  heartbeat_under_way_ = false;
  send_queue_->EndHeartbeat();
}

bool VerbsQueuePair::RetireHeartbeat() {
  if ((entries_[retired_ & entry_mask_].flags & Entry::kHeartbeat) == 0) return false;
  retired_++;
  send_queue_->Unpromise(1);
  EndHeartbeat();
  return true;
}

void VerbsQueuePair::CompleteSend(const ibv_wc& completion) {
  if (lost_) return;
  const uint64_t number = retired_ + static_cast<uint32_t>(static_cast<uint32_t>(completion.wr_id) -
                                                           static_cast<uint32_t>(retired_));
  RetireUntil(std::min(number, handed_));
  if (number >= handed_) {  // The marker, whatever became of it.
    if (broken_) FlushSends();
    return;
  }
  const Entry& entry = entries_[number & entry_mask_];
  if (completion.status == IBV_WC_SUCCESS && entry.outcome == CompletionCode::kSuccess) [[likely]] {
    retired_++;
    Succeed(entry);
    if ((entry.flags & Entry::kReported) == 0 || (entry.flags & Entry::kLast) == 0) return;
    send_queue_->Emit({.id = entry.id,
                       .queue_pair = this,
                       .bytes = entry.bytes,
                       .opcode = entry.opcode,
                       .code = CompletionCode::kSuccess});
    return;
  }
  CompletionCode code =
      completion.status == IBV_WC_SUCCESS ? entry.outcome : CodeOfSend(completion.status);
  if (completion.status == IBV_WC_LOC_QP_OP_ERR) device_->loop()->SuspectLink();
  LookAtConnection();
  if (lost_) return;  // All has been flushed.
  if (RetireHeartbeat()) {
    // The next request is the first to tell of it.
    Break(code == CompletionCode::kFlushed ? code : CompletionCode::kPeerGone);
    FlushSends();
    return;
  }
  if (code == CompletionCode::kFlushed || failure_told_) {
    code = next_failure_;
  }
  failure_told_ = true;
  next_failure_ = CompletionCode::kFlushed;
  FailOldest(code);
  Break(CompletionCode::kFlushed);
  FlushSends();
}

void VerbsQueuePair::CompleteReceive(const ibv_wc& completion) {
  if (lost_) return;
  if (completion.status == IBV_WC_SUCCESS) [[likely]] {
    const bool immediate = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    EmitReceive(immediate ? Opcode::kRecvWithImm : Opcode::kRecv, CompletionCode::kSuccess,
                completion.byte_len, immediate ? ntohl(completion.imm_data) : 0);
    return;
  }
  const CompletionCode code = CodeOfReceive(completion.status);
  EmitReceive(Opcode::kRecv, broken_ ? CompletionCode::kFlushed : code, 0, 0);
  if (code == CompletionCode::kFlushed) LookAtConnection();
  Break(CompletionCode::kFlushed);
  FlushReceives();
}

void VerbsQueuePair::EmitReceive(Opcode opcode, CompletionCode code, uint32_t bytes,
                                 uint32_t immediate) {
  const uint64_t id = receives_[receives_done_++ & receive_mask_];
  receive_queue_->Unpromise(1);
  receive_queue_->Emit({.id = id,
                        .queue_pair = this,
                        .bytes = bytes,
                        .immediate = immediate,
                        .opcode = opcode,
                        .code = code});
}

void VerbsQueuePair::Establish() {
  established_ = true;
  heartbeat_period_ = device_->loop()->heartbeat_period();
  if (control_) connection_->WantHeartbeats();
}

void VerbsQueuePair::Attend() {
  LookAtConnection();
  if (!control_ || !established_ || broken_ || heartbeat_under_way_) return;
  const uint64_t period = device_->loop()->heartbeat_period();
  if (std::exchange(heartbeat_period_, period) == period) return;
  // Posted requests detect a dead peer as well, except unsignalled ones: unless a signalled one
  // follows, their failure goes unreported.
  const bool idle = std::exchange(appended_then_, appended_) == appended_ && batch_count_ == 0 &&
                    appended_ - retired_ < work_requests_;
  if (!idle || !device_->loop()->HeartbeatsHaveSense()) return;
  Heartbeat();
  appended_then_ = appended_;
}

void VerbsQueuePair::LookAtConnection() {
  if (broken_) return;
  switch (connection_->fate()) {
    case VerbsConnection::Fate::kStands:
      return;
    case VerbsConnection::Fate::kPeerGone:
      Break(CompletionCode::kPeerGone);
      return;
    case VerbsConnection::Fate::kFailed:
      Break(CompletionCode::kFlushed);
      return;
  }
}

void VerbsQueuePair::Break(CompletionCode next) {
  if (std::exchange(broken_, true)) return;
  next_failure_ = next;
  failure_told_ = failure_told_ || next == CompletionCode::kFlushed;
  batch_count_ = 0;
  lost_ = device_->adapter_failed() || (retired_ != handed_ && !PostMarker());
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // This also serves where the adapter has broken it already: it flushes what was posted since
  // then.
  const int error = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE);
  if (error != 0) {
    device_->Warn(peer(), "ibv_modify_qp to the error state", error);
    lost_ = true;
  }
  // See QueuePair::peer_hung_up.
  if (!control_ && device_->loop()->LinkIsUp()) connection_->Disconnect();
  FlushSends();
  FlushReceives();
}

void VerbsQueuePair::FlushSends() {
  if (retired_ < handed_ && !lost_) return;
  while (retired_ != appended_) {
    if (RetireHeartbeat()) continue;
    failure_told_ = true;
    FailOldest(std::exchange(next_failure_, CompletionCode::kFlushed));
  }
  handed_ = appended_;
}

void VerbsQueuePair::FlushReceives() {
  if (receives_done_ < receives_handed_ && !lost_) return;
  while (receives_done_ != receives_posted_) {
    EmitReceive(Opcode::kRecv, CompletionCode::kFlushed, 0, 0);
  }
  receives_handed_ = receives_posted_;
}

void VerbsQueuePair::Drain() {
  Ring();
  if (broken() || requests_ == 0 || !PostMarker()) return;
  const auto end = std::chrono::steady_clock::now() + kDrainTimeout;
  while (retired_ != handed_ && !broken() && std::chrono::steady_clock::now() < end) {
    if (!send_queue_->Collect()) std::this_thread::yield();
  }
}

}  // namespace nacre::rdma
