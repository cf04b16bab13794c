#pragma once

#include <atomic>
#include <cstdint>

#include "rdma/tcp/counters.h"
#include "rdma/tcp/frame_reader.h"
#include "rdma/tcp/mailbox.h"
#include "rdma/tcp/outbox.h"
#include "rdma/tcp/region.h"
#include "rdma/tcp/requester.h"
#include "rdma/tcp/responder.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// One end of a connection without its socket: takes what arrives, carries requests out, completes
/// those of this end, and says what is to be sent.
///
/// Once broken it stays so: what is posted completes at once, what arrives is dropped. If it breaks
/// because a request of the peer failed, what is in the outbox, the reply to that request at the
/// end, is still to be sent; requests of this end complete only then, since their buffers may be
/// among it.
///
/// Thread safety: none; the completion queues' Push may be called by it.
class Session final : private FrameSink {
 public:
  struct Parts {
    QueueDepths depths;
    RegionTable* regions = nullptr;
    TcpCounters* counters = nullptr;
    TcpCompletionQueue* send_queue = nullptr;
    TcpCompletionQueue* receive_queue = nullptr;
    QueuePair* queue_pair = nullptr;  ///< Named by the completions.
    bool messages = true;             ///< The peer may SEND.
    bool peer_may_write = true;       ///< Its requests may change memory.
    /// Set, with release, before the first completion that tells of a failure.
    std::atomic<bool>* broken = nullptr;
  };
  explicit Session(const Parts& parts);

  // These are called by the queue pair, which has checked that the depth and the completion queue
  // allow it.
  void Post(const TcpRequest& request);
  void PostReceive(uint64_t id, const LocalBuffer& buffer);
  bool MaySendMessage() const { return mailbox_.MaySend(); }
  uint64_t receives_outstanding() const { return mailbox_.receives_outstanding(); }
  /// The queue pair goes: what it had outstanding is forgotten, nothing more is completed.
  void Detach();

  // These are called by the thread that serves the socket.
  const FrameReader& reader() const { return reader_; }
  /// While bytes are put into the reader's place and given to Take, one of these is to stand.
  class Turn {
   public:
    /// The session may cease to be open, since that place is the peer's no more.
    explicit Turn(Session* session) : session_(session) { session->BeginTurn(); }
    ~Turn() { session_->responder_.EndTurn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Session* const session_;
  };
  /// Bytes that were put into the reader's place.
  void Advance(size_t size) { reader_.Advance(size); }
  /// False if nothing that arrives matters any more.
  bool Take(const char* bytes, size_t size);
  /// Puts into the outbox what can be said now. Called at the end of each turn, before sending.
  void FillOutbox();
  Outbox* outbox() { return &outbox_; }
  /// Called after sending: a session that waited for that breaks.
  void AfterSending();
  /// The peer has gone, or is to be given up.
  void PeerGone();

  bool broken() const { return state_ == State::kBroken; }
  /// Open: neither broken nor about to be.
  bool open() const { return state_ == State::kOpen; }
  /// Requests that a reply must come for.
  uint64_t awaited() const { return requester_.awaited(); }
  /// The peer sent what is no frame, or a frame that makes no sense.
  bool malformed() const { return malformed_; }

 private:
  enum class State : uint8_t { kOpen, kFailing, kBroken };

  bool TakeFrame(const FrameHeader& header, const char* payload) override;
  bool BeginFrame(const FrameHeader& header, char** place) override;
  bool EndFrame(const FrameHeader& header, char* place_of_last, const char* last,
                size_t size) override;
  bool Dispatch(const FrameHeader& header, const char* payload);
  bool TakeMessage(const FrameHeader& header, const char* payload, uint32_t bytes);
  void BeginTurn();
  /// As what has failed has it.
  void Fail();
  /// Requests complete as flushed, the oldest with `first`.
  void Break(CompletionCode first);

  std::atomic<bool>* const broken_;
  const bool messages_;
  Outbox outbox_;
  Requester requester_;
  Responder responder_;
  Mailbox mailbox_;
  FrameReader reader_;
  State state_ = State::kOpen;
  bool malformed_ = false;
  /// The next request posted is to complete with kPeerGone, the others as flushed.
  bool peer_gone_unreported_ = false;
};

}  // namespace nacre::rdma
