#include "rdma/shm/queue_pair.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rdma/shm/device.h"
#include "rdma/shm/region.h"
#include "util/memory/concurrent_copy.h"
#include "util/memory/prefetch.h"
#include "util/threads/process_fence.h"

namespace nacre::rdma {

namespace {

constexpr uint32_t kAtomicBytes = sizeof(uint64_t);

/// The tally has one writer, so that no read-modify-write is needed.
void Add(std::atomic<uint64_t>* counter, uint64_t amount) {
  counter->store(counter->load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

/// Has the lines from `to` on in this core's cache when they are written next. What is longer is
/// written around the cache (util/memory/concurrent_copy.h).
void PrefetchToWrite(const char* to, uint32_t size) {
  constexpr uint32_t kPrefetchMax = 2048;
  if (size <= kPrefetchMax) PrefetchLines</*kWrite=*/1>(to, size);
}

bool IsAligned(uint64_t address) { return address % kAtomicBytes == 0; }

}  // namespace

ShmQueuePair::ShmQueuePair(ShmDevice* device, std::shared_ptr<Connection> connection,
                           QueueDepths depths, ShmCompletionQueue* send_queue,
                           ShmCompletionQueue* receive_queue, uint32_t group)
    : send_queue_(send_queue),
      peer_closed_(&connection->memory()->closed[1 - connection->side()]),
      tally_(&connection->tally),
      device_(device),
      send_depth_(static_cast<uint64_t>(depths.send)),
      write_mark_(&connection->memory()->writes[connection->side()].word),
      connection_(std::move(connection)),
      receive_queue_(receive_queue),
      receive_depth_(static_cast<uint64_t>(depths.receive)),
      group_(group),
      sender_(connection_->memory(), connection_->side(), connection_->ring_slots()),
      receiver_(connection_->memory(), 1 - connection_->side(), connection_->ring_slots()),
      receives_(std::bit_ceil(static_cast<uint64_t>(depths.receive))) {
  receive_queue_->Attach(this, group_);
}

ShmQueuePair::~ShmQueuePair() {
  send_queue_->Unpromise(deferred_count_);
  receive_queue_->Unpromise(receives_posted_ - receives_done_);
  receive_queue_->Detach(this, group_);
  if (send_queue_ != receive_queue_) send_queue_->Detach(this, group_);
  connection_->CloseThisEnd();
  device_->Disconnect(connection_);
}

inline bool ShmQueuePair::IsLocal(const LocalBuffer& buffer) const {
  // All regions of a caller that meets the contract are this backend's.
  const auto* region = static_cast<const ShmRegion*>(buffer.region);
  if (region == nullptr || region->device() != device_) return false;
  const uint64_t offset =
      reinterpret_cast<uintptr_t>(buffer.data) - reinterpret_cast<uintptr_t>(region->data());
  return offset <= region->size() && buffer.size <= region->size() - offset;
}

inline ShmQueuePair::Target* ShmQueuePair::Resolve(RemoteBuffer buffer, uint64_t size,
                                                   Access needed, char** address) {
  const uint32_t slot = buffer.key % ControlBlock::kKeySlots;
  Target* target = slot < target_count_ ? &targets_[slot] : nullptr;
  // Relaxed: a region that was freed before this request, in the order of whatever told the
  // caller, is seen as freed; for one freed meanwhile see FinishRead.
  if (target == nullptr || target->key != buffer.key ||
      target->valid->load(std::memory_order_relaxed) != buffer.key) [[unlikely]] {
    target = FindTarget(buffer.key);
    if (target == nullptr) return nullptr;
  }
  const uint64_t offset = buffer.address - target->address;
  if (offset > target->size || size > target->size - offset || target->access < needed) {
    return nullptr;
  }
  *address = target->data + offset;
  return target;
}

ShmQueuePair::Target* ShmQueuePair::FindTarget(uint32_t key) {
  RunDeferred();  // These copy from mappings that may end here.
  const uint32_t slot = key % ControlBlock::kKeySlots;
  // An invalid target is not kept: the mapping of a dropped region ends with its last user.
  if (slot < target_count_) targets_[slot] = Target();
  Target found;
  if (!LookUp(key, slot, &found)) return nullptr;
  if (slot >= target_count_) {
    auto larger = std::make_unique<Target[]>(slot + 1);
    std::move(targets_.get(), targets_.get() + target_count_, larger.get());
    targets_ = std::move(larger);
    target_count_ = slot + 1;
  }
  targets_[slot] = std::move(found);
  return &targets_[slot];
}

bool ShmQueuePair::LookUp(uint32_t key, uint32_t slot, Target* found) {
  ControlBlock* const control = connection_->peer_control();
  const std::atomic<uint32_t>& valid = control->keys[slot];
  // Acquire, here and of the fields: see GrantSlot.
  if (key == 0 || valid.load(std::memory_order_acquire) != key) return false;
  const GrantSlot& grant = control->grants[slot];
  const uint32_t part_of = grant.part_of.load(std::memory_order_acquire);
  const uint64_t address = grant.address.load(std::memory_order_acquire);
  const uint64_t size = grant.size.load(std::memory_order_acquire);
  const uint32_t access = grant.access.load(std::memory_order_acquire);
  if (valid.load(std::memory_order_relaxed) != key) return false;

  PeerRegion region;
  if (!connection_->FindRegion(part_of == 0 ? key : part_of, &region)) return false;
  const Access most = connection_->may_write() ? Access::kRemoteAll : Access::kRemoteReadOnly;
  *found = {.key = key,
            .access = std::min(region.access, most),
            .valid = &valid,
            .address = region.key.address,
            .size = region.key.size,
            .data = region.mapping->data(),
            .mapping = std::move(region.mapping)};
  if (found->mapping->kept()) {
    found->moved_away =
        reinterpret_cast<const std::atomic<uint64_t>*>(found->data + Device::kMovedAwayAt);
  }
  if (part_of == 0) return true;
  const uint64_t offset = address - region.key.address;
  if (offset > found->size || size > found->size - offset ||
      access > static_cast<uint32_t>(Access::kRemoteAll)) {
    return false;  // No owner writes that.
  }
  found->access = std::min(static_cast<Access>(access), most);
  if (found->access == Access::kRemoteAll && region.access != Access::kRemoteAll &&
      !connection_->same_process() && !found->mapping->MakeWritable(offset, size).ok()) {
    return false;
  }
  found->address = address;
  found->size = size;
  found->data += offset;
  return true;
}

inline bool ShmQueuePair::Begin(Opcode opcode, uint64_t id, uint32_t bytes, Status* status) {
  if (opcode != Opcode::kRead && deferred_count_ > 0) [[unlikely]]
    RunDeferred();
  // Room for a completion is needed even by an unsignalled request: it might fail.
  if (!send_queue_->HasRoom() || posted_ - retired_ >= send_depth_) [[unlikely]] {
    *status = Full();
    return false;
  }
  // Acquire: see ConnectionMemory::closed; a plain load on x86.
  if (!broken_ && peer_closed_->load(std::memory_order_acquire) == 0) [[likely]]
    return true;
  RunDeferred();
  PushFailure(opcode, id, bytes, WhyBroken(), ++posted_);
  return false;
}

CompletionCode ShmQueuePair::WhyBroken() {
  CollectArrivals();  // Breaks if it was not broken yet.
  return std::exchange(peer_gone_unreported_, false) ? CompletionCode::kPeerGone
                                                     : CompletionCode::kFlushed;
}

Status ShmQueuePair::Full() {
  RunDeferred();  // The caller may need their completions to make room.
  return Status::Busy(peer() + ": the queue for requests is full");
}

inline void ShmQueuePair::Succeed(Opcode opcode, uint64_t id, uint32_t bytes, uint8_t flags,
                                  uint64_t number) {
  if ((flags & kSignaled) == 0) return;
  send_queue_->Push(id, this, opcode, CompletionCode::kSuccess, bytes, 0, number);
}

void ShmQueuePair::PushFailure(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code,
                               uint64_t number) {
  send_queue_->Push(id, this, opcode, code, bytes, 0, number);
}

Status ShmQueuePair::Fail(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code) {
  RunDeferred();  // They were posted before.
  return FailWith(opcode, id, bytes, broken_ ? CompletionCode::kFlushed : code);
}

Status ShmQueuePair::FailWith(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code) {
  PushFailure(opcode, id, bytes, code, ++posted_);
  Break();
  return Status::OK();
}

void ShmQueuePair::Break() {
  if (std::exchange(broken_, true)) return;
  connection_->CloseThisEnd();
  receive_queue_->Unpromise(receives_posted_ - receives_done_);
  for (; receives_done_ != receives_posted_; receives_done_++) {
    PushFlushedReceive(receives_[receives_done_ & (receives_.size() - 1)].id);
  }
}

void ShmQueuePair::PushFlushedReceive(uint64_t id) {
  receive_queue_->Push(id, this, Opcode::kRecv, CompletionCode::kFlushed, 0, 0, 0);
}

Status ShmQueuePair::PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) {
  Status status;
  if (!Begin(Opcode::kRead, id, to.size, &status)) [[unlikely]]
    return status;
  char* source = nullptr;
  const Target* target = nullptr;
  if (to.size > 0) {
    if (!IsLocal(to)) return Fail(Opcode::kRead, id, to.size, CompletionCode::kLocalError);
    target = Resolve(from, to.size, Access::kRemoteReadOnly, &source);
    // Looking for it may have carried out, and failed, what was posted before.
    if (target == nullptr || broken_) [[unlikely]] {
      return Fail(Opcode::kRead, id, to.size, CompletionCode::kRemoteAccessError);
    }
  }
  const CheckedRead read = {id, to.data, source, target, ++posted_, to.size, flags};
  if ((flags & kMore) != 0 || deferred_count_ > 0) {
    Defer(read);
    if ((flags & kMore) == 0 || deferred_count_ == kMaxDeferred) RunDeferred();
    return status;
  }
  FinishRead(read);
  return status;
}

inline void ShmQueuePair::FinishRead(const CheckedRead& read) {
  CopyConcurrent(read.to, read.from, read.size);
  // An owner marks a region as freed before it gives the memory up: a reader of what is left in it
  // sees the mark.
  if (read.target != nullptr &&
      (read.target->valid->load(std::memory_order_relaxed) != read.target->key ||
       read.target->MovedAway())) [[unlikely]] {
    PushFailure(Opcode::kRead, read.id, read.size, WhyRefused(*read.target), read.number);
    Break();
    return;
  }
  Add(&tally_->bytes_read, read.size);
  Add(&tally_->reads, 1);
  Succeed(Opcode::kRead, read.id, read.size, read.flags, read.number);
}

void ShmQueuePair::ExpectRead(RemoteBuffer from, uint32_t size) {
  const uint32_t slot = from.key % ControlBlock::kKeySlots;
  if (slot >= target_count_) return;
  const Target& target = targets_[slot];
  const uint64_t offset = from.address - target.address;
  // One that is freed meanwhile does no harm: what cannot be read is not fetched.
  if (target.key != from.key || offset > target.size || size > target.size - offset) return;
  PrefetchBeginning(target.data + offset, size);
}

void ShmQueuePair::Defer(const CheckedRead& read) {
  PrefetchBeginning(read.from, read.size);
  send_queue_->Promise();
  deferred_[deferred_count_++] = read;
}

void ShmQueuePair::RunDeferred() {
  const uint32_t count = std::exchange(deferred_count_, 0);
  send_queue_->Unpromise(count);
  for (uint32_t i = 0; i < count; i++) {
    const CheckedRead& read = deferred_[i];
    if (broken()) [[unlikely]] {
      PushFailure(Opcode::kRead, read.id, read.size, WhyBroken(), read.number);
    } else {
      FinishRead(read);
    }
  }
}

inline bool ShmQueuePair::BeginWrite(const Target& target) {
  // See WriteMark.
  write_mark_->store(WriteMark::Of(++marked_, target.key), std::memory_order_relaxed);
  ProcessFence::LightFence();
  return target.valid->load(std::memory_order_acquire) == target.key &&
         peer_closed_->load(std::memory_order_acquire) == 0;
}

inline void ShmQueuePair::EndWrite() {
  write_mark_->store(WriteMark::Of(marked_, 0), std::memory_order_release);
}

inline bool ShmQueuePair::WriteTo(const Target& target, char* to, const char* from, uint32_t size) {
  while (true) {
    const uint32_t step = std::min(size, kWriteStep);
    const bool allowed = BeginWrite(target);
    if (allowed) CopyAndPublish(to, from, step);
    EndWrite();
    if (!allowed) return false;
    size -= step;
    if (size == 0) return !target.MovedAway();
    to += step;
    from += step;
  }
}

CompletionCode ShmQueuePair::WhyRefused(const Target& target) {
  if (connection_->PeerClosed()) return WhyBroken();
  return target.MovedAway() ? CompletionCode::kPeerGone : CompletionCode::kRemoteAccessError;
}

inline CompletionCode ShmQueuePair::CarryOut(const LocalBuffer& from, RemoteBuffer to) {
  if (from.size > 0) {
    if (!IsLocal(from)) return CompletionCode::kLocalError;
    char* data = nullptr;
    const Target* const target = Resolve(to, from.size, Access::kRemoteAll, &data);
    if (target == nullptr) return CompletionCode::kRemoteAccessError;
    if (!WriteTo(*target, data, from.data, from.size)) [[unlikely]]
      return WhyRefused(*target);
    Add(&tally_->bytes_written, from.size);
    // A log is written front to back: the next record will need the lines behind this one.
    if (data == next_write_) PrefetchToWrite(data + from.size + 64, from.size);
    next_write_ = data + from.size;
  }
  Add(&tally_->writes, 1);
  return CompletionCode::kSuccess;
}

inline Status ShmQueuePair::DoWrite(Opcode opcode, uint64_t id, const LocalBuffer& from,
                                    RemoteBuffer to, uint8_t flags) {
  const CompletionCode code = CarryOut(from, to);
  if (code == CompletionCode::kSuccess) [[likely]] {
    Succeed(opcode, id, from.size, flags, ++posted_);
    return Status::OK();
  }
  return FailWith(opcode, id, from.size, code);
}

std::optional<CompletionCode> ShmQueuePair::WriteNow(LocalBuffer from, RemoteBuffer to) {
  if (deferred_count_ > 0) [[unlikely]]
    RunDeferred();
  // As in Begin.
  if (broken_ || peer_closed_->load(std::memory_order_acquire) != 0) [[unlikely]]
    return WhyBroken();
  const CompletionCode code = CarryOut(from, to);
  if (code != CompletionCode::kSuccess) [[unlikely]]
    Break();
  return code;
}

Status ShmQueuePair::PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) {
  Status status;
  if (!Begin(Opcode::kWrite, id, from.size, &status)) [[unlikely]]
    return status;
  return DoWrite(Opcode::kWrite, id, from, to, flags);
}

Status ShmQueuePair::PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                      uint32_t immediate, uint8_t flags) {
  Status status;
  if (!Begin(Opcode::kWriteWithImm, id, from.size, &status)) [[unlikely]]
    return status;
  if (!sender_.HasRoom()) return Status::Busy(peer() + ": takes no messages");
  status = DoWrite(Opcode::kWriteWithImm, id, from, to, flags);
  if (!broken_) {
    sender_.Send(Opcode::kRecvWithImm, nullptr, from.size, immediate);
    RingPeer();
  }
  return status;
}

