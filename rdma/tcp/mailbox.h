#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "rdma/tcp/completion_queue.h"
#include "rdma/tcp/frame.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// Messages of one connection in both directions, and the receives that take them. A message that
/// finds no receive waits here. How many may wait is known to both ends from the depths: a sender
/// counts, and learns from incoming frames how many were consumed, so that there is always room for
/// what arrives.
///
/// Thread safety: none.
class Mailbox {
 public:
  Mailbox(int receive_depth, TcpCompletionQueue* queue, QueuePair* queue_pair);

  // Outgoing.
  bool MaySend() const { return sent_ - consumed_by_peer_ < slots_; }
  void CountSent() { sent_++; }
  /// What a frame of the peer told; false if that cannot be.
  bool TakeConsumed(uint32_t consumed);

  // Incoming.
  uint64_t receives_outstanding() const { return posted_ - delivered_; }
  /// There is room; the completion was promised. False as TakeMessage.
  bool PostReceive(uint64_t id, const LocalBuffer& buffer);
  /// `bytes`: of payload, or of the write that the immediate comes with. False if the connection
  /// must end: see `failed`.
  bool TakeMessage(const FrameHeader& header, const char* payload, uint32_t bytes);
  /// The oldest receive is too small for its message; if not so, the peer sent more than it may.
  bool failed() const { return failed_; }
  uint32_t consumed() const { return static_cast<uint32_t>(delivered_messages_); }
  /// Whether the peer must be told of the messages consumed though there is nothing else to send.
  bool OwesCredit(uint32_t told) const { return consumed() - told >= (slots_ + 1) / 2; }

  /// All receives complete as flushed, or the oldest as failed; messages are dropped.
  void Flush();
  /// Takes all receives back without completing them.
  void Forget();

 private:
  struct Receive {
    uint64_t id = 0;
    LocalBuffer buffer;
  };
  struct Message {
    Opcode opcode = Opcode::kRecv;
    uint32_t bytes = 0;
    uint32_t immediate = 0;
    std::string payload{};
  };

  bool Deliver(Opcode opcode, uint32_t bytes, uint32_t immediate, const char* payload);
  void Push(uint64_t id, Opcode opcode, CompletionCode code, uint32_t bytes, uint32_t immediate);

  TcpCompletionQueue* const queue_;
  QueuePair* const queue_pair_;
  const uint64_t slots_;  ///< Messages that may be under way or waiting, each direction.
  uint64_t sent_ = 0;
  uint64_t consumed_by_peer_ = 0;
  std::vector<Receive> receives_;  ///< Ring, made with the first one.
  uint64_t posted_ = 0;
  uint64_t delivered_ = 0;  ///< Receives done.
  uint64_t delivered_messages_ = 0;
  std::deque<Message> waiting_;
  bool failed_ = false;
};

}  // namespace nacre::rdma
