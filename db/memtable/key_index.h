#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "db/memtable/memtable_entry.h"
#include "nacre/slice.h"
#include "util/memory/arena_block.h"
#include "util/mutex.h"

namespace nacre {

/// Finds the entries of a user key in a MemTable: an open-addressing hash table of one word a key,
/// which has 16 bits of the key's hash and the address of its newest entry. Older entries of the
/// key follow by links, in descending order of their tags.
///
/// A key has one slot: the first of the 32 from its hash's place on that was free when the key
/// came. Slots are never freed. If all 32 belong to others, the key goes to the next table, which
/// is twice as large; so a slot that is free proves that no later table has the key either, and a
/// lookup of an absent key touches one or two lines as a rule. Keys that were made to have equal
/// hashes do not make it grow: it gives up.
///
/// Thread safety: all methods may be called from many threads at once. A reader that learns of an
/// entry after its `Insert` returned finds it. An insert publishes the entry by a compare-and-swap
/// of its slot, or of the link of the next newer entry of its key.
class KeyIndex {
 public:
  /// The first table takes `bytes` of memory, rounded to a power of two, at the first insert.
  explicit KeyIndex(size_t bytes);
  ~KeyIndex();
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  /// `hash` is Hash64 of the entry's key. `before` is an entry that was inserted, or null: if it is
  /// a newer one of the same key, the search for the place among the key's entries begins there.
  /// `*grown` is set when a table was made. False if one was needed, and there is no memory for it
  /// or the last one is mostly empty: the entry is not in the index then.
  bool Insert(uint64_t hash, MemTableEntry* entry, MemTableEntry* before, bool* grown);

  /// The newest entry of `key`, whose Hash64 is `hash`; null if there is none.
  const MemTableEntry* Newest(const Slice& key, uint64_t hash) const {
    for (const auto& of : tables_) {
      const Table* const table = of.load(std::memory_order_acquire);  // Pairs with Grow.
      if (table == nullptr) return nullptr;
      const uint64_t home = table->Home(hash);
      for (size_t i = 0; i < kWindow; ++i) {
        // Acquire: pairs with the release in Insert.
        const uint64_t slot =
            table->slots[(home + i) & table->mask].load(std::memory_order_acquire);
        if (slot == 0) return nullptr;
        if (!HasHash(slot, hash)) continue;
        const MemTableEntry* const entry = EntryOf(slot);
        if (entry->key() == key) return entry;
      }
    }
    return nullptr;
  }

  /// Asks the processor for what `Newest` and `Insert` look at first.
  void Prefetch(uint64_t hash) const {
    const Table* const table = tables_[0].load(std::memory_order_acquire);
    if (table != nullptr) __builtin_prefetch(&table->slots[table->Home(hash)]);
  }

  size_t MemoryUsage() const { return memory_usage_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kWindow = 32;
  /// The last one would take more memory than there is.
  static constexpr size_t kTablesMax = 32;
  static constexpr int kAddressBits = 48;

  struct Table {
    /// `count` slots, a power of two. Throws std::bad_alloc.
    Table(size_t count, int first_bit);
    uint64_t Home(uint64_t hash) const { return hash >> shift & mask; }

    const uint64_t mask;
    const int shift;  ///< Each table takes other bits of the hash first.
    /// Where the slots are: a large table is looked up at random, which huge pages make cheaper.
    std::unique_ptr<std::atomic<uint64_t>[]> small;
    std::optional<ArenaBlock> large;
    std::atomic<uint64_t>* slots;
  };

  static bool HasHash(uint64_t slot, uint64_t hash) { return (slot ^ hash) >> kAddressBits == 0; }
  static MemTableEntry* EntryOf(uint64_t slot) {
    return reinterpret_cast<MemTableEntry*>(slot & ((uint64_t{1} << kAddressBits) - 1));
  }
  static uint64_t SlotOf(uint64_t hash, const MemTableEntry* entry) {
    return hash >> kAddressBits << kAddressBits | reinterpret_cast<uintptr_t>(entry);
  }

  /// Puts the entry into `*slot` or among those of its key there; false if another key has it.
  static bool Take(std::atomic<uint64_t>* slot, uint64_t hash, MemTableEntry* entry,
                   MemTableEntry* before);
  /// `newer`: an entry of the same key with a larger tag.
  static void LinkBehind(MemTableEntry* newer, MemTableEntry* entry);
  static bool IsMostlyEmpty(const Table& table);
  /// Table `i`; null if it may not be made.
  const Table* Grow(size_t i, bool* grown) EXCLUDES(growing_);

  const size_t first_slots_;
  std::array<std::atomic<const Table*>, kTablesMax> tables_{};
  std::atomic<size_t> memory_usage_{0};
  Mutex growing_;
};

}  // namespace nacre
