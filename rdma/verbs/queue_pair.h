#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/transport.h"
#include "rdma/verbs/completion_queue.h"
#include "rdma/verbs/connection.h"
#include "rdma/verbs/region.h"

namespace nacre::rdma {

class VerbsDevice;

/// How a completion of the adapter finds its request: the queue pair's number in the completion
/// queue, whether it is a receive, and the low bits of the request's number.
struct WorkRequestId {
  static constexpr uint64_t kReceive = uint64_t{1} << 63;

  static uint64_t Make(uint32_t queue_pair, uint64_t number) {
    return uint64_t{queue_pair} << 32 | static_cast<uint32_t>(number);
  }
  static uint32_t QueuePairOf(uint64_t id) { return static_cast<uint32_t>((id & ~kReceive) >> 32); }
};

/// How many reads and atomics may be under way.
struct ReadLimits {
  uint8_t incoming = 0;
  uint8_t outgoing = 0;
};

/// A reliable connection (RC) of the adapter.
///
/// Every work request handed to the adapter has an entry in a ring, in order, until the adapter has
/// completed it or one behind it. The adapter completes requests in order, each failed one, and of
/// the successful ones those that were signalled. So:
///  - a completion for entry n says that all before it have succeeded;
///  - what the adapter need not see (a local error, a request of a queue pair that is broken) is an
///    entry as well, which fails once all before it have completed;
///  - when the queue pair breaks with entries under way, a last signalled request, which can only
///    fail, makes the adapter report even where all under way were unsignalled and had succeeded;
///  - a heartbeat is an entry that no caller hears of. A connection manager tells of a peer that
///    ends, not of one whose host vanishes: so a control connection without requests writes 0 bytes
///    once a period, by its owner's hand (in Poll or Wait, when the event thread asks for
///    attention), and breaks as by any other request if no answer comes. One at a time is in
///    flight.
class VerbsQueuePair final : public QueuePair {
 public:
  /// Creates the adapter's queue pair, not yet connected. `connection` is, or will be, this one's.
  static Status Create(VerbsDevice* device, std::shared_ptr<VerbsConnection> connection,
                       QueueDepths depths, VerbsCompletionQueue* send_queue,
                       VerbsCompletionQueue* receive_queue,
                       std::unique_ptr<VerbsQueuePair>* queue_pair);
  ~VerbsQueuePair() override;

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

  bool broken() const override {
    return broken_ || connection_->fate() != VerbsConnection::Fate::kStands;
  }
  bool peer_hung_up() const override { return connection_->peer_hung_up(); }
  const std::string& peer() const override { return connection_->peer(); }

  // The handshake sends it.
  uint32_t number() const { return queue_pair_->qp_num; }
  const std::shared_ptr<VerbsConnection>& connection() const { return connection_; }
  /// From reset to ready, by what the connection manager has agreed on. `reads`: how many may be
  /// under way in each direction, or null for what it has agreed on. `peer_may_write`: if not, the
  /// adapter refuses all that would change memory, save that a control connection takes writes,
  /// since heartbeats are such, of no bytes.
  Status BringUp(const ReadLimits* reads, bool peer_may_write);
  /// The peer's end is ready as well.
  void Establish();

  // Called by the completion queues.
  void Complete(const ibv_wc& completion);
  /// Breaks the queue pair if its connection has ended; sends a heartbeat if one is due.
  void Attend();

 private:
  /// Bits that some kernels set for themselves, and refuse from others.
  static constexpr int kKernelOnlyMask = 0xe00000;
  static constexpr uint32_t kMaxBatch = 32;

  /// A work request under way.
  struct Entry {
    static constexpr uint8_t kReported = 1;  ///< Success is reported.
    /// Marks the last work request of its request, which may take several.
    static constexpr uint8_t kLast = 2;
    static constexpr uint8_t kHeartbeat = 4;

    uint64_t id = 0;
    uint32_t bytes = 0;  ///< Bytes of the whole request.
    Opcode opcode = Opcode::kRead;
    uint8_t flags = 0;
    /// What becomes of it when the adapter says success: it got a request of no bytes instead.
    CompletionCode outcome = CompletionCode::kSuccess;
  };

  /// What the Post methods make of their arguments.
  struct Request {
    uint64_t id;
    Opcode opcode;
    ibv_wr_opcode operation;
    LocalBuffer local;
    RemoteBuffer remote;
    uint64_t first = 0;  ///< The immediate; expected; or the addend.
    uint64_t second = 0;
    uint8_t flags;
    bool misaligned = false;
  };

