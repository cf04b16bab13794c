#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/memtable/key_index.h"
#include "db/memtable/memtable_entry.h"
#include "db/memtable/range_tombstone_list.h"
#include "db/memtable/write_buffer_share.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/format/internal_key.h"

namespace nacre {

class ArenaBlockSource;
class ConcurrentArena;
class InternalIterator;

/// The newest updates of a database, in memory of this process: entries that hold key and value, in
/// per-thread chunks of huge pages, found by a hash index of their keys, and put in order when
/// iterators or a flush ask for it (memtable_order.h). Hashing in front and ordering behind is the
/// idea of FloDB (EuroSys 2017), section 3.
///
/// Entries are never changed and never removed; all memory goes with the object. Not
/// reference-counted: share it with `std::shared_ptr`.
///
/// Thread safety: all methods may be called from many threads at once, without locks. An entry is
/// visible to all that happens after its `Add` returned; `Get` and iterators ignore no entry by
/// themselves, so callers pass a snapshot that covers published sequence numbers only. Readers that
/// need the order of entries that are not in order yet wait for one another while one of them puts
/// them in order.
class MemTable {
 public:
  enum class LookupResult : uint8_t { kAbsent, kFound, kDeleted, kOperand };

  /// `comparator` orders the user keys; not owned, must outlive this. `generation` names this
  /// MemTable among those of its database. The index of keys begins with `index_bytes`, at the
  /// first entry; a key takes 8 bytes there, and a lookup is fastest with at least twice as many.
  /// Other memory comes from `blocks` and goes back to it; null takes it from the kernel, which
  /// costs time for each page.
  MemTable(const Comparator* comparator, uint64_t generation, size_t index_bytes,
           std::shared_ptr<ArenaBlockSource> blocks = nullptr);
  ~MemTable();
  /// What the index begins with in a MemTable of `write_buffer_size` bytes: two places for each
  /// entry of 500 bytes or more. Smaller entries make it grow.
  static constexpr size_t IndexBytes(size_t write_buffer_size) { return write_buffer_size / 32; }
  MemTable(const MemTable&) = delete;
  MemTable& operator=(const MemTable&) = delete;

  /// Copies key and value in. A range deletion is kept apart, and is besides a deletion of the key
  /// that it begins with, so that there is an entry for each update. No other entry may have the
  /// same user key and sequence. `*new_chunk` is set (and never cleared) when the call took a chunk
  /// of memory: the moment to compare `MemoryUsage` with the write buffer size.
  void Add(SequenceNumber sequence, ValueType type, const Slice& user_key, const Slice& value,
           bool* new_chunk);
  /// The same, with Hash64 of the key, by which Prefetch was called.
  void Add(SequenceNumber sequence, ValueType type, const Slice& user_key, uint64_t hash,
           const Slice& value, bool* new_chunk);

  /// Adds what `other` has of later sequences than this one.
  void AddLaterOf(const MemTable& other, SequenceNumber sequence);

  /// The same as Add, with Hash64 of the key, but a value that is not small stays where it is: in
  /// memory of `arena`.
  void AddKept(SequenceNumber sequence, ValueType type, const Slice& user_key, uint64_t hash,
               const Slice& value, bool* new_chunk);
  /// Values of AddKept lie in the arena of `other`, which lives as long as this.
  void KeepAlive(std::shared_ptr<const MemTable> other) { kept_alive_ = std::move(other); }
  /// The arena for memory that lives as long as this object, and counts as its own.
  ConcurrentArena* arena();

  /// The newest entry of `user_key`, whose Hash64 is `hash`, with sequence <= `snapshot`. Sets
  /// `*sequence` unless absent, and `*value` if it is a value or an operand, whose bytes live as
  /// long as this object.
  LookupResult Get(const Slice& user_key, uint64_t hash, SequenceNumber snapshot, Slice* value,
                   SequenceNumber* sequence) const {
    if (unindexed_.load(std::memory_order_acquire)) [[unlikely]]  // Pairs with Insert.
      return Search(user_key, snapshot, value, sequence);
    const MemTableEntry* entry = index_.Newest(user_key, hash);
    const uint64_t newest = PackTag(snapshot, kValueTypeForSeek);
    for (int newer = 0; entry != nullptr && entry->tag() > newest; entry = entry->older()) {
      if (++newer > kNewerVersionsMax) [[unlikely]]
        return Search(user_key, snapshot, value, sequence);
    }
    return entry == nullptr ? LookupResult::kAbsent : ResultOf(*entry, value, sequence);
  }

