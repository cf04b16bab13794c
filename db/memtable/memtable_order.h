#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/memtable/entry_log.h"
#include "db/memtable/memtable_entry.h"
#include "db/memtable/skip_list.h"
#include "nacre/slice.h"
#include "table/iterator/internal_iterator.h"
#include "table/merge/update_sort.h"
#include "util/memory/arena.h"
#include "util/memory/prefetch.h"
#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre {

/// The order of a MemTable's entries, kept no sooner than it is asked for: a search for the place
/// of an entry costs more than all else of a Put, and a MemTable that only Get reads needs it once,
/// when it is flushed, and then all at once, by a sort.
///
/// An entry is put into a log of its writer. A reader that asks for the order moves what the logs
/// have into a skip list, and writers put what comes later there by themselves. `Seal` instead
/// sorts the logs into an array, if there is no list yet. The arrays and lists of a MemTable hold
/// each entry once: in logs, list or array.
///
/// Orders that may throw (those of an application's comparator) always keep the list: a key that
/// cannot be compared is refused when it is written.
///
/// Thread safety: all methods may be called from many threads at once. A reader that learns of an
/// entry after its `Add` returned finds it in the order.
template <typename Order>
class MemTableOrder {
 public:
  using List = SkipList<Order>;
  using Item = EntryLog::Item;

  /// The arena outlives this.
  MemTableOrder(const Order& order, ConcurrentArena* arena)
      : order_(order), arena_(arena), list_(order, arena) {}

  /// Puts a new entry in order, or into the writer's log. `make()` makes the entry; it may throw,
  /// as the order and the arena may: nothing is changed then.
  template <typename Make>
  MemTableEntry* Add(Make&& make, bool* new_chunk) {
    Writer& mine = writers_.Mine();
    // Relaxed: what goes to a log of which the list has got the rest is found there.
    if (keeps_list_.load(std::memory_order_relaxed)) {
      auto* const node = list_.NewNode(&mine.hint, new_chunk);
      MemTableEntry* const entry = make();
      list_.Insert(node, entry, &mine.hint);
      return entry;
    }
    mine.log.Reserve(arena_, new_chunk);
    MemTableEntry* const entry = make();
    mine.log.Append(order_.Prefix(entry->key()), entry);
    return entry;
  }

  /// Has writers keep the order from now on: it will be asked for.
  void KeepList() { keeps_list_.store(true, std::memory_order_relaxed); }

  /// Requires that no `Add` is running or comes. Puts all entries in order, for good.
  void Seal() EXCLUDES(ordering_);

  /// Throws std::bad_alloc.
  std::unique_ptr<InternalIterator> NewIterator() EXCLUDES(ordering_);
  /// The first entry at or behind (key, tag); null if there is none. Throws as NewIterator.
  const MemTableEntry* LowerBound(const Slice& key, uint64_t tag) EXCLUDES(ordering_);
  /// As MemTable::Divide.
  std::vector<std::string> Divide(size_t parts) EXCLUDES(ordering_);

 private:
  class ListIterator;
  class ArrayIterator;
  using Array = std::vector<Item>;

  struct Writer {
    EntryLog log;
    typename List::Hint hint;
    // What has been moved to the list; changed under ordering_.
    mutable EntryLog::Cursor cursor;
    mutable std::atomic<size_t> listed;
  };

  static constexpr bool kOrderThrows = !Order::kHasPrefix;

  /// Afterwards each entry whose Add has returned is in the array, which is the answer, or in the
  /// list, and the answer is null.
  const Array* Arrange() EXCLUDES(ordering_);
  bool AllListed() const;
  void MoveToList() REQUIRES(ordering_);
  void Sort(std::span<Item> items) const;
  /// The index of the first item at or behind (key, tag).
  size_t Find(const Array& array, const Slice& key, uint64_t tag) const;

  const Order order_;
  ConcurrentArena* const arena_;
  std::atomic<bool> keeps_list_{kOrderThrows};
  PerThread<Writer> writers_;
  List list_;
  Mutex ordering_;
  typename List::Hint hint_ GUARDED_BY(ordering_) = {};
  /// Taken from logs, and from `moved_` on not yet in the list: a lack of memory came between.
  std::vector<Item> taken_ GUARDED_BY(ordering_);
  size_t moved_ GUARDED_BY(ordering_) = 0;
  std::unique_ptr<const Array> sealed_ GUARDED_BY(ordering_);
  std::atomic<const Array*> array_{nullptr};  ///< `sealed_`, for readers.
};

