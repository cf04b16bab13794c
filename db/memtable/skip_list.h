#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "db/memtable/memtable_entry.h"
#include "nacre/slice.h"
#include "table/format/key_order.h"
#include "util/memory/arena.h"
#include "util/simulation.h"

namespace nacre {

/// An ordered list of a MemTable's entries with express lanes: expected O(log n) search. Order:
/// user key ascending by `Order` (table/format/key_order.h), then tag descending.
///
/// Nothing is ever removed; entries and nodes outlive the list. A node is one allocation:
///
///     link[h-1] ... link[1] link[0] | prefix | entry
///                                   ^ Node*
///
/// An entry that is allocated right behind its node is in the same line, or in the next one.
///
/// A prefix is the start of the key as a number, which decides most comparisons by itself. A link
/// is the next node of its level and, beside it, that node's prefix: so a search touches only the
/// nodes it goes to, not those that it finds too far, which halves its cache misses.
///
/// A link's two halves are not changed at once. What is beside the pointer is the prefix of the
/// node it points to or of one that it pointed to before, never smaller: nodes are only ever put in
/// between. Seen so, the next node may look too far when it is not, and the search goes down too
/// early; so the bottom level, and every level on which a node is about to be linked, compare the
/// node itself.
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

  /// A node for one entry, which is not in the list yet. `*new_chunk` is set when the arena took a
  /// chunk. Throws std::bad_alloc.
  Node* NewNode(Hint* hint, bool* new_chunk);
  /// Inserts an entry by its node. No entry of the same key and tag may be in the list. If the
  /// order throws, the list is unchanged.
  void Insert(Node* node, const MemTableEntry* entry, Hint* hint);

  /// Null is the end of the list in both directions.
  const Node* First() const { return head_->Next(0); }
  const Node* Last() const;
  /// The first entry >= (key, tag).
  const Node* LowerBound(const Slice& key, uint64_t tag) const;
  /// The last entry < (key, tag).
  const Node* Before(const Slice& key, uint64_t tag) const;
  /// The last entry <= (key, tag).
  const Node* AtOrBefore(const Slice& key, uint64_t tag) const;

  /// Entries in order, as evenly spread as chance has it: those of the highest level that has
  /// `least` of them, or all.
  std::vector<const Node*> Sample(size_t least) const;

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

  static uint64_t FirstRandom(const Hint* hint);
  static int RandomHeight(Hint* hint);
  Node* NewNode(int height, bool* new_chunk);
  bool IsBefore(const Node* node, const Target& target) const;
  /// Walks `level` from `*before` (< target) to the last node < target and the one behind it.
  /// False after more than `steps` steps.
  bool Walk(int level, const Target& target, size_t steps, Node** before, Node** after) const;
  Place Find(const Target& target) const;
  void Link(Node* node, const MemTableEntry* entry, const Target& target, Hint* hint, bool* linked);
  bool FindByHint(const Target& target, int height, Hint* hint,
                  std::array<Node*, kHeightMax>* after) const;
  void FindByDescent(const Target& target, int height, Hint* hint,
                     std::array<Node*, kHeightMax>* after) const;

  /// Looks at the next node on `level`. If it is < the target it becomes `*before`; else, or if it
  /// only looks so and `exact` is false, the answer is false. `*behind`: a node known to be >= the
  /// target, or null. `*next`: the node that was looked at.
  template <typename AnyNode>
  bool Step(int level, bool exact, const Target& target, AnyNode** before, const Node** behind,
            Node** next) const;

  static constexpr uint32_t kHitsMax = 8;

  const Order order_;
  ConcurrentArena* const arena_;
  Node* const head_;
  /// The number of levels in use. It is only a place to start from: a reader that sees an old one
  /// misses no node.
  std::atomic<int> height_{1};
};

template <typename Order>
class SkipList<Order>::Node {
 public:
  const MemTableEntry& entry() const { return *entry_; }
  const Node* Next() const { return Next(0); }

 private:
  friend class SkipList;

  explicit Node(int height) : height_(height) {}

  struct Link {
    std::atomic<Node*> node;
    std::atomic<uint64_t> bound;  ///< No smaller than the prefix of `node`.
  };

