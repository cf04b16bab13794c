#pragma once

#include <cstdint>
#include <memory>

#include "rdma/tcp/frame.h"
#include "rdma/tcp/outbox.h"
#include "rdma/tcp/region.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// Carries out the peer's one-sided requests, each when its frame arrives, and answers them.
///
/// What is read is copied before it is sent: its checksum must be that of the bytes that leave,
/// while others may be writing to them, and no word may leave in two pieces taken at two times.
///
/// Thread safety: none.
class Responder {
 public:
  /// `depth`: how many requests the peer may have outstanding. `may_write`: whether they may
  /// change memory; if not, those that would fail as with a key that allows reads only.
  Responder(int depth, RegionTable* regions, bool may_write, Outbox* outbox);

  // As FrameSink has them: false if the frame makes no sense, or a request failed.
  bool Take(const FrameHeader& header, const char* payload);
  bool Begin(const FrameHeader& header, char** place);
  bool End(const FrameHeader& header, char* place_of_last, const char* last, size_t size);
  /// Around each arrival of bytes: between two of them the memory of a long write that is under way
  /// may be revoked. False if it was: then that request has failed.
  bool BeginTurn();
  void EndTurn();

  /// A message was delivered, or waits for its receive.
  void MessageTaken(const FrameHeader& header) { WantAck(header); }
  /// Puts a reply that was put off, in case another one would do, into the outbox.
  void AddAck();
  /// A request failed: the reply that tells it is in the outbox, and nothing may follow it.
  bool failed() const { return failed_; }
  /// The size of the write that is complete, with all its fragments.
  uint32_t bytes_of_write() const { return bytes_of_write_; }

 private:
  bool Read(const FrameHeader& header);
  bool Write(const FrameHeader& header, const char* payload);
  bool Atomic(const FrameHeader& header, const char* payload);
  /// Counts a write's fragments; false if they do not belong together.
  bool CountFragment(const FrameHeader& header);
  void WantAck(const FrameHeader& header);
  bool Fail(const FrameHeader& header);
  /// The window to change `size` bytes in; null if that is not allowed. Only with a window a store
  /// has begun, which is to be ended.
  std::shared_ptr<const RegionWindow> BeginStore(const FrameHeader& header, uint64_t size) const;

  RegionTable* const regions_;
  const bool may_write_;
  Outbox* const outbox_;
  const size_t outbox_max_;
  /// Keeps the memory of the long write under way.
  std::shared_ptr<const RegionWindow> window_;
  bool storing_ = false;  ///< Between BeginStore and EndStore of window_.
  uint32_t bytes_of_write_ = 0;
  uint32_t number_of_write_ = 0;
  bool in_write_ = false;  ///< Fragments came, the last one did not.
  bool want_ack_ = false;
  bool failed_ = false;
  uint32_t ack_number_ = 0;
};

}  // namespace nacre::rdma