template <typename Order>
class MemTableOrder<Order>::ListIterator final : public InternalIterator {
 public:
  explicit ListIterator(const List* list) : list_(list) {}

  void SeekToFirst() override { Show(list_->First()); }
  void SeekToLast() override { Show(list_->Last()); }
  void Seek(const Slice& internal_key) override {
    Show(list_->LowerBound(ExtractUserKey(internal_key), ExtractTag(internal_key)));
  }
  void SeekForPrev(const Slice& internal_key) override {
    Show(list_->AtOrBefore(ExtractUserKey(internal_key), ExtractTag(internal_key)));
  }
  Status status() const override { return Status::OK(); }

 private:
  void NextRun() override { Show(node_->Next()); }
  void PrevRun() override { Show(list_->Before(entry_.user_key, entry_.tag)); }
  void Show(const typename List::Node* node) {
    node_ = node;
    if (node_ == nullptr) return ShowNothing();
    const MemTableEntry& entry = node_->entry();
    entry_ = {entry.key(), entry.tag(), entry.value()};
    ShowOne(&entry_);
  }

  const List* const list_;
  const typename List::Node* node_ = nullptr;
  InternalEntry entry_;
};

template <typename Order>
class MemTableOrder<Order>::ArrayIterator final : public InternalIterator {
 public:
  ArrayIterator(const MemTableOrder* order, const Array* array)
      : order_(order), array_(array), index_(array->size()) {}

  void SeekToFirst() override { Jump(0); }
  void SeekToLast() override { Jump(array_->size() - 1); }
  void Seek(const Slice& internal_key) override {
    Jump(order_->Find(*array_, ExtractUserKey(internal_key), ExtractTag(internal_key)));
  }
  void SeekForPrev(const Slice& internal_key) override {
    const Slice key = ExtractUserKey(internal_key);
    const uint64_t tag = ExtractTag(internal_key);
    const size_t at = order_->Find(*array_, key, tag);
    const bool exact = at < array_->size() && EntryAt(at).tag() == tag && EntryAt(at).key() == key;
    Jump(exact ? at : at - 1);
  }
  Status status() const override { return Status::OK(); }

 private:
  /// Entries lie in the order in which they came: the first line of each is asked for early, and
  /// the rest, whose length it tells, later.
  static constexpr size_t kFarAhead = 12;
  static constexpr size_t kAhead = 6;

  const MemTableEntry& EntryAt(size_t at) const {
    assert(at < array_->size());
    return *(*array_)[at].update;
  }
  void NextRun() override {
    if (index_ + 1 + kFarAhead < array_->size()) [[likely]] {
      __builtin_prefetch(&EntryAt(index_ + 1 + kFarAhead));
      PrefetchValue(EntryAt(index_ + 1 + kAhead));
    }
    Show(index_ + 1);
  }
  void PrevRun() override { Show(index_ - 1); }
  void Jump(size_t at) {
    for (size_t i = at; i < std::min(at + kFarAhead, array_->size()); ++i) {
      __builtin_prefetch(&EntryAt(i));
    }
    Show(at);
  }
  /// Before the first is beyond the last.
  void Show(size_t at) {
    index_ = at;
    if (index_ >= array_->size()) return ShowNothing();
    const MemTableEntry& entry = EntryAt(index_);
    entry_ = {entry.key(), entry.tag(), entry.value()};
    ShowOne(&entry_);
  }
  static void PrefetchValue(const MemTableEntry& entry) {
    const Slice value = entry.value();
    PrefetchBeginning(value.data(), value.size());
  }

  const MemTableOrder* const order_;
  const Array* const array_;
  size_t index_;
  InternalEntry entry_;
};

template <typename Order>
void MemTableOrder<Order>::Seal() {
  MutexLock lock(&ordering_);
  if (sealed_ != nullptr) return;
  if (keeps_list_.load(std::memory_order_relaxed)) return MoveToList();
  size_t count = 0;
  writers_.ForEach([&](const Writer& writer) { count += writer.log.size(); });
  auto array = std::make_unique<Array>();
  array->reserve(count);
  writers_.ForEach([&](const Writer& writer) {
    EntryLog::Cursor cursor{};
    writer.log.Take(&cursor, array.get());
  });
  Sort(*array);
  array_.store(array.get(), std::memory_order_release);  // Pairs with Arrange.
  sealed_ = std::move(array);
}

