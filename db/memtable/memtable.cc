#include "db/memtable/memtable.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

#include "db/memtable/skip_list.h"
#include "table/format/key_order.h"
#include "table/iterator/internal_iterator.h"
#include "util/hash.h"
#include "util/memory/arena.h"
#include "util/per_thread.h"

namespace nacre {

class MemTable::Rep {
 public:
  explicit Rep(std::shared_ptr<ArenaBlockPool> blocks) : arena_(std::move(blocks)) {}
  virtual ~Rep() = default;

  /// `kept`: a value that is not small stays where it is.
  virtual void Add(uint64_t tag, const Slice& user_key, const Slice& value, bool kept,
                   bool* new_chunk) = 0;
  virtual LookupResult Search(const Slice& user_key, SequenceNumber snapshot, Slice* value,
                              SequenceNumber* sequence) const = 0;
  virtual std::unique_ptr<InternalIterator> NewIterator() const = 0;
  virtual std::vector<std::string> Divide(size_t parts) const = 0;

  ConcurrentArena* arena() { return &arena_; }
  size_t MemoryUsage() const { return arena_.MemoryUsage(); }
  virtual uint64_t entries() const = 0;
  virtual uint64_t deletions() const = 0;
  virtual uint64_t operands() const = 0;
  virtual uint64_t data_bytes() const = 0;
  virtual uint64_t largest_key() const = 0;
  virtual uint64_t largest_value() const = 0;

 protected:
  ConcurrentArena arena_;
};

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

template <typename Order>
class MemTable::RepOf final : public Rep {
 public:
  RepOf(const Order& order, std::shared_ptr<ArenaBlockPool> blocks)
      : Rep(std::move(blocks)), list_(order, &arena_) {}

  void Add(uint64_t tag, const Slice& user_key, const Slice& value, bool kept,
           bool* new_chunk) override {
    const bool elsewhere = kept && value.size() > kCopiedValueBytes;
    PerWriter& mine = writers_.Mine();
    list_.Insert(user_key, tag, value, elsewhere ? ValuePlace::kElsewhere : ValuePlace::kCopied,
                 &mine.hint, new_chunk);
    mine.entries.Add(1);
    mine.data_bytes.Add(user_key.size() + value.size());
    mine.largest_key.RaiseTo(user_key.size());
    mine.largest_value.RaiseTo(value.size());
    const ValueType type = TagType(tag);
    if (type == ValueType::kValue) [[likely]]
      return;
    (type == ValueType::kMerge ? mine.operands : mine.deletions).Add(1);
  }

  LookupResult Search(const Slice& user_key, SequenceNumber snapshot, Slice* value,
                      SequenceNumber* sequence) const override {
    const auto* node = list_.LowerBound(user_key, PackTag(snapshot, kValueTypeForSeek));
    if (node == nullptr || !(node->key() == user_key)) return LookupResult::kAbsent;
    *sequence = TagSequence(node->tag());
    const ValueType type = TagType(node->tag());
    if (IsDeletion(type)) [[unlikely]]
      return LookupResult::kDeleted;
    *value = node->value();
    return type == ValueType::kValue ? LookupResult::kFound : LookupResult::kOperand;
  }

  std::unique_ptr<InternalIterator> NewIterator() const override {
    return std::make_unique<IteratorOf<Order>>(&list_);
  }

  std::vector<std::string> Divide(size_t parts) const override {
    constexpr size_t kSamplesPerPart = 256;  // Parts differ by a tenth or so.
    const auto sample = list_.Sample(parts * kSamplesPerPart);
    std::vector<std::string> cuts;
    for (size_t part = 1; part < parts; ++part) {
      const size_t at = part * sample.size() / parts;
      if (at == 0) continue;
      const Slice key = sample[at]->key();
      // Versions of one key stay together, so they cannot be cut.
      if (key != Slice(cuts.empty() ? list_.First()->key() : Slice(cuts.back()))) {
        cuts.push_back(key.ToString());
      }
    }
    return cuts;
  }

