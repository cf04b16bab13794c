#include "db/memtable/key_index.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

namespace nacre {

KeyIndex::Table::Table(size_t count, int first_bit) : mask(count - 1), shift(first_bit) {
  if (count * sizeof(uint64_t) >= ArenaBlock::kHugePage) {
    large.emplace(count * sizeof(uint64_t));
    slots = reinterpret_cast<std::atomic<uint64_t>*>(large->data());  // The kernel clears it.
  } else {
    small = std::make_unique<std::atomic<uint64_t>[]>(count);
    slots = small.get();
  }
}

KeyIndex::KeyIndex(size_t bytes)
    : first_slots_(std::max(kWindow, std::bit_floor(bytes / sizeof(uint64_t)))) {}

KeyIndex::~KeyIndex() {
  for (const auto& table : tables_) delete table.load(std::memory_order_relaxed);
}

bool KeyIndex::Insert(uint64_t hash, MemTableEntry* entry, MemTableEntry* before, bool* grown) {
  assert(reinterpret_cast<uintptr_t>(entry) >> kAddressBits == 0);
  for (size_t i = 0; i < kTablesMax; ++i) {
    const Table* table = tables_[i].load(std::memory_order_acquire);  // Pairs with Grow.
    if (table == nullptr) [[unlikely]]
      table = Grow(i, grown);
    if (table == nullptr) [[unlikely]]
      return false;
    const uint64_t home = table->Home(hash);
    for (size_t at = 0; at < kWindow; ++at) {
      if (Take(&table->slots[(home + at) & table->mask], hash, entry, before)) return true;
    }
  }
  return false;
}

bool KeyIndex::Take(std::atomic<uint64_t>* slot, uint64_t hash, MemTableEntry* entry,
                    MemTableEntry* before) {
  uint64_t seen = slot->load(std::memory_order_acquire);
  for (;;) {
    MemTableEntry* newest = nullptr;
    if (seen != 0) {
      if (!HasHash(seen, hash)) return false;
      newest = EntryOf(seen);
      if (!(newest->key() == entry->key())) return false;
      if (newest->tag() > entry->tag()) [[unlikely]] {
        const bool from_before =
            before != nullptr && before->tag() > entry->tag() && before->key() == entry->key();
        LinkBehind(from_before ? before : newest, entry);
        return true;
      }
      assert(newest->tag() != entry->tag());
    }
    entry->older_.store(newest, std::memory_order_relaxed);
    // Release: a reader that finds the entry sees its bytes and its link. Acquire: what another
    // thread has put there meanwhile is looked at next.
    if (slot->compare_exchange_strong(seen, SlotOf(hash, entry), std::memory_order_release,
                                      std::memory_order_acquire)) {
      return true;
    }
  }
}

void KeyIndex::LinkBehind(MemTableEntry* newer, MemTableEntry* entry) {
  for (;;) {
    MemTableEntry* next = newer->older_.load(std::memory_order_acquire);
    while (next != nullptr && next->tag() > entry->tag()) {
      newer = next;
      next = newer->older_.load(std::memory_order_acquire);
    }
    assert(next == nullptr || next->tag() != entry->tag());
    entry->older_.store(next, std::memory_order_relaxed);
    // Release: as in Take.
    if (newer->older_.compare_exchange_strong(next, entry, std::memory_order_release,
                                              std::memory_order_relaxed)) {
      return;
    }
  }
}

bool KeyIndex::IsMostlyEmpty(const Table& table) {
  const std::atomic<uint64_t>* const slots = table.slots;
  const auto used = std::count_if(slots, slots + table.mask + 1, [](const auto& slot) {
    return slot.load(std::memory_order_relaxed) != 0;
  });
  // By chance alone no 32 slots in a row are taken before three quarters of all are.
  return static_cast<uint64_t>(used) < table.mask / 4;
}

const KeyIndex::Table* KeyIndex::Grow(size_t i, bool* grown) {
  MutexLock lock(&growing_);
  if (const Table* made = tables_[i].load(std::memory_order_relaxed); made != nullptr) return made;
  if (i > 0 && IsMostlyEmpty(*tables_[i - 1].load(std::memory_order_relaxed))) return nullptr;
  try {
    const size_t slots = first_slots_ << i;
    auto table = std::make_unique<Table>(slots, static_cast<int>(i % 3 * 8));
    memory_usage_.fetch_add(slots * sizeof(uint64_t), std::memory_order_relaxed);
    *grown = true;
    tables_[i].store(table.get(), std::memory_order_release);
    return table.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace nacre