template <typename Order>
const typename MemTableOrder<Order>::Array* MemTableOrder<Order>::Arrange() {
  const Array* array = array_.load(std::memory_order_acquire);
  if (array != nullptr) return array;
  KeepList();
  if (AllListed()) return nullptr;
  MutexLock lock(&ordering_);
  if (sealed_ == nullptr) MoveToList();
  return sealed_.get();
}

template <typename Order>
bool MemTableOrder<Order>::AllListed() const {
  bool all = true;
  writers_.ForEach([&](const Writer& writer) {
    // Acquire: pairs with MoveToList, so that the list has them.
    all = all && writer.log.size() == writer.listed.load(std::memory_order_acquire);
  });
  return all;
}

template <typename Order>
void MemTableOrder<Order>::MoveToList() {
  writers_.ForEach(
      [taken = &taken_](const Writer& writer) { writer.log.Take(&writer.cursor, taken); });
  Sort(std::span<Item>(taken_).subspan(moved_));
  bool new_chunk = false;
  for (; moved_ < taken_.size(); ++moved_) {
    list_.Insert(list_.NewNode(&hint_, &new_chunk), taken_[moved_].update, &hint_);
  }
  taken_.clear();
  moved_ = 0;
  writers_.ForEach([&](const Writer& writer) {
    writer.listed.store(writer.cursor.taken, std::memory_order_release);  // Pairs with AllListed.
  });
}

template <typename Order>
void MemTableOrder<Order>::Sort(std::span<Item> items) const {
  const auto is_before = [this](const MemTableEntry& a, const MemTableEntry& b) {
    const int r = order_.CompareSamePrefix(a.key(), b.key());
    return r != 0 ? r < 0 : a.tag() > b.tag();
  };
  UpdateSort<MemTableEntry, decltype(is_before)>(Order::kHasPrefix, is_before).Sort(items);
}

template <typename Order>
size_t MemTableOrder<Order>::Find(const Array& array, const Slice& key, uint64_t tag) const {
  const uint64_t prefix = order_.Prefix(key);
  const auto is_before = [&](const Item& item) {
    if (item.prefix != prefix) return item.prefix < prefix;
    const int r = order_.CompareSamePrefix(item.update->key(), key);
    return r != 0 ? r < 0 : item.update->tag() > tag;
  };
  return static_cast<size_t>(std::partition_point(array.begin(), array.end(), is_before) -
                             array.begin());
}

template <typename Order>
std::unique_ptr<InternalIterator> MemTableOrder<Order>::NewIterator() {
  if (const Array* array = Arrange()) return std::make_unique<ArrayIterator>(this, array);
  return std::make_unique<ListIterator>(&list_);
}

template <typename Order>
const MemTableEntry* MemTableOrder<Order>::LowerBound(const Slice& key, uint64_t tag) {
  if (const Array* array = Arrange()) {
    const size_t at = Find(*array, key, tag);
    return at < array->size() ? (*array)[at].update : nullptr;
  }
  const auto* const node = list_.LowerBound(key, tag);
  return node == nullptr ? nullptr : &node->entry();
}

template <typename Order>
std::vector<std::string> MemTableOrder<Order>::Divide(size_t parts) {
  const Array* const array = Arrange();
  constexpr size_t kSamplesPerPart = 256;  // Parts differ by a tenth or so.
  std::vector<const typename List::Node*> sample;
  if (array == nullptr) sample = list_.Sample(parts * kSamplesPerPart);
  const size_t count = array == nullptr ? sample.size() : array->size();
  const auto key_at = [&](size_t at) {
    return array == nullptr ? sample[at]->entry().key() : (*array)[at].update->key();
  };
  std::vector<std::string> cuts;
  for (size_t part = 1; part < parts; ++part) {
    const size_t at = part * count / parts;
    if (at == 0) continue;
    const Slice first = array == nullptr ? list_.First()->entry().key() : key_at(0);
    // Versions of one key stay together, so they cannot be cut.
    if (key_at(at) != (cuts.empty() ? first : Slice(cuts.back()))) {
      cuts.push_back(key_at(at).ToString());
    }
  }
  return cuts;
}

}  // namespace nacre
