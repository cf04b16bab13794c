#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/buffer_pool.h"
#include "rdma/transport.h"
#include "table/format/log_format.h"

namespace nacre {

/// A record too large for the ring, in memory of its own.
struct LargeLogRecord {
  pool::Buffer memory;
  uint64_t bytes = 0;

  rdma::LocalBuffer Bytes() const { return memory.Part(0, static_cast<uint32_t>(bytes)); }
};

/// Registered memory in which many threads lay out records one behind the other, as they will lie
/// in a segment, and from which one thread at a time, the leader, writes them.
///
/// Positions count bytes and only grow; the ring holds those from `released()` to `reserved()`.
/// Writers that have reserved room copy at the same time; a record is finished when its slot says
/// so, as in WriteSequencer. A slot is that of the 32 bytes in which a record starts, and holds the
/// record's end: what an earlier lap left there is not beyond the start, so nothing has to be
/// cleared.
///
/// Thread safety: TryReserve, Fill and FillLarge by many threads at once; the rest, as marked, by
/// the leader. What Fill stored happens before Finished shows it; what the leader did with a record
/// happens before its room is reserved again.
class LogRing {
 public:
  /// `bytes` is rounded up to a power of two. Errors as AllocateBuffer.
  static Status Create(pool::PoolClient* client, size_t bytes, std::unique_ptr<LogRing>* ring);
  ~LogRing();

  uint64_t capacity() const { return mask_ + 1; }

  /// False if there is no room now. `bytes` is a multiple of kLogAlignment, and not more than the
  /// capacity. Room that was reserved must be filled, soon: what is behind it waits.
  bool TryReserve(uint64_t bytes, uint64_t* at);
  /// The record of `parts`, one behind the other, in the room of LogRecordBytes(payload) at `at`:
  /// at most the ring's kLargestPart-th part.
  void Fill(uint64_t at, uint64_t generation, SequenceNumber first, uint32_t count,
            std::span<const Slice> parts, uint64_t payload) noexcept;
  static constexpr uint64_t kLargestPart = 4;
  /// Stands for a record elsewhere, in room of kMinLogRecordBytes.
  void FillLarge(uint64_t at, uint64_t generation, std::unique_ptr<LargeLogRecord> large) noexcept;
  uint64_t reserved() const { return reserved_.load(std::memory_order_acquire); }
  /// Acquire: pairs with Release.
  uint64_t released() const { return released_.load(std::memory_order_acquire); }

  struct Entry {
    uint64_t end = 0;
    uint64_t generation = 0;
    LargeLogRecord* large = nullptr;  ///< Null: the record itself lies in the ring.
    uint64_t bytes = 0;               ///< Size in the segment.
  };
  /// Leader: whether the record at `at` is finished.
  bool Finished(uint64_t at, Entry* entry) const;
  /// Leader: makes the record at `at` one of the segment with this stamp.
  void Stamp(uint64_t at, uint32_t stamp) {
    EncodeFixed32(memory_->data() + ((at + kLogStampAt) & mask_), stamp);
  }
  /// Leader: the bytes from `from` on that lie in one piece, at most up to `to`.
  rdma::LocalBuffer Contiguous(uint64_t from, uint64_t to) const;
  /// Leader: everything before `to` is written.
  void Release(uint64_t to) { released_.store(to, std::memory_order_release); }
  /// Leader: so is this record, which is large and now gone.
  void ReleaseLarge(const Entry& entry) {
    delete entry.large;
    Release(entry.end);
  }

 private:
  struct Slot {
    std::atomic<uint64_t> end{0};  ///< | kLarge. Release by Fill: pairs with Finished.
    uint64_t generation = 0;
  };
  static constexpr uint64_t kLarge = 1;

  LogRing(std::unique_ptr<rdma::MemoryRegion> memory, uint64_t bytes);

  Slot& SlotOf(uint64_t at) const { return slots_[(at & mask_) / kMinLogRecordBytes]; }
  void Copy(uint64_t at, const char* from, uint64_t n);

  const std::unique_ptr<rdma::MemoryRegion> memory_;
  const uint64_t mask_;
  /// A record that goes over the ring's end is laid out here first: Fill must not fail for want of
  /// memory. There is one such record at a time, as the next one needs its room.
  const std::unique_ptr<char[]> over_the_end_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint64_t> reserved_{0};
  alignas(64) std::atomic<uint64_t> released_{0};
};

inline bool LogRing::Finished(uint64_t at, Entry* entry) const {
  const Slot& slot = SlotOf(at);
  const uint64_t end = slot.end.load(std::memory_order_acquire);
  if ((end & ~kLarge) <= at) return false;
  entry->end = end & ~kLarge;
  entry->generation = slot.generation;
  entry->large = nullptr;
  entry->bytes = entry->end - at;
  if ((end & kLarge) != 0) [[unlikely]] {
    std::memcpy(&entry->large, memory_->data() + (at & mask_), sizeof(entry->large));
    entry->bytes = entry->large->bytes;
  }
  return true;
}

inline rdma::LocalBuffer LogRing::Contiguous(uint64_t from, uint64_t to) const {
  const uint64_t start = from & mask_;
  return {.data = memory_->data() + start,
          .size = static_cast<uint32_t>(std::min(to - from, capacity() - start)),
          .region = memory_.get()};
}

}  // namespace nacre
