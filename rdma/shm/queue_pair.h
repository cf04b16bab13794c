#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rdma/shm/completion_queue.h"
#include "rdma/shm/connection.h"
#include "rdma/shm/ring.h"
#include "rdma/transport.h"

namespace nacre::rdma {

class ShmDevice;

/// Carries requests out in the thread that posts them, on this process's mapping of the peer's
/// regions. A request completes within its Post call, save reads with kMore: these are only
/// prefetched, and copied when the batch ends, so that their cache misses overlap.
class ShmQueuePair final : public QueuePair {
 public:
  /// `group`: of the receive queue's doorbell, as the peer was told.
  ShmQueuePair(ShmDevice* device, std::shared_ptr<Connection> connection, QueueDepths depths,
               ShmCompletionQueue* send_queue, ShmCompletionQueue* receive_queue, uint32_t group);
  ~ShmQueuePair() override;

  void ExpectRead(RemoteBuffer from, uint32_t size) override;
  Status PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from, uint8_t flags) override;
  Status PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to, uint8_t flags) override;
  std::optional<CompletionCode> WriteNow(LocalBuffer from, RemoteBuffer to) override;
  Status PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to, uint32_t immediate,
                          uint8_t flags) override;
  Status PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t expected,
                         uint64_t desired, uint8_t flags) override;
  Status PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target, uint64_t addend,
                      uint8_t flags) override;
  Status PostSend(uint64_t id, LocalBuffer from, uint8_t flags) override;
  Status PostRecv(uint64_t id, LocalBuffer to) override;
  Status Map(RemoteBuffer from, uint64_t size,
             std::shared_ptr<const LoadableMemory>* memory) override;

  bool broken() const override { return broken_ || connection_->PeerClosed(); }
  bool peer_hung_up() const override { return connection_->PeerHungUp(); }
  void LookAtPeer() override { connection_->LookAtPeer(); }
  const std::string& peer() const override { return connection_->peer(); }

  /// Called by the receive queue when the doorbell's bit was set: delivers messages to posted
  /// receives, and breaks if the peer is gone.
  void CollectArrivals();
  /// Called by the send queue when a completion was polled: frees the places of this request and of
  /// those before it.
  void Retire(uint64_t send_number) { retired_ = send_number; }

 private:
  static constexpr uint32_t kMaxDeferred = 32;
  /// A longer write looks at its key again after so many bytes, so that ending a key never waits
  /// for long: some hundred microseconds if the memory is not mapped in yet.
  static constexpr uint32_t kWriteStep = 1 << 20;

  struct Target;

  /// A read, checked and ready to be carried out.
  struct CheckedRead {
    uint64_t id;
    char* to;
    const char* from;
    const Target* target;  ///< Null if it reads nothing.
    uint64_t number;       ///< The request's number among the send-side ones, counted from 1.
    uint32_t size;
    uint8_t flags;
  };

  struct PostedReceive {
    uint64_t id;
    LocalBuffer buffer;
  };

  /// A peer's region, or a grant of part of one, ready to be checked against and copied from.
  struct alignas(64) Target {
    static constexpr std::atomic<uint32_t> kNeverValid{0};
    static constexpr std::atomic<uint64_t> kStays{0};

    uint32_t key = ~uint32_t{0};
    Access access = Access::kLocalOnly;
    const std::atomic<uint32_t>* valid = &kNeverValid;  ///< Holds `key` while the region lives.
    uint64_t address = 0;
    uint64_t size = 0;
    char* data = nullptr;
    std::shared_ptr<Mapping> mapping;
    const std::atomic<uint64_t>* moved_away = &kStays;  ///< See Device::kMovedAwayAt.

    /// Whether the content was moved before the latest copy, which then does not count. The mover
    /// sets the word and makes all processors see it before it moves the content.
    bool MovedAway() const {
      std::atomic_thread_fence(std::memory_order_acquire);
      return moved_away->load(std::memory_order_relaxed) != 0;
    }
  };

  /// Null if the request must fail; else `*address` is the buffer's.
  Target* Resolve(RemoteBuffer buffer, uint64_t size, Access needed, char** address);
  Target* FindTarget(uint32_t key);
  /// What the key names now; false if nothing.
  bool LookUp(uint32_t key, uint32_t slot, Target* found);
  bool IsLocal(const LocalBuffer& buffer) const;

  /// What every send-side Post begins with: true if the request is to be carried out, else
  /// `*status` is the Post's answer (Busy, or OK when a failure was put into the queue).
  bool Begin(Opcode opcode, uint64_t id, uint32_t bytes, Status* status);
  Status Full();
  /// Adds it to the end of its batch.
  void Defer(const CheckedRead& read);
  void RunDeferred();
  void FinishRead(const CheckedRead& read);
  /// `number`: as in CheckedRead.
  void Succeed(Opcode opcode, uint64_t id, uint32_t bytes, uint8_t flags, uint64_t number);
  /// Completes a request that cannot be carried out and breaks the queue pair.
  Status Fail(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code);
  /// The same where nothing was posted before, with whatever `code` is.
  Status FailWith(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code);
  void PushFailure(Opcode opcode, uint64_t id, uint32_t bytes, CompletionCode code,
                   uint64_t number);
  void PushFlushedReceive(uint64_t id);
  /// Why a request to `target` is refused: its key or the place is no longer allowed.
  CompletionCode WhyRefused(const Target& target);
  /// Why this queue pair is broken, or that its peer has closed.
  CompletionCode WhyBroken();
  /// Both ends; flushes the receives.
  void Break();

  /// Marks a write to the target as under way. False if it must not be: its key has ended, or the
  /// peer has closed; EndWrite follows either way.
  bool BeginWrite(const Target& target);
  void EndWrite();
  /// False if the key ended before all was written.
  bool WriteTo(const Target& target, char* to, const char* from, uint32_t size);
  /// Carries a write out, or tells why it is not allowed.
  CompletionCode CarryOut(const LocalBuffer& from, RemoteBuffer to);
  Status DoWrite(Opcode opcode, uint64_t id, const LocalBuffer& from, RemoteBuffer to,
                 uint8_t flags);
  template <typename Operation>
  Status DoAtomic(Opcode opcode, uint64_t id, const LocalBuffer& result, RemoteBuffer target,
                  uint8_t flags, Operation operation);
  void RingPeer();
  void Deliver();
  /// False if the message does not fit: the queue pair is broken then.
  bool DeliverOne(const MessageSlot& message);

  // What each request touches lies together.
  ShmCompletionQueue* const send_queue_;
  const std::atomic<uint32_t>* const peer_closed_;
  Connection::Tally* const tally_;
  ShmDevice* const device_;
  const uint64_t send_depth_;
  uint64_t posted_ = 0;                ///< Send-side requests so far.
  uint64_t retired_ = 0;               ///< Those of them that no longer count against the depth.
  std::unique_ptr<Target[]> targets_;  ///< Indexed by the slot of their key.
  uint32_t target_count_ = 0;
  uint32_t deferred_count_ = 0;
  bool broken_ = false;
  bool peer_gone_unreported_ = false;

  // What writes touch besides.
  std::atomic<uint64_t>* const write_mark_;
  uint64_t marked_ = 0;               ///< Writes that were marked so far.
  const char* next_write_ = nullptr;  ///< The address where the last write ended.

  std::array<CheckedRead, kMaxDeferred> deferred_;

  const std::shared_ptr<Connection> connection_;
  ShmCompletionQueue* const receive_queue_;
  const uint64_t receive_depth_;
  const uint32_t group_;
  MessageSender sender_;
  MessageReceiver receiver_;
  /// Ring of the receives outstanding.
  std::vector<PostedReceive> receives_;
  uint64_t receives_posted_ = 0;
  uint64_t receives_done_ = 0;
  /// A message waits in the ring for a receive to be posted.
  bool message_waits_ = false;
};

}  // namespace nacre::rdma
