#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>

#include "db/key_order.h"
#include "nacre/slice.h"
#include "util/arena.h"

namespace nacre {

/// An ordered list of entries (user key, tag, value) with express lanes: expected O(log n) search.
/// Order: user key ascending by `Order` (db/key_order.h), then tag descending.
///
/// Entries are never changed and never removed; their memory is the arena's, which must outlive
/// the list. A node is one allocation:
///
///     next[h-1] ... next[1] next[0] | prefix | tag | key size, value size | key | value
///                                   ^ Node*
///
/// A search step reads `next` of its level and the prefix, so these share a cache line. A prefix
/// is the start of the key as a number, which decides most comparisons by itself.
///
/// Thread safety: `Insert` by any number of threads, each with a `Hint` of its own; everything
/// else at any time, without locks and without waiting. An insert links the node from the bottom
/// level up, each by a compare-and-swap; once level 0 is linked every reader finds it.
template <typename Order>
class SkipList {
 public:
  /// One node in two reaches the next level. One in four saves memory but touches a quarter more
  /// nodes, and a search costs what its cache misses cost. Enough levels for 16 million entries;
  /// beyond that searches grow longer.
  static constexpr int kHeightMax = 24;

  class Node;

  /// What a thread remembers of its last insert, so that ascending keys need no search. All-zero
  /// bytes are a fresh one. Belongs to one list.
  struct Hint {
    std::array<Node*, kHeightMax> before;  ///< Per level the last node <= the last insert; or null.
    uint64_t random;                       ///< State of the height generator.
    uint32_t hits;                         ///< Consecutive inserts that needed no search, capped.
  };

  SkipList(const Order& order, ConcurrentArena* arena);
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  /// Copies key and value. No entry of the same key and tag may be there. `*new_chunk` is set when
  /// the arena took a chunk.
  void Insert(const Slice& key, uint64_t tag, const Slice& value, Hint* hint, bool* new_chunk);

  /// Null is the end of the list in both directions.
  const Node* First() const { return head_->Next(0); }
  const Node* Last() const;
  /// The first entry >= (key, tag).
  const Node* LowerBound(const Slice& key, uint64_t tag) const;
  /// The last entry < (key, tag).
  const Node* Before(const Slice& key, uint64_t tag) const;
  /// The last entry <= (key, tag).
  const Node* AtOrBefore(const Slice& key, uint64_t tag) const;

 private:
  struct Target {
    Slice key;
    uint64_t prefix;
    uint64_t tag;
  };

  /// Two neighbours on level 0.
  struct Place {
    const Node* before;  ///< The last < the target, or the head.
    const Node* after;   ///< The first >= the target, or null.
  };

  static int RandomHeight(Hint* hint);
  Node* NewNode(int height, const Target& target, const Slice& value, bool* new_chunk);
  bool IsBefore(const Node* node, const Target& target) const;
  /// Walks `level` from `*before` (< target) to the last node < target and the one behind it.
  /// False after more than `steps` steps.
  bool Walk(int level, const Target& target, size_t steps, Node** before, Node** after) const;
  Place Find(const Target& target) const;
  bool FindByHint(const Target& target, int height, Hint* hint,
                  std::array<Node*, kHeightMax>* after) const;
  void FindByDescent(const Target& target, Hint* hint, std::array<Node*, kHeightMax>* after) const;

  static constexpr uint32_t kHitsMax = 8;

  const Order order_;
  ConcurrentArena* const arena_;
  Node* const head_;
  /// Levels in use. Only a place to start from: a reader that sees an old one misses no node.
  std::atomic<int> height_{1};
};

template <typename Order>
class SkipList<Order>::Node {
 public:
  Slice key() const { return {bytes(), key_size_}; }
  uint64_t tag() const { return tag_; }
  Slice value() const { return {bytes() + key_size_, value_size_}; }

  const Node* Next() const { return Next(0); }

 private:
  friend class SkipList;

  Node(const Target& target, const Slice& value)
      : prefix_(target.prefix),
        tag_(target.tag),
        key_size_(static_cast<uint32_t>(target.key.size())),
        value_size_(static_cast<uint32_t>(value.size())) {}

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }

