#include "rdma/tcp/mailbox.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace nacre::rdma {

Mailbox::Mailbox(int receive_depth, TcpCompletionQueue* queue, QueuePair* queue_pair)
    : queue_(queue),
      queue_pair_(queue_pair),
      slots_(std::bit_ceil(static_cast<uint64_t>(std::max(1, receive_depth)))) {}

bool Mailbox::TakeConsumed(uint32_t consumed) {
  const uint32_t news = consumed - static_cast<uint32_t>(consumed_by_peer_);
  if (news > sent_ - consumed_by_peer_) return false;
  consumed_by_peer_ += news;
  return true;
}

void Mailbox::Push(uint64_t id, Opcode opcode, CompletionCode code, uint32_t bytes,
                   uint32_t immediate) {
  queue_->Push({.id = id,
                .queue_pair = queue_pair_,
                .bytes = bytes,
                .immediate = immediate,
                .opcode = opcode,
                .code = code},
               0);
}

bool Mailbox::PostReceive(uint64_t id, const LocalBuffer& buffer) {
  if (receives_.empty()) receives_.resize(slots_);
  receives_[posted_++ & (slots_ - 1)] = {id, buffer};
  if (waiting_.empty()) return true;
  const Message message = std::move(waiting_.front());
  waiting_.pop_front();
  return Deliver(message.opcode, message.bytes, message.immediate, message.payload.data());
}

bool Mailbox::TakeMessage(const FrameHeader& header, const char* payload, uint32_t bytes) {
  const Opcode opcode = header.type == FrameType::kSend ? Opcode::kRecv : Opcode::kRecvWithImm;
  if (posted_ != delivered_ && waiting_.empty()) {
    return Deliver(opcode, bytes, header.argument, payload);
  }
  if (waiting_.size() == slots_) return false;
  Message message{.opcode = opcode, .bytes = bytes, .immediate = header.argument};
  if (opcode == Opcode::kRecv) message.payload.assign(payload, bytes);
  waiting_.push_back(std::move(message));
  return true;
}

bool Mailbox::Deliver(Opcode opcode, uint32_t bytes, uint32_t immediate, const char* payload) {
  const Receive& receive = receives_[delivered_ & (slots_ - 1)];
  if (opcode == Opcode::kRecv && bytes > 0) {
    // A buffer outside its region was made one of no bytes when it was posted.
    if (bytes > receive.buffer.size) {
      failed_ = true;
      return false;
    }
    std::memcpy(receive.buffer.data, payload, bytes);
  }
  delivered_++;
  delivered_messages_++;
  Push(receive.id, opcode, CompletionCode::kSuccess, bytes,
       opcode == Opcode::kRecvWithImm ? immediate : 0);
  return true;
}

void Mailbox::Flush() {
  CompletionCode code = failed_ ? CompletionCode::kLocalError : CompletionCode::kFlushed;
  failed_ = false;
  for (; delivered_ != posted_; delivered_++) {
    Push(receives_[delivered_ & (slots_ - 1)].id, Opcode::kRecv, code, 0, 0);
    code = CompletionCode::kFlushed;
  }
  waiting_.clear();
}

void Mailbox::Forget() {
  queue_->Unpromise(posted_ - delivered_);
  delivered_ = posted_;
  waiting_.clear();
}

}  // namespace nacre::rdma