  /// Iterates over all entries, newest first among those of one user key. The caller keeps this
  /// object alive; keys and values are valid until it ends. Entries added meanwhile may or may not
  /// be seen. The first one for a MemTable that has been written without any takes the time to put
  /// its entries in order.
  std::unique_ptr<InternalIterator> NewIterator() const;

  /// Requires that no `Add` is running or comes. Puts all entries in order, for good, at less cost
  /// than the first iterator's.
  void Seal();
  /// Iterators were asked for before Seal.
  bool iterated() const { return iterated_.load(std::memory_order_relaxed); }
  /// Iterators will be asked for: each Add keeps the order.
  void ExpectIterators();

  /// User keys, ascending, at which the entries fall into at most `parts` parts of about one size:
  /// each key begins a part. None if there are too few different keys.
  std::vector<std::string> Divide(size_t parts) const;

  /// An entry was or will be added that the log of its owner has not got.
  void NoteUnlogged() {
    if (!all_logged()) return;  // As a rule; the line is shared.
    all_logged_.store(false, std::memory_order_relaxed);
  }
  /// As exact as `entries`.
  bool all_logged() const { return all_logged_.load(std::memory_order_relaxed); }
  /// Its entries are in the log of the last owner, which stays until they are in tables.
  void NoteReplayed() {
    replayed_.store(true, std::memory_order_relaxed);
    NoteUnlogged();
  }
  /// Whether some log has all entries. It is as exact as `entries`.
  bool all_in_some_log() const { return all_logged() || replayed_.load(std::memory_order_relaxed); }

  /// The range deletions that were added; null if there are none. Entries that they cover are found
  /// all the same.
  const RangeTombstoneList::Runs* range_tombstones() const { return range_tombstones_.runs(); }

  /// Asks the processor for what `Get` looks at first, and `AddKept` last.
  void Prefetch(uint64_t hash) const { index_.Prefetch(hash); }

  uint64_t generation() const { return generation_; }
  /// Bytes taken in chunks, filled or not, and the index's.
  size_t MemoryUsage() const;
  /// Has the memory count as part of `share`; before the first Add.
  void ChargeTo(const std::shared_ptr<WriteBufferShare>& share) {
    charge_ = std::make_unique<MemTableCharge>(share);
  }
  /// Null if it counts nowhere.
  MemTableCharge* charge() const { return charge_.get(); }
  /// Entries added so far, deletions among them. Exact once no `Add` is running.
  uint64_t entries() const;
  uint64_t deletions() const;
  uint64_t operands() const;  ///< The number of merge operands.
  /// Bytes of user keys and values added so far. Exact once no `Add` is running.
  uint64_t data_bytes() const;
  /// Bytes of the longest user key and of the largest value so far. As exact as the others.
  uint64_t largest_key() const;
  uint64_t largest_value() const;

 private:
  std::shared_ptr<const MemTable> kept_alive_;  ///< Outlives the rest.
  std::unique_ptr<MemTableCharge> charge_;
  class Rep;
  template <typename Order>
  class RepOf;

  /// A Get that has to go past more versions of its key searches by the order.
  static constexpr int kNewerVersionsMax = 64;

  static LookupResult ResultOf(const MemTableEntry& entry, Slice* value, SequenceNumber* sequence) {
    *sequence = TagSequence(entry.tag());
    const ValueType type = TagType(entry.tag());
    if (IsDeletion(type)) [[unlikely]]
      return LookupResult::kDeleted;
    *value = entry.value();
    return type == ValueType::kValue ? LookupResult::kFound : LookupResult::kOperand;
  }

  void Insert(uint64_t tag, const Slice& user_key, uint64_t hash, const Slice& value,
              ValuePlace place, bool* new_chunk);
  LookupResult Search(const Slice& user_key, SequenceNumber snapshot, Slice* value,
                      SequenceNumber* sequence) const;

  void AddRange(SequenceNumber sequence, const Slice& begin, const Slice& end, bool* new_chunk);

  const Comparator* const comparator_;
  const uint64_t generation_;
  std::atomic<bool> all_logged_{true};
  std::atomic<bool> replayed_{false};
  std::atomic<bool> unindexed_{false};  ///< The index lacks an entry: it could not grow.
  mutable std::atomic<bool> iterated_{false};
  KeyIndex index_;
  RangeTombstoneList range_tombstones_;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