  std::atomic<Node*>& link(int level) const {
    return *(reinterpret_cast<std::atomic<Node*>*>(const_cast<Node*>(this)) - 1 - level);
  }
  /// Pairs with the release in SwapNext: the next node's bytes and lower links are there.
  Node* Next(int level) const { return link(level).load(std::memory_order_acquire); }
  void PrefetchNext(int level) const {
    __builtin_prefetch(link(level).load(std::memory_order_relaxed));
  }
  /// Before the node is published.
  void SetNext(int level, Node* next) { link(level).store(next, std::memory_order_relaxed); }
  /// Publishes `next` if `*expected` is still behind this node, else updates `*expected`.
  bool SwapNext(int level, Node* expected, Node* next) {
    return link(level).compare_exchange_strong(expected, next, std::memory_order_release,
                                               std::memory_order_relaxed);
  }

  const uint64_t prefix_;
  const uint64_t tag_;
  const uint32_t key_size_;
  const uint32_t value_size_;
};

template <typename Order>
SkipList<Order>::SkipList(const Order& order, ConcurrentArena* arena)
    : order_(order), arena_(arena), head_([this] {
        bool new_chunk = false;
        return NewNode(kHeightMax, Target{{}, 0, 0}, {}, &new_chunk);
      }()) {}

template <typename Order>
typename SkipList<Order>::Node* SkipList<Order>::NewNode(int height, const Target& target,
                                                         const Slice& value, bool* new_chunk) {
  assert(target.key.size() <= UINT32_MAX && value.size() <= UINT32_MAX);
  const size_t links = static_cast<size_t>(height) * sizeof(std::atomic<Node*>);
  char* memory = arena_->Allocate(links + sizeof(Node) + target.key.size() + value.size(),
                                  new_chunk, std::min<size_t>(64, links + sizeof(uint64_t)));
  Node* node = new (memory + links) Node(target, value);
  for (int level = 0; level < height; ++level) new (&node->link(level)) std::atomic<Node*>(nullptr);
  if (!target.key.empty()) std::memcpy(node->bytes(), target.key.data(), target.key.size());
  if (!value.empty()) {
    std::memcpy(node->bytes() + target.key.size(), value.data(), value.size());
  }
  // The next node of this thread will probably lie behind this one and be as large: have its lines
  // by then. (Stores past the cache do not pay: publishing the node would wait for them.)
  const size_t ahead = std::min<size_t>(sizeof(Node) + target.key.size() + value.size(), 512);
  for (size_t i = 0; i < ahead; i += 64) {
    __builtin_prefetch(node->bytes() + target.key.size() + value.size() + i, 1);
  }
  return node;
}

template <typename Order>
int SkipList<Order>::RandomHeight(Hint* hint) {
  // xorshift64*; the address of the hint is a seed of its own for each thread.
  uint64_t x = hint->random != 0 ? hint->random : reinterpret_cast<uintptr_t>(hint) | 1;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  hint->random = x;
  const uint64_t number = x * 0x2545f4914f6cdd1d;
  return 1 + std::min(kHeightMax - 1, std::countl_zero(number));
}

template <typename Order>
bool SkipList<Order>::IsBefore(const Node* node, const Target& target) const {
  if constexpr (Order::kHasPrefix) {
    if (node->prefix_ != target.prefix) [[likely]]
      return node->prefix_ < target.prefix;
  }
  const int r = order_.CompareSamePrefix(node->key(), target.key);
  return r != 0 ? r < 0 : node->tag_ > target.tag;
}

template <typename Order>
bool SkipList<Order>::Walk(int level, const Target& target, size_t steps, Node** before,
                           Node** after) const {
  while (true) {
    Node* next = (*before)->Next(level);
    if (next == nullptr || !IsBefore(next, target)) {
      *after = next;
      return true;
    }
    if (steps-- == 0) return false;
    *before = next;
  }
}

template <typename Order>
bool SkipList<Order>::FindByHint(const Target& target, int height, Hint* hint,
                                 std::array<Node*, kHeightMax>* after) const {
  Node* last = hint->before[0];
  if (last == nullptr || !IsBefore(last, target)) return false;
  // Other threads may have inserted in between. How far it pays to walk shows in the past.
  for (int level = 0; level < height; ++level) {
    const auto at = static_cast<size_t>(level);
    if (!Walk(level, target, hint->hits, &hint->before[at], &(*after)[at])) return false;
  }
  return true;
}

