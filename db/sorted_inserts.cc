#include "db/sorted_inserts.h"

#include <algorithm>

#include "db/key_order.h"
#include "util/thread.h"

namespace nacre {
namespace {

/// Below this a thread costs more than it saves.
constexpr size_t kUpdatesPerThread = 4096;
/// How far ahead bytes are asked for: they lie in the order of the log.
constexpr std::ptrdiff_t kAhead = 4;
constexpr size_t kLine = 64;
constexpr size_t kPrefetchMax = 512;

void Prefetch(const Slice& bytes) {
  for (size_t at = 0; at < std::min(bytes.size(), kPrefetchMax); at += kLine) {
    __builtin_prefetch(bytes.data() + at);
  }
}

}  // namespace

void SortedInserts::Add(SequenceNumber sequence, ValueType type, const Slice& key,
                        const Slice& value) {
  const bool bytewise = comparator_ == BytewiseComparator();
  updates_.push_back({.prefix = bytewise ? BytewiseKeyOrder::Prefix(key) : 0,
                      .sequence = sequence,
                      .key = key,
                      .value = value,
                      .type = type});
}

bool SortedInserts::IsBefore(const Update& a, const Update& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const int order = comparator_->Compare(a.key, b.key);
  return order != 0 ? order < 0 : a.sequence > b.sequence;
}

void SortedInserts::SortAndInsert(MemTable* memtable, Iterator begin, Iterator end) const {
  std::sort(begin, end, [this](const Update& a, const Update& b) { return IsBefore(a, b); });
  bool new_chunk = false;
  for (Iterator update = begin; update != end; ++update) {
    if (end - update > kAhead) {
      Prefetch(update[kAhead].key);
      Prefetch(update[kAhead].value);
    }
    memtable->Add(update->sequence, update->type, update->key, update->value, &new_chunk);
  }
}

void SortedInserts::InsertInto(MemTable* memtable, size_t threads) {
  const size_t parts =
      std::clamp<size_t>(updates_.size() / kUpdatesPerThread, 1, std::max<size_t>(threads, 1));
  std::vector<Thread> others;
  Iterator begin = updates_.begin();
  for (size_t left = parts; left > 1; --left) {
    const Iterator end = begin + (updates_.end() - begin) / static_cast<std::ptrdiff_t>(left);
    std::nth_element(begin, end, updates_.end(),
                     [this](const Update& a, const Update& b) { return IsBefore(a, b); });
    others.emplace_back("nacre-open",
                        [this, memtable, begin, end] { SortAndInsert(memtable, begin, end); });
    begin = end;
  }
  SortAndInsert(memtable, begin, updates_.end());
  for (Thread& other : others) other.Join();
}

}  // namespace nacre