template <typename Operation>
Status ShmQueuePair::DoAtomic(Opcode opcode, uint64_t id, const LocalBuffer& result,
                              RemoteBuffer target, uint8_t flags, Operation operation) {
  Status status;
  if (!Begin(opcode, id, kAtomicBytes, &status)) [[unlikely]]
    return status;
  if (result.size < kAtomicBytes || !IsLocal(result)) {
    return Fail(opcode, id, kAtomicBytes, CompletionCode::kLocalError);
  }
  // Regions begin at page boundaries at both ends, and a grant lies in its region as it does there.
  char* data = nullptr;
  const Target* const place = IsAligned(target.address)
                                  ? Resolve(target, kAtomicBytes, Access::kRemoteAll, &data)
                                  : nullptr;
  if (place == nullptr) {
    return Fail(opcode, id, kAtomicBytes, CompletionCode::kRemoteAccessError);
  }
  uint64_t before = 0;
  const bool allowed = BeginWrite(*place);
  if (allowed) before = operation(std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(data)));
  EndWrite();
  if (!allowed || place->MovedAway()) [[unlikely]]
    return FailWith(opcode, id, kAtomicBytes, WhyRefused(*place));
  std::memcpy(result.data, &before, sizeof(before));
  Succeed(opcode, id, kAtomicBytes, flags, ++posted_);
  return status;
}

