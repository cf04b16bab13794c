#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "rdma/transport.h"

namespace nacre::rdma {

// The memory of one connection, mapped by both ends: which ends have closed, the keys they write
// under, and a ring of messages in each direction.

/// A SEND, or the notification that follows a WRITE WITH IMMEDIATE. Header and first payload bytes
/// share a cache line, so that a small message moves one line between cores. Slots are a line more
/// than a page apart, so that they do not compete for one cache set.
struct alignas(64) MessageSlot {
  /// Number of the message that is complete in this slot, counted from 1 (release by the sender,
  /// acquire by the receiver).
  std::atomic<uint64_t> sequence;
  uint32_t size;
  uint32_t immediate;
  uint32_t opcode;  ///< As the receiver reports it: kRecv or kRecvWithImm.
  uint32_t reserved;
  char payload[Device::kMaxSendBytes];
};
static_assert(sizeof(MessageSlot) == Device::kMaxSendBytes + 64);

/// The mark of one side's write into the other's memory that is under way. The owner of the memory
/// can invalidate a key, but not take the mapping away from a process that has looked at the key
/// and copies; so it waits for the end of the copy.
///
/// Invariant: no write lands after its key has ended and the mark has been seen without the key, or
/// changed. The writer stores its mark, then, after a light fence, loads the key (and whether the
/// owner has closed the connection); the owner invalidates the key (or closes), then, after a heavy
/// fence, loads the mark (util/threads/process_fence.h): either the writer sees that it must not
/// write, or the owner sees that it does. A fence in each write would have it wait until the one
/// before it, to memory that is in no cache, has left the processor. The store that ends a write
/// releases what was written; the owner's load acquires.
struct alignas(64) WriteMark {
  /// The key in use, 0 for none; above it the number of the write, so that a mark that has changed
  /// tells of another write.
  std::atomic<uint64_t> word;

  static uint64_t Of(uint64_t number, uint32_t key) { return number << 32 | key; }
  static uint32_t KeyOf(uint64_t mark) { return static_cast<uint32_t>(mark); }
};

/// Byte layout: header, the connecting side's outgoing slots, the accepting side's.
struct ConnectionMemory {
  /// Nonzero once that side (0: connecting, 1: accepting) takes no more part: it closed, a request
  /// of it failed, or the other side's monitor found it dead. Stored with release after the side's
  /// last message; never reset.
  alignas(64) std::atomic<uint32_t> closed[2];
  /// The mark of what side i writes.
  WriteMark writes[2];
  /// Messages that the receiver of direction i (sent by side i) has taken out: frees their slots
  /// (release by the receiver, acquire by the sender).
  struct alignas(64) {
    std::atomic<uint64_t> taken;
  } progress[2];

  MessageSlot* Slots(int side, uint32_t slots) {
    return reinterpret_cast<MessageSlot*>(this + 1) + static_cast<size_t>(side) * slots;
  }
  static size_t Bytes(uint32_t slots) {
    return sizeof(ConnectionMemory) + 2 * size_t{slots} * sizeof(MessageSlot);
  }
};
static_assert(sizeof(ConnectionMemory) == 320);

/// The sending end. Thread safety: none.
class MessageSender {
 public:
  MessageSender(ConnectionMemory* memory, int side, uint32_t slots)
      : taken_(&memory->progress[side].taken), slots_(memory->Slots(side, slots)), count_(slots) {
    assert(std::has_single_bit(slots));
  }

  /// False if the receiver has not made room yet.
  bool HasRoom() {
    if (sent_ - known_taken_ < count_) return true;
    known_taken_ = taken_->load(std::memory_order_acquire);
    return sent_ - known_taken_ < count_;
  }

  /// Requires HasRoom. `size` is that of `payload` for a SEND, of the bytes written for a WRITE
  /// WITH IMMEDIATE, which passes no payload.
  void Send(Opcode opcode, const char* payload, uint32_t size, uint32_t immediate) {
    MessageSlot& slot = slots_[sent_ & (count_ - 1)];
    slot.size = size;
    slot.immediate = immediate;
    slot.opcode = static_cast<uint32_t>(opcode);
    if (payload != nullptr) std::memcpy(slot.payload, payload, size);
    slot.sequence.store(++sent_, std::memory_order_release);
  }

 private:
  const std::atomic<uint64_t>* const taken_;
  MessageSlot* const slots_;
  const uint64_t count_;
  uint64_t sent_ = 0;
  uint64_t known_taken_ = 0;
};

/// The receiving end. Thread safety: none.
class MessageReceiver {
 public:
  MessageReceiver(ConnectionMemory* memory, int sender_side, uint32_t slots)
      : taken_word_(&memory->progress[sender_side].taken),
        slots_(memory->Slots(sender_side, slots)),
        count_(slots) {}

  /// The oldest message, or null. Stays valid until Pop.
  const MessageSlot* Front() const {
    const MessageSlot& slot = slots_[taken_ & (count_ - 1)];
    return slot.sequence.load(std::memory_order_acquire) == taken_ + 1 ? &slot : nullptr;
  }
  void Pop() { taken_word_->store(++taken_, std::memory_order_release); }

 private:
  std::atomic<uint64_t>* const taken_word_;
  const MessageSlot* const slots_;
  const uint64_t count_;
  uint64_t taken_ = 0;
};

}  // namespace nacre::rdma
