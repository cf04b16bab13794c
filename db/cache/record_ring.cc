#include "db/cache/record_ring.h"

#include <cassert>

#include "util/memory/concurrent_copy.h"

namespace nacre {

namespace {

constexpr int kLengthBits = 24;
constexpr int kOffsetBits = 40;
/// In the place of a table's id: nothing is here up to the end of the ring.
constexpr uint64_t kGap = UINT64_MAX;

std::atomic_ref<uint64_t> WordAt(char* memory) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory));
}

}  // namespace

RecordRing::RecordRing(char* memory, size_t bytes)
    : memory_(memory), units_(bytes / kUnit), head_(units_), tail_(units_) {
  assert(bytes % kUnit == 0 && units_ > 0 && units_ <= kPositionMask);
}

bool RecordRing::CanHold(const RecordName& name, size_t record_bytes) {
  return name.table_id != kGap && name.offset < uint64_t{1} << kOffsetBits &&
         record_bytes < size_t{1} << kLengthBits;
}

size_t RecordRing::used() const {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  const uint64_t head = head_.load(std::memory_order_relaxed);
  return head < tail ? 0 : (head - tail) * kUnit;
}

RecordRing::Header RecordRing::HeaderAt(uint64_t position) const {
  char* const at = At(position);
  Header header;
  header.name.table_id = WordAt(at).load(std::memory_order_relaxed);
  const uint64_t rest = WordAt(at + sizeof(uint64_t)).load(std::memory_order_relaxed);
  header.name.offset = rest >> kLengthBits;
  header.length = rest & ((uint64_t{1} << kLengthBits) - 1);
  return header;
}

void RecordRing::PutHeader(uint64_t position, const Header& header) {
  char* const at = At(position);
  WordAt(at).store(header.name.table_id, std::memory_order_relaxed);
  WordAt(at + sizeof(uint64_t))
      .store(header.name.offset << kLengthBits | header.length, std::memory_order_relaxed);
}

std::optional<uint64_t> RecordRing::WholeOf(uint64_t position, uint64_t tail) const {
  const uint64_t ahead = (position - tail) & kPositionMask;
  if (ahead >= units_) return std::nullopt;
  return tail + ahead;
}

bool RecordRing::Read(uint64_t position, const RecordName& name, std::unique_ptr<char[]>* buffer,
                      Slice* record) const {
  const auto whole = WholeOf(position, tail_.load(std::memory_order_relaxed));
  if (!whole.has_value()) return false;
  const Header header = HeaderAt(*whole);
  if (header.name != name || UnitsOf(header.length) > UnitsToEnd(*whole)) return false;
  *buffer = std::make_unique_for_overwrite<char[]>(header.length);
  CopyConcurrent(buffer->get(), At(*whole) + kUnit, header.length);
  // Relaxed, but behind the copy, whose fence pairs with the one in Append: who has read a byte
  // that was written meanwhile sees that the tail has passed the entry.
  if (tail_.load(std::memory_order_relaxed) > *whole) return false;
  *record = Slice(buffer->get(), header.length);
  return true;
}

bool RecordRing::Fits(size_t record_bytes) const {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  const uint64_t units = UnitsOf(record_bytes);
  const uint64_t gap = units > UnitsToEnd(head) ? UnitsToEnd(head) : 0;
  return head + gap + units - tail_.load(std::memory_order_relaxed) <= units_;
}

uint64_t RecordRing::Append(const RecordName& name, const Slice& record) {
  assert(Fits(record.size()) && CanHold(name, record.size()));
  std::atomic_thread_fence(std::memory_order_release);  // Pairs with the one in Read's copy.
  uint64_t head = head_.load(std::memory_order_relaxed);
  const uint64_t units = UnitsOf(record.size());
  if (units > UnitsToEnd(head)) {
    PutHeader(head, {.name = {.table_id = kGap}});
    head += UnitsToEnd(head);
  }
  PutHeader(head, {.name = name, .length = record.size()});
  CopyAndPublish(At(head) + kUnit, record.data(), record.size());
  head_.store(head + units, std::memory_order_relaxed);
  return head & kPositionMask;
}

std::optional<RecordRing::Entry> RecordRing::Oldest() {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head) return std::nullopt;
  if (HeaderAt(tail).name.table_id == kGap) {
    tail += UnitsToEnd(tail);
    tail_.store(tail, std::memory_order_relaxed);  // A gap is followed by an entry.
  }
  const Header header = HeaderAt(tail);
  return Entry{.name = header.name,
               .position = tail & kPositionMask,
               .record = Slice(At(tail) + kUnit, header.length)};
}

void RecordRing::DropOldest() {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  tail_.store(tail + UnitsOf(HeaderAt(tail).length), std::memory_order_relaxed);
}

bool RecordRing::Has(uint64_t position, const RecordName& name) const {
  const auto whole = WholeOf(position, tail_.load(std::memory_order_relaxed));
  return whole.has_value() && HeaderAt(*whole).name == name;
}

}  // namespace nacre
