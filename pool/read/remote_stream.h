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
#include "util/mutex.h"

namespace nacre::pool {

/// A read in flight into a buffer of its own. The waiter shares it with the stream that carries it,
/// so that either may be gone first.
class StreamRead {
 public:
  Buffer& buffer() { return buffer_; }
  /// Acquire: pairs with the stream's release, so that status and bytes may be looked at.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Once done. Of several failures, the first.
  const Status& status() const { return status_; }
  /// Once done: the nodes that failed it.
  const std::vector<NodeLink*>& failed() const { return failed_; }

 private:
  friend class RemoteStream;
  Buffer buffer_;
  std::vector<NodeLink*> failed_;
  int parts_ = 1;  ///< Requests not completed, and one while they are posted; under the stream's
                   ///< mutex, as is status_ until done.
  Status status_;
  std::atomic<bool> done_{false};
};

/// What one node gives of a read.
struct StreamPart {
  NodeLink* link = nullptr;
  uint64_t offset = 0;  ///< In the node's region.
  size_t length = 0;    ///< More than 0.
  size_t at = 0;        ///< Where in the buffer it goes.
};

/// A lane shared by iterators, which may move between threads.
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

  Status TakeSlot(size_t* index) REQUIRES(mutex_);
  Status StartPart(const StreamPart& part, const std::shared_ptr<StreamRead>& read)
      REQUIRES(mutex_);
  /// One request, within a registration.
  Status Post(const StreamPart& part, const std::shared_ptr<StreamRead>& read) REQUIRES(mutex_);
  void Poll() REQUIRES(mutex_);
  /// Fails everything outstanding on `link`.
  void Abandon(NodeLink* link, const Status& why) REQUIRES(mutex_);
  /// The same on all nodes that owe the read anything.
  void AbandonFor(const StreamRead& read) REQUIRES(mutex_);
  void Finish(Slot* slot, size_t index, const Status& status) REQUIRES(mutex_);
  static void Fail(StreamRead* read, NodeLink* link, const Status& why);
  static void EndPart(StreamRead* read);

  const ClientContext* const context_;
  BufferPool* const buffers_;
  Mutex mutex_;
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ GUARDED_BY(mutex_);
  std::unique_ptr<Lane> lane_ GUARDED_BY(mutex_);  ///< Ends before the slots' buffers.
};

}  // namespace nacre::pool
