#include "db/wal/log_ring.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "pool/store/mirrored_extent.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr size_t kMinRingBytes = 4096;

}  // namespace

LogRing::LogRing(std::unique_ptr<rdma::MemoryRegion> memory, uint64_t bytes)
    : memory_(std::move(memory)),
      mask_(bytes - 1),
      over_the_end_(std::make_unique<char[]>(bytes / kLargestPart)),
      slots_(std::make_unique<Slot[]>(bytes / kMinLogRecordBytes)) {}

Status LogRing::Create(pool::PoolClient* client, size_t bytes, std::unique_ptr<LogRing>* ring) {
  const size_t rounded = std::bit_ceil(std::max(bytes, kMinRingBytes));
  std::unique_ptr<rdma::MemoryRegion> memory;
  NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client->fabric(), rounded, &memory));
  ring->reset(new LogRing(std::move(memory), rounded));
  return Status::OK();
}

LogRing::~LogRing() {
  Entry entry;
  for (uint64_t at = released(); at < reserved() && Finished(at, &entry); at = entry.end) {
    delete entry.large;
  }
}

bool LogRing::TryReserve(uint64_t bytes, uint64_t* at) {
  uint64_t from = reserved_.load(std::memory_order_relaxed);
  do {
    // A position that was released meanwhile only makes for more room.
    if (from + bytes - released() > capacity()) return false;
  } while (!reserved_.compare_exchange_weak(from, from + bytes, std::memory_order_acq_rel,
                                            std::memory_order_relaxed));
  *at = from;
  return true;
}

void LogRing::Copy(uint64_t at, const char* from, uint64_t n) {
  const uint64_t start = at & mask_;
  const uint64_t fits = std::min(n, capacity() - start);
  std::memcpy(memory_->data() + start, from, fits);
  if (NACRE_PLANTED_BUG("log.record-cut-at-the-end-of-the-ring")) return;
  if (fits < n) std::memcpy(memory_->data(), from + fits, n - fits);
}

void LogRing::Fill(uint64_t at, uint64_t generation, SequenceNumber first, uint32_t count,
                   std::span<const Slice> parts, uint64_t payload) noexcept {
  const uint64_t bytes = LogRecordBytes(payload);
  if ((at & mask_) + bytes <= capacity()) [[likely]] {
    EncodeLogRecord(memory_->data() + (at & mask_), first, count, parts, payload);
  } else {
    // Once a lap: a copy costs nothing that anyone would notice.
    assert(bytes <= capacity() / kLargestPart);
    EncodeLogRecord(over_the_end_.get(), first, count, parts, payload);
    Copy(at, over_the_end_.get(), bytes);
  }
  Slot& slot = SlotOf(at);
  slot.generation = generation;
  slot.end.store(at + bytes, std::memory_order_release);
}

void LogRing::FillLarge(uint64_t at, uint64_t generation,
                        std::unique_ptr<LargeLogRecord> large) noexcept {
  // Eight aligned bytes do not straddle the ring's end.
  const LargeLogRecord* const pointer = large.release();
  std::memcpy(memory_->data() + (at & mask_), &pointer, sizeof(pointer));
  Slot& slot = SlotOf(at);
  slot.generation = generation;
  slot.end.store((at + kMinLogRecordBytes) | kLarge, std::memory_order_release);
}

}  // namespace nacre
