#pragma once

#include <cstdint>
#include <vector>

#include "rdma/tcp/completion_queue.h"
#include "rdma/tcp/counters.h"
#include "rdma/tcp/frame.h"
#include "rdma/tcp/outbox.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// A send-side request as posted, and how far it got.
struct TcpRequest {
  uint64_t id = 0;
  char* local = nullptr;
  uint64_t address = 0;
  uint64_t first = 0;   ///< Expected, or addend.
  uint64_t second = 0;  ///< Desired.
  uint32_t key = 0;
  uint32_t size = 0;
  uint32_t immediate = 0;
  Opcode opcode = Opcode::kRead;
  uint8_t flags = 0;
  /// Its buffer is not within its region. It is found out when posted but must fail in its turn, so
  /// it is sent as a write of nothing, whose reply tells that all before it are done.
  bool unusable = false;
  uint64_t sent_at = 0;  ///< Outbox::end() behind its last frame.
};

/// The requests of one end: makes frames of them and completions of the replies.
///
/// Requests are numbered from 0. [completed_, encoded_) have been put into the outbox, [encoded_,
/// posted_) not yet; of request encoded_ the first fragments may have been, and of the oldest one
/// that needs a reply of its own the first fragments may have arrived.
///
/// Thread safety: none.
class Requester {
 public:
  /// `queue_pair`: named by the completions.
  Requester(int depth, TcpCompletionQueue* queue, QueuePair* queue_pair, Outbox* outbox,
            TcpCounters* counters);

  /// There is room for as many as the depth; the completion was promised.
  void Post(const TcpRequest& request);
  /// Puts into the outbox what may be sent now.
  void Encode();

  // Replies, as FrameSink has them: false if the reply makes no sense.
  bool Begin(const FrameHeader& header, char** place);
  bool End(const FrameHeader& header, char* place_of_last, const char* last, size_t size);
  bool Take(const FrameHeader& header, const char* payload);

  /// Completes all requests: the oldest one with `first`, the others as flushed.
  void Flush(CompletionCode first);
  /// Takes all requests back without completing them.
  void Forget();

  /// The oldest request failed, like this; the queue pair must break.
  CompletionCode failure() const { return failure_; }
  bool failed() const { return failure_ != CompletionCode::kSuccess; }
  uint64_t outstanding() const { return posted_ - completed_; }
  /// Requests that a reply must come for, so that silence is a sign of death.
  uint64_t awaited() const { return awaited_; }

 private:
  static bool IsAwaited(const TcpRequest& request);
  static bool NeedsReply(const TcpRequest& request);
  TcpRequest& At(uint64_t number) { return ring_[number & mask_]; }

  bool EncodeRead(const TcpRequest& request);
  bool EncodeWrite(const TcpRequest& request);
  void EncodeOther(const TcpRequest& request);
  /// The request that a reply names: false if there is none that was sent.
  bool Find(const FrameHeader& header, uint64_t* number) const;
  /// Completes those before `end`, whose success a reply implies. False if it cannot.
  bool CompleteBefore(uint64_t end);
  /// The oldest request.
  void Complete(CompletionCode code);
  /// The oldest request is the read or atomic that the reply is for.
  bool Expects(const FrameHeader& header);
  void TakeReadBytes(uint32_t size);

  TcpCompletionQueue* const queue_;
  QueuePair* const queue_pair_;
  Outbox* const outbox_;
  TcpCounters* const counters_;
  const uint64_t mask_;
  std::vector<TcpRequest> ring_;  ///< Made with the first request: nodes post few, to few.
  uint64_t posted_ = 0;
  uint64_t encoded_ = 0;
  uint64_t completed_ = 0;
  uint64_t awaited_ = 0;
  uint32_t encoded_bytes_ = 0;  ///< Bytes of request encoded_.
  uint32_t arrived_bytes_ = 0;  ///< Bytes of the read at completed_.
  uint32_t asked_bytes_ = 0;    ///< Bytes of all reads that have not arrived yet.
  bool stopped_ = false;        ///< Behind an unusable request nothing is sent.
  CompletionCode failure_ = CompletionCode::kSuccess;
};

}  // namespace nacre::rdma
