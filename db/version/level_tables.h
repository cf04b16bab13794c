#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "db/version/table_handle.h"
#include "db/version/table_sums.h"
#include "table/format/internal_key.h"

namespace nacre {

using TableList = std::vector<std::shared_ptr<TableHandle>>;

/// The ranges of user keys of some tables. Under the bytewise order 16-byte prefixes of their ends,
/// side by side, decide nearly all questions, so that no key and no table is touched. (8 bytes
/// would not do: db_bench's keys share their first 8 bytes across many tables.)
class TableBounds {
 public:
  explicit TableBounds(const InternalKeyComparator* comparator) : comparator_(comparator) {}

  void reserve(size_t tables) { bounds_.reserve(tables); }
  size_t size() const { return bounds_.size(); }
  /// The table outlives this.
  void Add(const TableMeta& meta) {
    bounds_.push_back({Prefix(meta.smallest_user_key()), Prefix(meta.largest_user_key()), &meta});
  }
  void AddFrom(const TableBounds& other, size_t table) { bounds_.push_back(other.bounds_[table]); }

  bool Holds(size_t table, const Slice& user_key) const;
  /// Whether the last user key of one table is before the first one of the other.
  bool EndsBefore(size_t table, const TableBounds& other, size_t other_table) const;

  // The index of the first table, in key order, for which something is true; the number of tables
  // if there is none.

  /// It may have entries of `user_key`, or of later keys.
  size_t FirstNotBefore(const Slice& user_key) const;
  /// The same, if its range holds `user_key`; else the number of tables. They are disjoint and in
  /// key order.
  size_t FirstHolding(const Slice& user_key) const;
  /// Its last user key is `user_key` or, as with `after` it has to be, a later one. Counts a last
  /// key that only ends a range tombstone, which FirstNotBefore does not.
  size_t FirstReaching(const Slice& user_key, bool after = false) const;
  /// Its first user key is after `user_key`.
  size_t FirstBeyond(const Slice& user_key) const;

 private:
  /// As KeyPrefix, of twice as many bytes.
  struct Prefix {
    explicit Prefix(const Slice& user_key)
        : first(KeyPrefix(user_key)),
          second(user_key.size() <= sizeof(first) ? 0 : KeyPrefix(Behind(user_key))) {}
    auto operator<=>(const Prefix&) const = default;
    static Slice Behind(const Slice& user_key) {
      return {user_key.data() + sizeof(first), user_key.size() - sizeof(first)};
    }

    uint64_t first;
    uint64_t second;
  };
  struct Bounds {
    Prefix smallest;
    Prefix largest;
    const TableMeta* meta;
  };
  /// `is_before(meta)` decides among equal prefixes.
  template <typename IsBefore>
  size_t FirstNot(Prefix Bounds::*prefix_of, const Slice& user_key,
                  const IsBefore& is_before) const;

  const InternalKeyComparator* comparator_;
  std::vector<Bounds> bounds_;
};

/// Tables side by side in a level. Immutable, and shared by all versions in which these tables are
/// the same.
class TableChunk {
 public:
  TableChunk(const InternalKeyComparator* comparator, TableList tables);
  TableChunk(const TableChunk&) = delete;
  TableChunk& operator=(const TableChunk&) = delete;

  size_t size() const { return tables_.size(); }
  const TableList& tables() const { return tables_; }
  const TableBounds& bounds() const { return bounds_; }
  uint64_t bytes() const { return bytes_through_.empty() ? 0 : bytes_through_.back(); }
  uint64_t BytesBefore(size_t table) const { return table == 0 ? 0 : bytes_through_[table - 1]; }
  /// How many of the tables have range tombstones.
  size_t range_deletions() const { return range_deletions_; }
  /// The sums, which the first caller adds up; it should hold no lock. Thread-safe.
  const TableSums& sums() const;

  // Used only by the code that gives tables their tiers (see PointTiers): a note that all have this
  // one.
  bool IsKnownToHave(PointTier::Kind kind) const {
    return known_tier_.load(std::memory_order_relaxed) == static_cast<int>(kind);
  }
  void NoteTier(PointTier::Kind kind) const {
    known_tier_.store(static_cast<int>(kind), std::memory_order_relaxed);
  }
  void ForgetTier() const { known_tier_.store(kNone, std::memory_order_relaxed); }

  // Used by the search for damaged tables: a note that none was found, when there were so many
  // reports of damage (TableStore::damage_reports).
  bool IsKnownWhole(uint64_t damage_reports) const {
    return whole_at_.load(std::memory_order_relaxed) == damage_reports;
  }
  void NoteWhole(uint64_t damage_reports) const {
    whole_at_.store(damage_reports, std::memory_order_relaxed);
  }

 private:
  const TableList tables_;
  TableBounds bounds_;
  std::vector<uint64_t> bytes_through_;  ///< Bytes of the tables up to and including each one.
  size_t range_deletions_ = 0;
  mutable std::once_flag summed_;
  mutable TableSums sums_;
  static constexpr int kNone = -1;
  mutable std::atomic<int> known_tier_{kNone};
  mutable std::atomic<uint64_t> whole_at_{UINT64_MAX};
};

using ChunkList = std::vector<std::shared_ptr<const TableChunk>>;

/// A place in a level, whose chunks are not empty and outlive it.
class LevelIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = std::shared_ptr<TableHandle>;
  using difference_type = ptrdiff_t;
  using pointer = const value_type*;
  using reference = const value_type&;

  LevelIterator() = default;
  LevelIterator(const std::shared_ptr<const TableChunk>* chunk, size_t index)
      : chunk_(chunk), index_(index) {}