Status ShmQueuePair::PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                     uint64_t expected, uint64_t desired, uint8_t flags) {
  return DoAtomic(Opcode::kCompareSwap, id, result, target, flags,
                  [expected, desired](std::atomic_ref<uint64_t> word) {
                    uint64_t before = expected;
                    word.compare_exchange_strong(before, desired);
                    return before;
                  });
}

Status ShmQueuePair::PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                  uint64_t addend, uint8_t flags) {
  return DoAtomic(Opcode::kFetchAdd, id, result, target, flags,
                  [addend](std::atomic_ref<uint64_t> word) { return word.fetch_add(addend); });
}

Status ShmQueuePair::PostSend(uint64_t id, LocalBuffer from, uint8_t flags) {
  if (from.size > Device::kMaxSendBytes) {
    return Status::InvalidArgument("a SEND of " + std::to_string(from.size) + " bytes; at most " +
                                   std::to_string(Device::kMaxSendBytes) + " are possible");
  }
  Status status;
  if (!Begin(Opcode::kSend, id, from.size, &status)) [[unlikely]]
    return status;
  if (from.size > 0 && !IsLocal(from)) {
    return Fail(Opcode::kSend, id, from.size, CompletionCode::kLocalError);
  }
  if (!sender_.HasRoom()) return Status::Busy(peer() + ": takes no messages");
  sender_.Send(Opcode::kRecv, from.data, from.size, 0);
  RingPeer();
  Add(&tally_->bytes_written, from.size);
  Add(&tally_->writes, 1);
  Succeed(Opcode::kSend, id, from.size, flags, ++posted_);
  return status;
}

