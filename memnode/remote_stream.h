#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "memnode/buffer_pool.h"
#include "memnode/lane.h"
#include "nacre/status.h"
#include "rdma/transport.h"
#include "util/mutex.h"

namespace nacre::memnode {

/// A read on its way into a buffer of its own. Shared by whoever waits for it and the stream that
/// carries it, so that either may be gone first.
class StreamRead {
 public:
  const Buffer& buffer() const { return buffer_; }
  /// Acquire: pairs with the stream's release, so that status and bytes may be looked at.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Once done.
  const Status& status() const { return status_; }

 private:
  friend class RemoteStream;
  Buffer buffer_;
  int parts_ = 1;  ///< Requests not completed, and one while they are posted; under the stream's
                   ///< mutex, as is status_ until done.
  Status status_;
  std::atomic<bool> done_{false};
};

/// A lane shared by iterators, which may move between threads.
///
/// Thread safety: all methods may be called from many threads at once.
class RemoteStream {
 public:
  static Status Create(Fabric* fabric, BufferPool* buffers, std::unique_ptr<RemoteStream>* stream);
  ~RemoteStream();

  /// Starts to read [offset, offset + length) of `link`'s region; length > 0.
  Status Start(NodeLink* link, uint64_t offset, size_t length, std::shared_ptr<StreamRead>* read)
      EXCLUDES(mutex_);
  /// Waits until `read`, which Start of this stream gave, is done.
  void Await(NodeLink* link, const StreamRead& read) EXCLUDES(mutex_);

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
  Status PostPart(NodeLink* link, uint64_t offset, uint64_t done, uint32_t part,
                  const std::shared_ptr<StreamRead>& read) REQUIRES(mutex_);
  void Poll() REQUIRES(mutex_);
  /// Fails everything outstanding on `link`.
  void Abandon(NodeLink* link, const Status& why) REQUIRES(mutex_);
  void Finish(Slot* slot, size_t index, const Status& status) REQUIRES(mutex_);
  static void EndPart(StreamRead* read);

  const ClientContext* const context_;
  BufferPool* const buffers_;
  Mutex mutex_;
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ GUARDED_BY(mutex_);
  std::unique_ptr<Lane> lane_ GUARDED_BY(mutex_);  ///< Ends before the slots' buffers.
};

}  // namespace nacre::memnode
