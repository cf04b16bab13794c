#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "db/memtable/memtable_entry.h"
#include "table/merge/update_sort.h"
#include "util/memory/arena.h"

namespace nacre {

/// What one thread has put into a MemTable, in the order in which it came, with the prefixes of the
/// keys. It lies in blocks of an arena, which grow with what is in them.
///
/// All-zero bytes are an empty log. Thread safety: `Reserve` and `Append` by one thread; `Take` by
/// one other thread at a time; `size` by any.
class EntryLog {
 public:
  using Item = SortItem<MemTableEntry>;

  /// Items follow.
  struct Block {
    Item* items() { return reinterpret_cast<Item*>(this + 1); }
    const Item* items() const { return reinterpret_cast<const Item*>(this + 1); }

    std::atomic<Block*> next;
    size_t capacity;
  };

  /// Where a reader of the log is. All-zero bytes are its beginning.
  struct Cursor {
    const Block* block;
    size_t in_block;  ///< Items taken of the block.
    size_t taken;     ///< Items taken in all.
  };

  /// Makes room for the next entry. Throws std::bad_alloc; `*new_chunk` as with the arena.
  void Reserve(ConcurrentArena* arena, bool* new_chunk) {
    if (last_ != nullptr && used_ < last_->capacity) [[likely]]
      return;
    const size_t capacity =
        last_ == nullptr ? kFirstItems : std::min(2 * last_->capacity, kItemsMax);
    char* const memory = arena->Allocate(sizeof(Block) + capacity * sizeof(Item), new_chunk);
    Block* const block = new (memory) Block;
    block->next.store(nullptr, std::memory_order_relaxed);
    block->capacity = capacity;
    // Release: pairs with Take, which reads neither before it has read a size that counts an item
    // of the block.
    (last_ == nullptr ? first_ : last_->next).store(block, std::memory_order_release);
    last_ = block;
    used_ = 0;
  }

  /// Requires Reserve. A thread that sees the new size finds the entry.
  void Append(uint64_t prefix, const MemTableEntry* entry) {
    last_->items()[used_++] = {prefix, entry};
    size_.store(size() + 1, std::memory_order_release);  // Pairs with Take.
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }

  /// Appends the items from `*cursor` on, up to the size when the call began, to `*items`. If that
  /// throws, the cursor is behind those that are there.
  void Take(Cursor* cursor, std::vector<Item>* items) const {
    for (const size_t size = this->size(); cursor->taken < size;) {
      if (cursor->block == nullptr) {
        cursor->block = first_.load(std::memory_order_acquire);
      } else if (cursor->in_block == cursor->block->capacity) {
        cursor->block = cursor->block->next.load(std::memory_order_acquire);
        cursor->in_block = 0;
      }
      const size_t left = cursor->block->capacity - cursor->in_block;
      for (size_t n = std::min(left, size - cursor->taken); n > 0; --n) {
        items->push_back(cursor->block->items()[cursor->in_block]);
        ++cursor->in_block;
        ++cursor->taken;
      }
    }
  }

 private:
  static constexpr size_t kFirstItems = 16;
  static constexpr size_t kItemsMax = 1024;

  std::atomic<size_t> size_;
  std::atomic<Block*> first_;
  Block* last_;
  size_t used_;  ///< Items in the last block.
};

}  // namespace nacre
