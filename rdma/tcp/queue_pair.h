#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rdma/tcp/completion_queue.h"
#include "rdma/tcp/connection.h"
#include "rdma/tcp/region.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// What a user has of a connection: checks what is posted, and keeps the bounds.
class TcpQueuePair final : public QueuePair {
 public:
  /// `parts`: all but what the session is to be told of this queue pair.
  TcpQueuePair(TcpConnection::Parts parts, QueueDepths depths, RegionTable* regions,
               TcpCounters* counters, TcpCompletionQueue* send_queue,
               TcpCompletionQueue* receive_queue);
  ~TcpQueuePair() override;

  Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) override;
  Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) override;
  Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to, uint32_t immediate,
                          uint8_t flags) override;
  Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t expected,
                         uint64_t desired, uint8_t flags) override;
  Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                      uint8_t flags) override;
  Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) override;
  Status PostRecv(uint64_t id, LocalBuffer to) override;

  bool broken() const override { return connection_->broken(); }
  bool peer_hung_up() const override { return connection_->peer_hung_up(); }
  void LookAtPeer() override { connection_->TakeTurn(); }
  const std::string& peer() const override { return connection_->peer(); }

  const std::shared_ptr<TcpConnection>& connection() const { return connection_; }
  /// Called by the send queue when a completion was polled: frees the places of this request and of
  /// those before it.
  void Retire(uint64_t send_number) { retired_ = send_number; }

 private:
  bool IsLocal(const LocalBuffer& buffer) const;
  Status Post(Opcode opcode, uint64_t id, const LocalBuffer& local, RemoteBuffer remote,
              uint8_t flags, uint64_t first = 0, uint64_t second = 0, uint32_t immediate = 0);

  const RegionTable* const regions_;
  TcpCompletionQueue* const send_queue_;
  TcpCompletionQueue* const receive_queue_;
  const uint64_t send_depth_;
  const uint64_t receive_depth_;
  const bool messages_;
  uint64_t posted_ = 0;   ///< Send-side requests so far.
  uint64_t retired_ = 0;  ///< Those of them that no longer count against the depth.
  const std::shared_ptr<TcpConnection> connection_;
};

}  // namespace nacre::rdma