Status ShmQueuePair::Map(RemoteBuffer from, uint64_t size,
                         std::shared_ptr<const LoadableMemory>* memory) {
  if (!device_->may_map()) return QueuePair::Map(from, size, memory);
  if (broken()) return Status::Unavailable(peer() + ": connection lost");
  char* data = nullptr;
  const Target* const target = Resolve(from, size, Access::kRemoteReadOnly, &data);
  if (target == nullptr) {
    return Status::InvalidArgument(peer() + ": has no such memory, or does not let it be read");
  }
  struct Keeper {
    std::shared_ptr<Mapping> mapping;
    std::shared_ptr<Connection> connection;
  };
  const LoadableMemory::Words words = {
      .key_slot = target->valid,
      .key = target->key,
      .owner_closed = peer_closed_,
      .closed_here = &connection_->memory()->closed[connection_->side()],
      .moved_away = target->moved_away};
  *memory = std::make_shared<const LoadableMemory>(
      data, size, words, std::make_shared<const Keeper>(Keeper{target->mapping, connection_}));
  return Status::OK();
}

void ShmQueuePair::RingPeer() {
  const Connection::PeerDoorbell& bell = connection_->peer_doorbell();
  Ring(bell.word, bell.bit, bell.event_fd.get());
}

Status ShmQueuePair::PostRecv(uint64_t id, LocalBuffer to) {
  if (!receive_queue_->HasRoom() || receives_posted_ - receives_done_ >= receive_depth_) {
    return Status::Busy(peer() + ": the queue for receives is full");
  }
  if (broken_) {
    PushFlushedReceive(id);
    return Status::OK();
  }
  receive_queue_->Promise();
  receives_[receives_posted_++ & (receives_.size() - 1)] = {id, to};
  if (message_waits_) Deliver();
  return Status::OK();
}