  uint64_t entries() const override { return Sum(&PerWriter::entries); }
  uint64_t deletions() const override { return Sum(&PerWriter::deletions); }
  uint64_t operands() const override { return Sum(&PerWriter::operands); }
  uint64_t data_bytes() const override { return Sum(&PerWriter::data_bytes); }
  uint64_t largest_key() const override { return Largest(&PerWriter::largest_key); }
  uint64_t largest_value() const override { return Largest(&PerWriter::largest_value); }

 private:
  struct PerWriter {
    Counter entries;
    Counter deletions;
    Counter operands;
    Counter data_bytes;
    Counter largest_key;
    Counter largest_value;
    typename SkipList<Order>::Hint hint;
  };

  uint64_t Sum(const Counter PerWriter::*counter) const {
    uint64_t sum = 0;
    writers_.ForEach([&](const PerWriter& writer) { sum += (writer.*counter).value(); });
    return sum;
  }
  uint64_t Largest(const Counter PerWriter::*counter) const {
    uint64_t largest = 0;
    writers_.ForEach(
        [&](const PerWriter& writer) { largest = std::max(largest, (writer.*counter).value()); });
    return largest;
  }

  SkipList<Order> list_;
  PerThread<PerWriter> writers_;
};

template <typename Order>
class MemTable::IteratorOf final : public InternalIterator {
 public:
  explicit IteratorOf(const SkipList<Order>* list) : list_(list) {}

  bool Valid() const override { return node_ != nullptr; }
  void SeekToFirst() override { node_ = list_->First(); }
  void SeekToLast() override { node_ = list_->Last(); }
  void Seek(const Slice& internal_key) override {
    node_ = list_->LowerBound(ExtractUserKey(internal_key), ExtractTag(internal_key));
  }
  void SeekForPrev(const Slice& internal_key) override {
    node_ = list_->AtOrBefore(ExtractUserKey(internal_key), ExtractTag(internal_key));
  }
  void Next() override {
    assert(Valid());
    node_ = node_->Next();
  }
  void Prev() override {
    assert(Valid());
    node_ = list_->Before(node_->key(), node_->tag());
  }
  Slice user_key() const override {
    assert(Valid());
    return node_->key();
  }
  uint64_t tag() const override {
    assert(Valid());
    return node_->tag();
  }
  Slice value() const override {
    assert(Valid());
    return node_->value();
  }
  Status status() const override { return Status::OK(); }

 private:
  const SkipList<Order>* const list_;
  const typename SkipList<Order>::Node* node_ = nullptr;
};

MemTable::MemTable(const Comparator* comparator, uint64_t generation, size_t filter_bytes,
                   std::shared_ptr<ArenaBlockPool> blocks)
    : comparator_(comparator),
      generation_(generation),
      filter_(filter_bytes),
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
  if (type == ValueType::kRangeDeletion) [[unlikely]]
    return AddRange(sequence, user_key, value, new_chunk);
  const uint64_t hash = Hash64(user_key);
  rep_->Add(PackTag(sequence, type), user_key, value, /*kept=*/false, new_chunk);
  filter_.Add(hash);
}

void MemTable::AddKept(SequenceNumber sequence, ValueType type, const Slice& user_key,
                       uint64_t hash, const Slice& value, bool* new_chunk) {
  if (type == ValueType::kRangeDeletion) [[unlikely]]
    return AddRange(sequence, user_key, value, new_chunk);
  rep_->Add(PackTag(sequence, type), user_key, value, /*kept=*/true, new_chunk);
  filter_.Add(hash);
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
  return rep_->Search(user_key, snapshot, value, sequence);
}

std::unique_ptr<InternalIterator> MemTable::NewIterator() const { return rep_->NewIterator(); }

std::vector<std::string> MemTable::Divide(size_t parts) const { return rep_->Divide(parts); }

size_t MemTable::MemoryUsage() const {
  return rep_->MemoryUsage() + filter_.MemoryUsage() + range_tombstones_.MemoryUsage();
}
uint64_t MemTable::entries() const { return rep_->entries(); }
uint64_t MemTable::deletions() const { return rep_->deletions(); }
uint64_t MemTable::operands() const { return rep_->operands(); }
uint64_t MemTable::data_bytes() const { return rep_->data_bytes(); }
uint64_t MemTable::largest_key() const { return rep_->largest_key(); }
uint64_t MemTable::largest_value() const { return rep_->largest_value(); }

}  // namespace nacre