  Link& link(int level) const {
    return *(reinterpret_cast<Link*>(const_cast<Node*>(this)) - 1 - level);
  }
  /// Pairs with the release in SwapNext: the next node's bytes and lower links are there.
  Node* Next(int level) const { return link(level).node.load(std::memory_order_acquire); }
  /// Must be read before `Next`: pairs with the release in SwapNext, so that `Next` is then the
  /// node whose prefix this is, or one before it.
  uint64_t NextBound(int level) const { return link(level).bound.load(std::memory_order_acquire); }
  void PrefetchNext(int level) const {
    __builtin_prefetch(link(level).node.load(std::memory_order_relaxed));
  }
  /// May be called only before the node is published.
  void SetNext(int level, Node* next) {
    link(level).node.store(next, std::memory_order_relaxed);
    link(level).bound.store(next == nullptr ? UINT64_MAX : next->prefix_,
                            std::memory_order_relaxed);
  }
  /// Publishes `next` if `expected` is still behind this node.
  bool SwapNext(int level, Node* expected, Node* next) {
    if (!link(level).node.compare_exchange_strong(expected, next, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
      return false;
    }
    link(level).bound.store(next->prefix_, std::memory_order_release);
    return true;
  }

  uint64_t prefix_ = 0;
  union {
    int height_;  ///< Before it is inserted.
    const MemTableEntry* entry_;
  };
};

template <typename Order>
SkipList<Order>::SkipList(const Order& order, ConcurrentArena* arena)
    : order_(order), arena_(arena), head_([this] {
        bool new_chunk = false;
        return NewNode(kHeightMax, &new_chunk);
      }()) {}

template <typename Order>
typename SkipList<Order>::Node* SkipList<Order>::NewNode(Hint* hint, bool* new_chunk) {
  return NewNode(RandomHeight(hint), new_chunk);
}

template <typename Order>
typename SkipList<Order>::Node* SkipList<Order>::NewNode(int height, bool* new_chunk) {
  const size_t links = static_cast<size_t>(height) * sizeof(typename Node::Link);
  char* const memory =
      arena_->Allocate(links + sizeof(Node), new_chunk, std::min<size_t>(64, links + sizeof(Node)));
  Node* const node = new (memory + links) Node(height);
  for (int level = 0; level < height; ++level) {
    new (&node->link(level)) typename Node::Link;
    node->SetNext(level, nullptr);
  }
  return node;
}

template <typename Order>
uint64_t SkipList<Order>::FirstRandom(const Hint* hint) {
  if (Simulation* simulation = Simulation::Current()) return simulation->Random() | 1;
  // The address of the hint is a seed of its own for each thread.
  return reinterpret_cast<uintptr_t>(hint) | 1;
}

template <typename Order>
int SkipList<Order>::RandomHeight(Hint* hint) {
  // xorshift64*
  uint64_t x = hint->random != 0 ? hint->random : FirstRandom(hint);
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
  const MemTableEntry& entry = node->entry();
  const int r = order_.CompareSamePrefix(entry.key(), target.key);
  return r != 0 ? r < 0 : entry.tag() > target.tag;
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
template <typename AnyNode>
inline bool SkipList<Order>::Step(int level, bool exact, const Target& target, AnyNode** before,
                                  const Node** behind, Node** next) const {
  const uint64_t bound = (*before)->NextBound(level);
  *next = (*before)->Next(level);
  const bool touches = exact || !Order::kHasPrefix;
  // Every second comparison leads down: fetch that way together with the way ahead.
  if (touches && level > 0) (*before)->PrefetchNext(level - 1);
  if (*next == nullptr || *next == *behind) return false;
  if (Order::kHasPrefix && bound < target.prefix) {
    *before = *next;
    return true;
  }
  if (!touches && bound > target.prefix) return false;
  if (!IsBefore(*next, target)) {
    *behind = *next;
    return false;
  }
  *before = *next;
  return true;
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
void SkipList<Order>::FindByDescent(const Target& target, int height, Hint* hint,
                                    std::array<Node*, kHeightMax>* after) const {
  Node* before = head_;
  const Node* behind = nullptr;
  int level = height_.load(std::memory_order_relaxed) - 1;
  for (int above = kHeightMax - 1; above > level; --above) {
    hint->before[static_cast<size_t>(above)] = head_;
    (*after)[static_cast<size_t>(above)] = nullptr;
  }
  while (level >= 0) {
    Node* next = nullptr;
    if (Step(level, /*exact=*/level < height, target, &before, &behind, &next)) continue;
    hint->before[static_cast<size_t>(level)] = before;
    (*after)[static_cast<size_t>(level)] = next;
    --level;
  }
}

template <typename Order>
void SkipList<Order>::Insert(Node* node, const MemTableEntry* entry, Hint* hint) {
  const Target target{entry->key(), order_.Prefix(entry->key()), entry->tag()};
  bool linked = false;
  try {
    Link(node, entry, target, hint, &linked);
  } catch (...) {
    hint->before[0] = nullptr;  // Its levels may be of two places now.
    // Express lanes that it lacks only make a search longer.
    if (!linked) throw;
  }
}

template <typename Order>
inline void SkipList<Order>::Link(Node* node, const MemTableEntry* entry, const Target& target,
                                  Hint* hint, bool* linked) {
  const int height = node->height_;
  node->prefix_ = target.prefix;
  node->entry_ = entry;
  std::array<Node*, kHeightMax> after;
  if (FindByHint(target, height, hint, &after)) {
    hint->hits = std::min(hint->hits + 1, kHitsMax);
  } else {
    hint->hits = 0;
    FindByDescent(target, height, hint, &after);
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
    *linked = true;
    assert(level > 0 || after[at] == nullptr || after[at]->entry().tag() != target.tag ||
           after[at]->entry().key() != target.key);
    hint->before[at] = node;
  }
}

template <typename Order>
typename SkipList<Order>::Place SkipList<Order>::Find(const Target& target) const {
  const Node* before = head_;
  const Node* behind = nullptr;
  int level = height_.load(std::memory_order_relaxed) - 1;
  while (true) {
    Node* next = nullptr;
    if (Step(level, /*exact=*/level == 0, target, &before, &behind, &next)) continue;
    if (level == 0) return {before, next};
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
  if (at != nullptr && at->entry().tag() == tag && at->entry().key() == key) return at;
  return Before(key, tag);
}

template <typename Order>
std::vector<const typename SkipList<Order>::Node*> SkipList<Order>::Sample(size_t least) const {
  std::vector<const Node*> nodes;
  for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    nodes.clear();
    for (const Node* node = head_->Next(level); node != nullptr; node = node->Next(level)) {
      nodes.push_back(node);
    }
    if (nodes.size() >= least) break;
  }
  return nodes;
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