  VerbsQueuePair(VerbsDevice* device, std::shared_ptr<VerbsConnection> connection,
                 QueueDepths depths, VerbsCompletionQueue* send_queue,
                 VerbsCompletionQueue* receive_queue, uint32_t work_requests);

  bool IsLocal(const LocalBuffer& buffer) const;
  bool IsMessage(Opcode opcode) const {
    return opcode == Opcode::kSend || opcode == Opcode::kWriteWithImm;
  }

  Status Submit(const Request& request);
  Status SubmitAtomic(Request request);
  Status SubmitParts(const Request& request, uint64_t part_bytes);
  /// A request that fails when its turn comes, with `code` if nothing before it does.
  Status SubmitFailure(const Request& request, CompletionCode code);
  Status Busy(const char* what);
  bool PeerTakesMessage(Opcode opcode);
  /// Adds a part of the request to the batch: `size` bytes from `offset` on.
  void AddToBatch(const Request& request, uint64_t offset, uint32_t size, bool last, bool signal);
  void AddEntry(const Request& request, uint8_t flags,
                CompletionCode outcome = CompletionCode::kSuccess);
  void Heartbeat();
  /// Hands the batch to the adapter.
  void Ring();
  /// Hands over a signalled request of no bytes that has no entry: it says that all before it have
  /// completed. False if the adapter refuses it.
  bool PostMarker();

  void CompleteSend(const ibv_wc& completion);
  void CompleteReceive(const ibv_wc& completion);
  /// All entries before `number` have succeeded.
  void RetireUntil(uint64_t number);
  void Succeed(const Entry& entry);
  void FailOldest(CompletionCode code);
  /// Retires the oldest entry if it is a heartbeat, which completes without being reported.
  bool RetireHeartbeat();
  void EndHeartbeat();
  /// Breaks the queue pair if its connection has ended.
  void LookAtConnection();
  void EmitReceive(Opcode opcode, CompletionCode code, uint32_t bytes, uint32_t immediate);
  /// Both ends. `next`: of the next request that fails; those after it are flushed.
  void Break(CompletionCode next);
  /// What the adapter has never seen, or will never complete.
  void FlushSends();
  void FlushReceives();
  /// Checks that the path is the one asked for, and tells the log.
  Status CheckPath(const ibv_qp_attr& attributes) const;
  /// Lets what was posted arrive before the queue pair is destroyed, for a short time.
  void Drain();

  // What each request touches lies together.
  VerbsCompletionQueue* const send_queue_;
  const std::shared_ptr<VerbsConnection> connection_;
  VerbsDevice* const device_;
  UniqueQueuePair queue_pair_;
  const std::unique_ptr<Entry[]> entries_;
  const uint64_t entry_mask_;
  uint64_t appended_ = 0;  ///< Entries so far;
  uint64_t handed_ = 0;    ///< of these, handed to the adapter; the rest is in the batch;
  uint64_t retired_ = 0;   ///< and completed.
  uint32_t requests_ = 0;  ///< Outstanding.
  uint32_t messages_ = 0;  ///< Those of them that take a receive of the peer.
  const uint32_t send_depth_;
  const uint32_t receive_depth_;
  const bool control_;
  /// Work requests that the adapter's send queue holds, besides the marker.
  const uint32_t work_requests_;
  uint32_t number_in_send_queue_ = 0;
  uint32_t inline_bytes_ = 0;  ///< Writes and sends up to this size are copied when posted.
  uint32_t batch_count_ = 0;
  bool broken_ = false;
  bool established_ = false;
  bool heartbeat_under_way_ = false;
  bool failure_told_ = false;  ///< A request has said why the queue pair broke, or none has to.
  bool lost_ = false;          ///< The adapter will complete nothing more.
  CompletionCode next_failure_ = CompletionCode::kFlushed;  ///< Once broken.
  /// The failure of the oldest request, so far.
  CompletionCode part_failure_ = CompletionCode::kSuccess;
  uint64_t messages_posted_ = 0;
  uint64_t heartbeat_period_ = 0;  ///< The event loop's period when last read.
  uint64_t appended_then_ = 0;     ///< and the entries until then.

  std::array<ibv_send_wr, kMaxBatch> batch_;
  std::array<std::array<ibv_sge, 2>, kMaxBatch> batch_elements_;

  VerbsCompletionQueue* const receive_queue_;
  uint32_t number_in_receive_queue_ = 0;
  const std::unique_ptr<uint64_t[]> receives_;  ///< Ring of their ids.
  const uint64_t receive_mask_;
  uint64_t receives_posted_ = 0;
  uint64_t receives_handed_ = 0;  ///< Those of them that were handed to the adapter.
  uint64_t receives_done_ = 0;
};

}  // namespace nacre::rdma
