#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/point_lane.h"
#include "pool/read/point_reader.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// A read without a waiting thread. It stays where it is, and with its reader, from `Add` to
/// `Release`.
struct AsyncRead {
  PointRead read;

 private:
  friend class AsyncReader;
  AsyncRead* next = nullptr;  ///< Behind it: of its node, or of those that have ended.
  uint64_t number = 0;        ///< Number among the node's requests.
  uint64_t posted_nanos = 0;
  uint32_t slot = 0;
};

/// Reads many records for one thread that never waits: it adds reads, posts them together, and
/// collects those that have ended, in whatever order. The bytes stay where they landed until the
/// read is released.
///
/// Thread safety: none; used by one thread at a time.
class AsyncReader final : private PointLane {
 public:
  static constexpr uint32_t kMaxReadBytes = 64 << 10;

  /// `fabric` outlives the reader.
  static Status Create(Fabric* fabric, std::unique_ptr<AsyncReader>* reader);
  /// Gives up what is under way: no read that was added is touched any more.
  ~AsyncReader();
  AsyncReader(const AsyncReader&) = delete;
  AsyncReader& operator=(const AsyncReader&) = delete;

  /// Takes a read of at most `kMaxReadBytes`; it begins with the next Post. False: there is no room
  /// until others have ended and were released.
  bool Add(AsyncRead* read);
  /// Sends what was added, with one doorbell a node. Connects where there is no connection, which
  /// takes time; a node that cannot be reached fails its reads.
  void Post();
  /// A read that has ended, with its status, or null: none has since. To be released.
  AsyncRead* Take();
  void Release(AsyncRead* read);

  size_t under_way() const { return under_way_; }

 private:
  /// First in, first out, linked through the reads.
  class Queue {
   public:
    bool empty() const { return first_ == nullptr; }
    AsyncRead* front() const { return first_; }
    void Push(AsyncRead* read);
    AsyncRead* Pop();

   private:
    AsyncRead* first_ = nullptr;
    AsyncRead* last_ = nullptr;
  };

  /// The reads of one node.
  struct Peer {
    Queue added;  ///< To be posted.
    Queue posted;
    int requests = 0;     ///< Outstanding, or to be.
    int patient = 0;      ///< Posted reads that are to be waited for.
    bool listed = false;  ///< In added_to_.
    uint64_t late = 0;    ///< The number of the read that was found late last.
  };

  /// Landing memory in slots of two sizes: what nearly all reads need, and the rest.
  static constexpr uint32_t kSmallBytes = 1 << 10;
  static constexpr uint32_t kSmallSlots = 1024;
  static constexpr uint32_t kLargeSlots = 32;
  /// One that straddles two pieces of a region takes two.
  static constexpr int kRequestsOfRead = 2;

  explicit AsyncReader(std::unique_ptr<Lane> lane);

  char* SlotData(uint32_t slot) const;
  void PostTo(NodeId node, Peer* peer, uint64_t now);
  /// Ends those that have succeeded.
  void TakeEnded(NodeId node);
  void FailReads(NodeId node, uint64_t first, const Status& why) override;
  /// Gives up on nodes where one waits longer than an operation may.
  void FailLate();
  /// Takes the first of those posted.
  static AsyncRead* PopPosted(Peer* peer);
  void End(AsyncRead* read, Status status);

  const uint64_t timeout_nanos_;
  std::vector<Peer> peers_;       ///< By node, as far as was needed.
  std::vector<NodeId> added_to_;  ///< Nodes with reads to be posted.
  std::vector<uint32_t> small_;   ///< Free slots.
  std::vector<uint32_t> large_;
  Queue ended_;
  size_t under_way_ = 0;  ///< Added, and not taken.
};

}  // namespace nacre::pool
