#include "db/memtable/memtable.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "db/memtable/memtable_order.h"
#include "table/format/key_order.h"
#include "table/iterator/internal_iterator.h"
#include "util/hash.h"
#include "util/memory/arena.h"
#include "util/per_thread.h"

namespace nacre {
namespace {

/// Up to here a value costs less beside its key than an address, and the way there, would.
constexpr size_t kCopiedValueBytes = 64;

/// Written by one thread, summed by others at any time.
class Counter {
 public:
  void Add(uint64_t n) { value_.store(value() + n, std::memory_order_relaxed); }
  void RaiseTo(uint64_t n) {
    if (n > value()) value_.store(n, std::memory_order_relaxed);
  }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_;
};

}  // namespace

/// All that has to do with the order of keys, and the counters.
class MemTable::Rep {
 public:
  explicit Rep(std::shared_ptr<ArenaBlockSource> blocks) : arena_(std::move(blocks)) {}
  virtual ~Rep() = default;

  virtual MemTableEntry* Add(uint64_t tag, const Slice& user_key, const Slice& value,
                             ValuePlace place, bool* new_chunk) = 0;
  /// The first entry at or behind (`user_key`, `tag`); null if there is none.
  virtual const MemTableEntry* LowerBound(const Slice& user_key, uint64_t tag) = 0;
  virtual std::unique_ptr<InternalIterator> NewIterator() = 0;
  virtual void Seal() = 0;
  virtual void KeepList() = 0;
  virtual std::vector<std::string> Divide(size_t parts) = 0;

  struct Counters {
    Counter entries;
    Counter deletions;
    Counter operands;
    Counter data_bytes;
    Counter largest_key;
    Counter largest_value;
    MemTableEntry* last;  ///< The one that the thread put into the index last.
  };

  ConcurrentArena* arena() { return &arena_; }
  size_t MemoryUsage() const { return arena_.MemoryUsage(); }
  Counters& MyCounters() { return counters_.Mine(); }

  uint64_t Sum(const Counter Counters::*counter) const {
    uint64_t sum = 0;
    counters_.ForEach([&](const Counters& of_thread) { sum += (of_thread.*counter).value(); });
    return sum;
  }
  uint64_t Largest(const Counter Counters::*counter) const {
    uint64_t largest = 0;
    counters_.ForEach([&](const Counters& of_thread) {
      largest = std::max(largest, (of_thread.*counter).value());
    });
    return largest;
  }

 protected:
  ConcurrentArena arena_;

 private:
  PerThread<Counters> counters_;
};

template <typename Order>
class MemTable::RepOf final : public Rep {
 public:
  RepOf(const Order& order, std::shared_ptr<ArenaBlockSource> blocks)
      : Rep(std::move(blocks)), order_(order, &arena_) {}

  MemTableEntry* Add(uint64_t tag, const Slice& user_key, const Slice& value, ValuePlace place,
                     bool* new_chunk) override {
    return order_.Add(
        [&] { return MemTableEntry::New(&arena_, user_key, tag, value, place, new_chunk); },
        new_chunk);
  }
  const MemTableEntry* LowerBound(const Slice& user_key, uint64_t tag) override {
    return order_.LowerBound(user_key, tag);
  }
  std::unique_ptr<InternalIterator> NewIterator() override { return order_.NewIterator(); }
  void Seal() override { order_.Seal(); }
  void KeepList() override { order_.KeepList(); }
  std::vector<std::string> Divide(size_t parts) override { return order_.Divide(parts); }

