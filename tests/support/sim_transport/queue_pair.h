#pragma once

#include <memory>
#include <string>
#include <utility>

#include "rdma/transport.h"
#include "tests/support/sim_transport/completion_queue.h"
#include "tests/support/sim_transport/connection.h"

namespace nacre::rdma {

/// The user's hold on one end of a connection. Posting is a scheduling point.
class SimQueuePair final : public QueuePair {
 public:
  SimQueuePair(std::shared_ptr<SimConnection> connection, std::shared_ptr<SimEnd> end,
               SimCompletionQueue* send_queue, SimCompletionQueue* receive_queue)
      : connection_(std::move(connection)),
        end_(std::move(end)),
        send_queue_(send_queue),
        receive_queue_(receive_queue) {
    end_->Attach(this, send_queue, receive_queue);
  }
  ~SimQueuePair() override {
    end_->Detach();
    send_queue_->Remove(this);
    receive_queue_->Remove(this);
  }

  Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) override {
    return end_->Post(
        {.id = id, .opcode = Opcode::kRead, .flags = flags, .local = to, .remote = from});
  }
  Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) override {
    return end_->Post(
        {.id = id, .opcode = Opcode::kWrite, .flags = flags, .local = from, .remote = to});
  }
  Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to, uint32_t immediate,
                          uint8_t flags) override {
    return end_->Post({.id = id,
                       .opcode = Opcode::kWriteWithImm,
                       .flags = flags,
                       .local = from,
                       .remote = to,
                       .immediate = immediate});
  }
  Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t expected,
                         uint64_t desired, uint8_t flags) override {
    return end_->Post({.id = id,
                       .opcode = Opcode::kCompareSwap,
                       .flags = flags,
                       .local = result,
                       .remote = target,
                       .first_operand = expected,
                       .second_operand = desired});
  }
  Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                      uint8_t flags) override {
    return end_->Post({.id = id,
                       .opcode = Opcode::kFetchAdd,
                       .flags = flags,
                       .local = result,
                       .remote = target,
                       .first_operand = addend});
  }
  Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) override {
    return end_->Post({.id = id, .opcode = Opcode::kSend, .flags = flags, .local = from});
  }
  Status PostRecv(uint64_t id, LocalBuffer to) override { return end_->PostRecv(id, to); }

  bool broken() const override { return end_->broken(); }
  bool peer_hung_up() const override { return end_->peer_hung_up(); }
  const std::string& peer() const override { return end_->peer_name(); }

  void Retire(uint64_t number) { end_->Retire(number); }

 private:
  const std::shared_ptr<SimConnection> connection_;
  const std::shared_ptr<SimEnd> end_;
  SimCompletionQueue* const send_queue_;
  SimCompletionQueue* const receive_queue_;
};

}  // namespace nacre::rdma
