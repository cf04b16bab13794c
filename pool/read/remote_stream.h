#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/buffer_pool.h"
#include "pool/read/read_carrier.h"
#include "pool/read/stream_read.h"
#include "rdma/transport.h"
#include "util/mutex.h"

namespace nacre::pool {

/// The reader of everything that is longer than a record: many reads at a time, for many threads,
/// over one lane. What goes wrong with them is handled here and nowhere else.
///
/// Failures: `Unavailable` naming the node if the pool has not got it, or its connection or its
/// lifeline ends; `TimedOut` naming the node if a waiter has waited as long as an operation may
/// take; `InvalidArgument` beyond the end of the region. Save for the last, all reads fail that are
/// under way from the node.
///
/// Thread safety: all methods may be called from many threads at once.
class RemoteStream {
 public:
  static Status Create(Fabric* fabric, BufferPool* buffers, std::unique_ptr<RemoteStream>* stream);
  ~RemoteStream();

  /// Starts to read all parts into one buffer of `bytes`. What cannot be started shows as a read
  /// that is done, or will be, and failed; so does, unless it is `patient`, one
  /// of whose nodes does not take a connection in time (`TimedOut`).
  std::shared_ptr<StreamRead> Start(std::span<const StreamPart> parts, size_t bytes,
                                    bool patient = true) EXCLUDES(mutex_);
  /// The same into `to`, part of `region`. Both stay until the read is done.
  std::shared_ptr<StreamRead> Start(std::span<const StreamPart> parts, char* to,
                                    const rdma::MemoryRegion* region) EXCLUDES(mutex_);
  /// As the first, for bytes that are needed later: where threads move them, another one does,
  /// unless it has not begun when the read is awaited.
  std::shared_ptr<StreamRead> StartAhead(std::span<const StreamPart> parts, size_t bytes,
                                         bool patient = true) EXCLUDES(mutex_);
  /// Waits until `read`, which Start of this stream gave, is done.
  void Await(const StreamRead& read) EXCLUDES(mutex_);
  /// Waits for so many times `patience` of the pool's (pool/connect/pool_pace.h); 0: for as long as
  /// it takes, unless a node that was asked is down by now. False: the nodes in `*late` have not
  /// answered, and what they have had better be read from elsewhere. What is on its way lands in
  /// its buffer, which the stream keeps for so long.
  bool Await(const StreamRead& read, int patience, std::vector<NodeId>* late) EXCLUDES(mutex_);

 private:
  /// Requests outstanding over all nodes.
  static constexpr size_t kSlots = 256;
  /// One request reads at most so much.
  static constexpr uint64_t kMaxRequestBytes = uint64_t{1} << 30;

  class StreamWait;
  struct Slot {
    std::shared_ptr<StreamRead> read;  ///< Null: the slot is free.
    NodeLink* link = nullptr;
    uint32_t use = 0;  ///< Times it was taken: tells completions of earlier uses.
  };

  RemoteStream(Fabric* fabric, BufferPool* buffers);

  std::shared_ptr<StreamRead> NewRead(size_t bytes, bool patient);
  void StartParts(std::span<const StreamPart> parts, const std::shared_ptr<StreamRead>& read)
      EXCLUDES(mutex_);
  Status StartPart(const StreamPart& part, const std::shared_ptr<StreamRead>& read)
      REQUIRES(mutex_);
  /// One request, within a registration.
  Status Post(NodeLink* link, const StreamPart& part, const std::shared_ptr<StreamRead>& read)
      REQUIRES(mutex_);
  /// Whether no read is outstanding on the node's connection.
  bool IsIdle(const NodeLink& link) const REQUIRES(mutex_);
  Status TakeSlot(size_t* index) REQUIRES(mutex_);
  /// Has this thread start what the carrier has taken and not begun.
  void TakeBack(const StreamRead& read) EXCLUDES(mutex_);
  /// Waits for the read's end, or until `stop` answers true. That is asked over and over, and told
  /// whether it is time to look at the clock.
  template <typename Stop>
  void AwaitUnless(const StreamRead& read, const Stop& stop) EXCLUDES(mutex_);
  /// The nodes that the read waits for.
  std::vector<NodeId> Outstanding(const StreamRead& read) EXCLUDES(mutex_);
  void Poll() REQUIRES(mutex_);
  /// Fails everything outstanding on `link`.
  void Abandon(NodeLink* link, const Status& why) REQUIRES(mutex_);
  /// The same on those nodes that owe the read anything and are gone or, if it is `late`, on all.
  void AbandonFor(const StreamRead& read, bool late) REQUIRES(mutex_);
  void Finish(Slot* slot, size_t index, const Status& status) REQUIRES(mutex_);
  static void Fail(StreamRead* read, NodeId node, const Status& why);
  static void EndPart(StreamRead* read);

  Fabric* const fabric_;
  BufferPool* const buffers_;
  Mutex mutex_;
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ GUARDED_BY(mutex_);
  std::unique_ptr<Lane> lane_ GUARDED_BY(mutex_);  ///< Ends before the slots' buffers.
  std::unique_ptr<ReadCarrier> carrier_;  ///< Null where an adapter moves the bytes. Ends first.
};

}  // namespace nacre::pool