  reference operator*() const { return (*chunk_)->tables()[index_]; }
  pointer operator->() const { return &**this; }
  LevelIterator& operator++() {
    if (++index_ == (*chunk_)->size()) {
      ++chunk_;
      index_ = 0;
    }
    return *this;
  }
  LevelIterator operator++(int) {
    LevelIterator before = *this;
    ++*this;
    return before;
  }
  LevelIterator& operator--() {
    if (index_ == 0) index_ = (*--chunk_)->size();
    --index_;
    return *this;
  }
  LevelIterator operator--(int) {
    LevelIterator before = *this;
    --*this;
    return before;
  }
  bool operator==(const LevelIterator&) const = default;

  const std::shared_ptr<const TableChunk>* chunk() const { return chunk_; }
  size_t index() const { return index_; }
  const TableBounds& bounds() const { return (*chunk_)->bounds(); }

 private:
  const std::shared_ptr<const TableChunk>* chunk_ = nullptr;
  size_t index_ = 0;
};

/// Tables of a level from one place to another, in the level's order. The version outlives it.
class TableRange {
 public:
  TableRange(LevelIterator begin, LevelIterator end) : begin_(begin), end_(end) {}

  LevelIterator begin() const { return begin_; }
  LevelIterator end() const { return end_; }
  bool empty() const { return begin_ == end_; }
  /// Takes a step for each chunk, not for each table.
  size_t size() const;
  TableList ToList() const { return {begin_, end_}; }

 private:
  LevelIterator begin_;
  LevelIterator end_;
};

/// Tables of one level below 0: disjoint but for versions of one user key at their ends, in key
/// order. Immutable; cheap to copy. A level that differs in a few tables shares with this one all
/// chunks but theirs, so that a change costs what it changes and a pointer for each chunk.
class SortedLevel {
 public:
  /// Chunks have as many tables at most. Of a level of 165,000 tables, the list of chunks and one
  /// chunk are about equally long.
  static constexpr size_t kChunkTablesMax = 256;

  explicit SortedLevel(const InternalKeyComparator* comparator);
  SortedLevel(const InternalKeyComparator* comparator, TableList tables);

  size_t size() const { return Total().tables; }
  bool empty() const { return directory_->chunks.empty(); }
  uint64_t bytes() const { return Total().bytes; }
  /// How many of the tables have range tombstones.
  size_t range_deletions() const { return Total().range_deletions; }
  const ChunkList& chunks() const { return directory_->chunks; }
  TableRange tables() const { return {Begin(), End()}; }

  /// The first table whose range holds `user_key`, or null.
  TableHandle* Find(const Slice& user_key) const {
    const size_t chunks = directory_->chunks.size();
    const size_t at = chunks <= 1 ? 0 : directory_->lasts.FirstNotBefore(user_key);
    if (at == chunks) return nullptr;
    const TableChunk& chunk = *directory_->chunks[at];
    const size_t index = chunk.bounds().FirstHolding(user_key);
    return index == chunk.size() ? nullptr : chunk.tables()[index].get();
  }
  /// All of them, of which several have versions of `user_key` only if the first one ends with it.
  TableRange FindAll(const Slice& user_key) const;
  /// Those that overlap the user keys [begin, end] (null: open); without those that end with
  /// `begin`, if they are to end `after` it.
  TableRange Overlapping(const Slice* begin, const Slice* end, bool after = false) const;
  /// The first table that has an entry at or after `internal_key`, as far as its bounds tell.
  LevelIterator FirstNotBefore(const Slice& internal_key) const;
  /// The table of this id, whatever its handle is; `End()` if it is not here.
  LevelIterator Locate(const TableMeta& meta) const;

  LevelIterator Begin() const { return {directory_->chunks.data(), 0}; }
  LevelIterator End() const { return {directory_->chunks.data() + directory_->chunks.size(), 0}; }
  size_t CountOf(const TableRange& range) const;
  uint64_t BytesOf(const TableRange& range) const;

  /// This level without the tables at `removed` and with `added`.
  SortedLevel With(TableList added, const std::vector<LevelIterator>& removed) const;

 private:
  /// Sums up to and with a chunk.
  struct Through {
    size_t tables = 0;
    uint64_t bytes = 0;
    size_t range_deletions = 0;
  };
  struct Directory {
    explicit Directory(const InternalKeyComparator* comparator) : lasts(comparator) {}
    void Add(std::shared_ptr<const TableChunk> chunk);
    /// Adds a chunk of another directory without reading it.
    void AddFrom(const Directory& other, size_t chunk);
    /// Cuts `tables` into chunks, and leaves it empty.
    void Cut(const InternalKeyComparator* comparator, TableList* tables);
    Through Before(size_t chunk) const { return chunk == 0 ? Through() : through[chunk - 1]; }

    ChunkList chunks;
    TableBounds lasts;  ///< The last table of each chunk.
    std::vector<Through> through;
  };

  bool Less(const std::shared_ptr<TableHandle>& a, const std::shared_ptr<TableHandle>& b) const {
    return comparator_->Compare(a->meta().smallest, b->meta().smallest) < 0;
  }
  Through Total() const { return directory_->Before(directory_->chunks.size()); }
  /// The chunk to which `table` belongs.
  size_t ChunkFor(const std::shared_ptr<TableHandle>& table) const;
  /// What `in_chunk(bounds)` finds in the chunk at `chunk`, if there is one.
  template <typename InChunk>
  LevelIterator At(size_t chunk, const InChunk& in_chunk) const {
    if (chunk == directory_->chunks.size()) return End();
    return {&directory_->chunks[chunk], in_chunk(directory_->chunks[chunk]->bounds())};
  }

  const InternalKeyComparator* comparator_;
  std::shared_ptr<const Directory> directory_;
};

}  // namespace nacre
