#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "nacre/slice.h"
#include "util/memory/arena.h"
#include "util/memory/prefetch.h"

namespace nacre {

/// Whether an entry has a copy of a value's bytes or only points to them; if so, they outlive it.
enum class ValuePlace : uint8_t { kCopied, kElsewhere };

/// One update in a MemTable: key and value lie behind the object, in memory of an arena.
///
///     older | tag | key size, value size | key | value
///
/// A value that lies elsewhere has its address there instead. An entry is never removed, and
/// nothing of it changes but the link to older entries of its key, which KeyIndex keeps.
class MemTableEntry {
 public:
  /// `*new_chunk` is set when the arena took a chunk. Throws std::bad_alloc.
  static MemTableEntry* New(ConcurrentArena* arena, const Slice& key, uint64_t tag,
                            const Slice& value, ValuePlace place, bool* new_chunk) {
    assert(key.size() <= INT32_MAX && value.size() <= UINT32_MAX);
    const char* const address = value.data();
    // What is copied behind the key.
    const Slice rest = place == ValuePlace::kCopied
                           ? value
                           : Slice(reinterpret_cast<const char*>(&address), sizeof(address));
    const size_t size = sizeof(MemTableEntry) + key.size() + rest.size();
    // A lookup touches one line if the key is as short as most are.
    const size_t same_line = std::min<size_t>(64, sizeof(MemTableEntry) + key.size());
    auto* const entry =
        new (arena->Allocate(size, new_chunk, same_line)) MemTableEntry(key, tag, value, place);
    char* const bytes = reinterpret_cast<char*>(entry + 1);
    if (!key.empty()) std::memcpy(bytes, key.data(), key.size());
    if (!rest.empty()) std::memcpy(bytes + key.size(), rest.data(), rest.size());
    // The next entries of this thread will probably lie behind this one and be as large: have the
    // lines of that after the next by then, as one insert is sooner done than memory answers.
    PrefetchLines</*kWrite=*/1>(bytes + key.size() + rest.size() + size,
                                std::min<size_t>(size, 512));
    return entry;
  }

  Slice key() const { return {bytes(), key_size_}; }
  uint64_t tag() const { return tag_; }
  Slice value() const {
    if (!value_is_elsewhere_) [[likely]]
      return {bytes() + key_size_, value_size_};
    const char* value = nullptr;
    std::memcpy(&value, bytes() + key_size_, sizeof(value));
    return {value, value_size_};
  }
  /// The newest entry of the same key with a smaller tag; null if there is none.
  const MemTableEntry* older() const {
    return older_.load(std::memory_order_acquire);  // Pairs with the release in KeyIndex.
  }

 private:
  friend class KeyIndex;

  MemTableEntry(const Slice& key, uint64_t tag, const Slice& value, ValuePlace place)
      : tag_(tag),
        key_size_(static_cast<uint32_t>(key.size()) & INT32_MAX),
        value_is_elsewhere_(place == ValuePlace::kElsewhere),
        value_size_(static_cast<uint32_t>(value.size())) {}

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }

  std::atomic<MemTableEntry*> older_{nullptr};
  const uint64_t tag_;
  const uint32_t key_size_ : 31;
  const uint32_t value_is_elsewhere_ : 1;
  const uint32_t value_size_;
};

}  // namespace nacre
