#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "memnode/space_allocator.h"
#include "memnode/table_store.h"
#include "nacre/comparator.h"
#include "nacre/status.h"
#include "table/table_meta.h"
#include "table/table_reader.h"
#include "util/bloom.h"
#include "util/epoch.h"

namespace nacre {

/// How much of a table's point index this process holds: the whole of it, or a Bloom filter in
/// front of reads of single buckets from the remote index (docs/design.md, section 5).
class PointTier {
 public:
  enum class Kind : uint8_t { kIndex, kBloom };

  static Status Load(const TableReader& reader, Kind kind, std::unique_ptr<const PointTier>* tier);

  Kind kind() const { return kind_; }
  size_t MemoryUsage() const { return bytes_; }
  const PointIndex& index() const { return index_; }
  const BloomFilter& bloom() const { return bloom_; }
  const PointIndexShape& shape() const { return shape_; }

  void Prefetch(uint64_t hash) const {
    kind_ == Kind::kIndex ? index_.Prefetch(hash) : bloom_.Prefetch(hash);
  }

 private:
  PointTier(Kind kind, std::unique_ptr<char[]> section, size_t bytes)
      : kind_(kind), section_(std::move(section)), bytes_(bytes), bloom_(Slice()) {}

  Kind kind_;
  std::unique_ptr<char[]> section_;
  size_t bytes_;
  PointIndex index_;
  BloomFilter bloom_;
  PointIndexShape shape_;
};

/// A live table of the database: opened once, shared by all versions that hold it. When the last
/// of them goes after the edit that dropped the table, its space is freed.
///
/// Thread safety: all methods may be called from many threads at once; `tier()` under a guard of
/// the epoch domain.
class TableHandle {
 public:
  static Status Open(TableMeta meta, const Comparator* comparator, memnode::TableStore* store,
                     memnode::SpaceAllocator* space, EpochDomain* epochs, PointTier::Kind tier,
                     std::shared_ptr<TableHandle>* handle);
  ~TableHandle();
  TableHandle(const TableHandle&) = delete;
  TableHandle& operator=(const TableHandle&) = delete;

  const TableMeta& meta() const { return *meta_; }
  const TableReader& reader() const { return *reader_; }
  uint64_t id() const { return meta_->id; }
  uint64_t size() const { return meta_->size; }

  const PointTier* tier() const {
    return tier_.load(std::memory_order_acquire);  // Pairs with SetTier.
  }
  /// Loads the other tier and retires the old one. One caller at a time.
  Status SetTier(PointTier::Kind kind);

  /// The edit that dropped this table is committed.
  void MarkDropped() { dropped_.store(true, std::memory_order_relaxed); }

  /// Fragments in which damage was found, by reads, compactions or scrubbing. Reads get elsewhere
  /// what they can, but the fragments had better be made anew.
  FragmentSet damaged() const { return reader_->extent()->damaged(); }
  void ReportDamage(FragmentSet fragments) const { reader_->extent()->ReportDamage(fragments); }

  /// Bytes of this process's memory.
  size_t MemoryUsage() const;

  /// Set while a compaction has the table as input. Guarded by the database's mutex.
  bool being_compacted = false;

 private:
  TableHandle(std::shared_ptr<const TableMeta> meta, memnode::SpaceAllocator* space,
              EpochDomain* epochs);

  const std::shared_ptr<const TableMeta> meta_;
  memnode::SpaceAllocator* const space_;
  EpochDomain* const epochs_;
  std::unique_ptr<TableReader> reader_;
  std::atomic<const PointTier*> tier_{nullptr};
  std::atomic<bool> dropped_{false};
};

}  // namespace nacre