void ShmQueuePair::CollectArrivals() {
  if (broken_) return;
  // This is read before the ring, since what the peer sent before it closed is still delivered.
  const bool peer_closed = connection_->PeerClosed();
  Deliver();
  if (peer_closed && !broken_) {
    peer_gone_unreported_ = true;
    Break();
  }
}

void ShmQueuePair::Deliver() {
  message_waits_ = false;
  while (const MessageSlot* message = receiver_.Front()) {
    if (receives_done_ == receives_posted_) {
      message_waits_ = true;
      return;
    }
    if (!DeliverOne(*message)) return;
    receiver_.Pop();
  }
}

bool ShmQueuePair::DeliverOne(const MessageSlot& message) {
  const PostedReceive& receive = receives_[receives_done_++ & (receives_.size() - 1)];
  const auto opcode = static_cast<Opcode>(message.opcode);
  const uint32_t size = message.size;
  const bool has_payload = opcode == Opcode::kRecv && size > 0;
  auto code = CompletionCode::kSuccess;
  if (has_payload &&
      (size > receive.buffer.size || size > Device::kMaxSendBytes || !IsLocal(receive.buffer))) {
    code = CompletionCode::kLocalError;
  } else if (has_payload) {
    std::memcpy(receive.buffer.data, message.payload, size);
  }
  receive_queue_->Unpromise(1);
  receive_queue_->Push(receive.id, this, opcode, code, size, message.immediate, 0);
  if (code == CompletionCode::kSuccess) return true;
  Break();
  return false;
}

}  // namespace nacre::rdma
