#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/buffer_pool.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre::pool {

/// A read in flight, into a buffer of its own or into memory of the caller's. The waiter shares it
/// with the stream that carries it, so that either may be gone first.
class StreamRead {
 public:
  /// Where the bytes are, unless they went into memory of the caller's.
  Buffer& buffer() { return buffer_; }
  /// Acquire: pairs with the stream's release, so that status and bytes may be looked at.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Once done. Of several failures, the first.
  const Status& status() const { return status_; }
  /// Once done: the nodes that failed it.
  const std::vector<NodeId>& failed() const { return failed_; }

 private:
  friend class RemoteStream;
  Buffer buffer_;
  char* to_ = nullptr;  ///< Where the bytes go, which `region_` has registered.
  const rdma::MemoryRegion* region_ = nullptr;
  std::vector<NodeId> failed_;
  int parts_ = 1;  ///< Requests not completed, and one while they are posted; under the stream's
                   ///< mutex, as is status_ until done.
  Status status_;
  std::atomic<bool> done_{false};
};

/// What one node gives of a read.
struct StreamPart {
  NodeId node = kNoNode;
  uint64_t offset = 0;  ///< In the node's region.
  size_t length = 0;    ///< More than 0.
  size_t at = 0;        ///< Where in the buffer it goes.
};

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
  /// that is done, or will be, and failed.
  std::shared_ptr<StreamRead> Start(std::span<const StreamPart> parts, size_t bytes)
      EXCLUDES(mutex_);
  /// The same into `to`, part of `region`. Both stay until the read is done.
  std::shared_ptr<StreamRead> Start(std::span<const StreamPart> parts, char* to,
                                    const rdma::MemoryRegion* region) EXCLUDES(mutex_);
  /// Waits until `read`, which Start of this stream gave, is done.
  void Await(const StreamRead& read) EXCLUDES(mutex_);

 private:
  /// Requests outstanding over all nodes.
  static constexpr size_t kSlots = 256;
  /// One request reads at most so much.
  static constexpr uint64_t kMaxRequestBytes = uint64_t{1} << 30;

  struct Slot {
    std::shared_ptr<StreamRead> read;  ///< Null: the slot is free.
    NodeLink* link = nullptr;
    uint32_t use = 0;  ///< Times it was taken: tells completions of earlier uses.
  };

  RemoteStream(Fabric* fabric, BufferPool* buffers);

  void StartParts(std::span<const StreamPart> parts, const std::shared_ptr<StreamRead>& read)
      EXCLUDES(mutex_);
  Status StartPart(const StreamPart& part, const std::shared_ptr<StreamRead>& read)
      REQUIRES(mutex_);
  /// One request, within a registration.
  Status Post(NodeLink* link, const StreamPart& part, const std::shared_ptr<StreamRead>& read)
      REQUIRES(mutex_);
  Status TakeSlot(size_t* index) REQUIRES(mutex_);
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
};

}  // namespace nacre::pool