template <typename Order>
void SkipList<Order>::FindByDescent(const Target& target, Hint* hint,
                                    std::array<Node*, kHeightMax>* after) const {
  Node* before = head_;
  Node* behind = nullptr;  // Known to be >= target.
  int level = height_.load(std::memory_order_relaxed) - 1;
  for (int above = kHeightMax - 1; above > level; --above) {
    hint->before[static_cast<size_t>(above)] = head_;
    (*after)[static_cast<size_t>(above)] = nullptr;
  }
  while (level >= 0) {
    Node* next = before->Next(level);
    if (level > 0) before->PrefetchNext(level - 1);  // As in Find.
    if (next != behind && next != nullptr && IsBefore(next, target)) {
      before = next;
      continue;
    }
    behind = next;
    hint->before[static_cast<size_t>(level)] = before;
    (*after)[static_cast<size_t>(level)] = next;
    --level;
  }
}

template <typename Order>
void SkipList<Order>::Insert(const Slice& key, uint64_t tag, const Slice& value, Hint* hint,
                             bool* new_chunk) {
  const Target target{key, order_.Prefix(key), tag};
  const int height = RandomHeight(hint);
  // Filled before the search: the stores drain while the search waits for memory.
  Node* node = NewNode(height, target, value, new_chunk);

  std::array<Node*, kHeightMax> after;
  if (FindByHint(target, height, hint, &after)) {
    hint->hits = std::min(hint->hits + 1, kHitsMax);
  } else {
    hint->hits = 0;
    FindByDescent(target, hint, &after);
  }
  int height_seen = height_.load(std::memory_order_relaxed);
  while (height > height_seen &&
         !height_.compare_exchange_weak(height_seen, height, std::memory_order_relaxed)) {
  }

  for (int level = 0; level < height; ++level) {
    const auto at = static_cast<size_t>(level);
    while (true) {
      node->SetNext(level, after[at]);
      if (hint->before[at]->SwapNext(level, after[at], node)) break;
      // Another insert came in between; it can only have moved the place forward.
      Walk(level, target, SIZE_MAX, &hint->before[at], &after[at]);
    }
    assert(level > 0 || after[at] == nullptr || after[at]->tag() != tag || after[at]->key() != key);
    hint->before[at] = node;
  }
}

template <typename Order>
typename SkipList<Order>::Place SkipList<Order>::Find(const Target& target) const {
  const Node* before = head_;
  const Node* behind = nullptr;  // Known to be >= target.
  int level = height_.load(std::memory_order_relaxed) - 1;
  while (true) {
    const Node* next = before->Next(level);
    // Every second comparison leads down: fetch that way together with the way ahead.
    if (level > 0) before->PrefetchNext(level - 1);
    if (next != behind && next != nullptr && IsBefore(next, target)) {
      before = next;
      continue;
    }
    if (level == 0) return {before, next};
    behind = next;
    --level;
  }
}

template <typename Order>
const typename SkipList<Order>::Node* SkipList<Order>::LowerBound(const Slice& key,
                                                                  uint64_t tag) const {
  return Find({key, order_.Prefix(key), tag}).after;
}

template <typename Order>
const typename SkipList<Order>::Node* SkipList<Order>::Before(const Slice& key,
                                                              uint64_t tag) const {
  const Node* before = Find({key, order_.Prefix(key), tag}).before;
  return before == head_ ? nullptr : before;
}

template <typename Order>
const typename SkipList<Order>::Node* SkipList<Order>::AtOrBefore(const Slice& key,
                                                                  uint64_t tag) const {
  // Tags descend, so the last entry <= (key, tag) is the last one < (key, tag - 1).
  if (tag > 0) return Before(key, tag - 1);
  const Node* at = LowerBound(key, tag);
  if (at != nullptr && at->tag() == tag && at->key() == key) return at;
  return Before(key, tag);
}

template <typename Order>
const typename SkipList<Order>::Node* SkipList<Order>::Last() const {
  const Node* last = head_;
  for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    while (const Node* next = last->Next(level)) last = next;
  }
  return last == head_ ? nullptr : last;
}

}  // namespace nacre