 private:
  MemTableOrder<Order> order_;
};

MemTable::MemTable(const Comparator* comparator, uint64_t generation, size_t index_bytes,
                   std::shared_ptr<ArenaBlockSource> blocks)
    : comparator_(comparator),
      generation_(generation),
      index_(index_bytes),
      range_tombstones_(comparator),
      rep_([&]() -> std::unique_ptr<Rep> {
        if (comparator == BytewiseComparator()) {
          return std::make_unique<RepOf<BytewiseKeyOrder>>(BytewiseKeyOrder(), std::move(blocks));
        }
        return std::make_unique<RepOf<CustomKeyOrder>>(CustomKeyOrder{comparator},
                                                       std::move(blocks));
      }()) {}

MemTable::~MemTable() = default;

void MemTable::Add(SequenceNumber sequence, ValueType type, const Slice& user_key,
                   const Slice& value, bool* new_chunk) {
  const uint64_t hash = Hash64(user_key);
  index_.Prefetch(hash);  // It comes while the entry is filled.
  Add(sequence, type, user_key, hash, value, new_chunk);
}

void MemTable::Add(SequenceNumber sequence, ValueType type, const Slice& user_key, uint64_t hash,
                   const Slice& value, bool* new_chunk) {
  if (type == ValueType::kRangeDeletion) [[unlikely]]
    return AddRange(sequence, user_key, value, new_chunk);
  Insert(PackTag(sequence, type), user_key, hash, value, ValuePlace::kCopied, new_chunk);
}

void MemTable::AddKept(SequenceNumber sequence, ValueType type, const Slice& user_key,
                       uint64_t hash, const Slice& value, bool* new_chunk) {
  if (type == ValueType::kRangeDeletion) [[unlikely]]
    return AddRange(sequence, user_key, value, new_chunk);
  const ValuePlace place =
      value.size() > kCopiedValueBytes ? ValuePlace::kElsewhere : ValuePlace::kCopied;
  Insert(PackTag(sequence, type), user_key, hash, value, place, new_chunk);
}

void MemTable::Insert(uint64_t tag, const Slice& user_key, uint64_t hash, const Slice& value,
                      ValuePlace place, bool* new_chunk) {
  MemTableEntry* const entry = rep_->Add(tag, user_key, value, place, new_chunk);
  Rep::Counters& mine = rep_->MyCounters();
  if (!unindexed_.load(std::memory_order_relaxed)) [[likely]] {
    // Release: pairs with Get, which looks for the entry in the order then.
    if (!index_.Insert(hash, entry, mine.last, new_chunk)) [[unlikely]]
      unindexed_.store(true, std::memory_order_release);
  }
  mine.last = entry;
  mine.entries.Add(1);
  mine.data_bytes.Add(user_key.size() + value.size());
  mine.largest_key.RaiseTo(user_key.size());
  mine.largest_value.RaiseTo(value.size());
  const ValueType type = TagType(tag);
  if (type == ValueType::kValue) [[likely]]
    return;
  (type == ValueType::kMerge ? mine.operands : mine.deletions).Add(1);
}

void MemTable::AddRange(SequenceNumber sequence, const Slice& begin, const Slice& end,
                        bool* new_chunk) {
  // An empty range needs no entry.
  if (comparator_->Compare(begin, end) >= 0) return;
  range_tombstones_.Add(sequence, begin, end);
  Add(sequence, ValueType::kDeletion, begin, Slice(), new_chunk);
  *new_chunk = true;  // Its memory is not from the arena.
}

void MemTable::AddLaterOf(const MemTable& other, SequenceNumber sequence) {
  bool new_chunk = false;
  const std::unique_ptr<InternalIterator> entry = other.NewIterator();
  for (entry->SeekToFirst(); entry->Valid(); entry->Next()) {
    const SequenceNumber of_entry = TagSequence(entry->tag());
    if (of_entry <= sequence) continue;
    Add(of_entry, TagType(entry->tag()), entry->user_key(), entry->value(), &new_chunk);
  }
  const RangeTombstoneList::Runs* const runs = other.range_tombstones();
  if (runs == nullptr) return;
  for (const RangeTombstones* run : runs->All()) {
    for (const RangeTombstone& tombstone : run->Tombstones()) {
      if (tombstone.sequence > sequence) {
        range_tombstones_.Add(tombstone.sequence, tombstone.begin, tombstone.end);
      }
    }
  }
}

ConcurrentArena* MemTable::arena() { return rep_->arena(); }

MemTable::LookupResult MemTable::Search(const Slice& user_key, SequenceNumber snapshot,
                                        Slice* value, SequenceNumber* sequence) const {
  const MemTableEntry* const entry =
      rep_->LowerBound(user_key, PackTag(snapshot, kValueTypeForSeek));
  if (entry == nullptr || !(entry->key() == user_key)) return LookupResult::kAbsent;
  return ResultOf(*entry, value, sequence);
}

std::unique_ptr<InternalIterator> MemTable::NewIterator() const {
  if (!iterated()) iterated_.store(true, std::memory_order_relaxed);
  return rep_->NewIterator();
}

void MemTable::Seal() { rep_->Seal(); }

void MemTable::ExpectIterators() { rep_->KeepList(); }

std::vector<std::string> MemTable::Divide(size_t parts) const { return rep_->Divide(parts); }

size_t MemTable::MemoryUsage() const {
  return rep_->MemoryUsage() + index_.MemoryUsage() + range_tombstones_.MemoryUsage();
}
uint64_t MemTable::entries() const { return rep_->Sum(&Rep::Counters::entries); }
uint64_t MemTable::deletions() const { return rep_->Sum(&Rep::Counters::deletions); }
uint64_t MemTable::operands() const { return rep_->Sum(&Rep::Counters::operands); }
uint64_t MemTable::data_bytes() const { return rep_->Sum(&Rep::Counters::data_bytes); }
uint64_t MemTable::largest_key() const { return rep_->Largest(&Rep::Counters::largest_key); }
uint64_t MemTable::largest_value() const { return rep_->Largest(&Rep::Counters::largest_value); }

}  // namespace nacre
