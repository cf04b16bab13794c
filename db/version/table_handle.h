#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "db/version/table_uses.h"
#include "nacre/comparator.h"
#include "nacre/status.h"
#include "pool/space/space_allocator.h"
#include "pool/store/table_store.h"
#include "table/format/table_meta.h"
#include "table/index/index_memory.h"
#include "table/seal/table_keys.h"
#include "table/table_reader.h"
#include "util/codes/bloom.h"
#include "util/mutex.h"
#include "util/threads/epoch.h"

namespace nacre {

/// How much of a table's point index this process holds: the whole of it, or a Bloom filter in
/// front of reads of single buckets from the remote index (docs/design.md, section 5). Of a table
/// that was there when the database was opened it may be just enough for those reads at first.
class PointTier {
 public:
  enum class Kind : uint8_t { kIndex, kBloom, kShape };

  static Status Load(const TableReader& reader, Kind kind, std::unique_ptr<const PointTier>* tier);

  Kind kind() const { return kind_; }
  size_t MemoryUsage() const { return bytes_; }
  const PointIndex& index() const { return index_; }
  const PointIndexShape& shape() const { return shape_; }
  /// Must not be asked of the kind kIndex.
  bool MayContain(uint64_t hash) const { return kind_ == Kind::kShape || bloom_.MayContain(hash); }

  void Prefetch(uint64_t hash) const {
    if (kind_ == Kind::kIndex) [[likely]] {
      index_.Prefetch(hash);
    } else if (kind_ == Kind::kBloom) {
      bloom_.Prefetch(hash);
    }
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

/// The space of one fragment of a table. Shared by the handles of the table when it is repaired:
/// freed with the last of them, if an edit that dropped it is committed.
class FragmentSpace {
 public:
  FragmentSpace(const ExtentAddr& extent, pool::SpaceAllocator* space)
      : extent_(extent), space_(space) {}
  ~FragmentSpace() {
    if (dropped_.load(std::memory_order_relaxed)) space_->Free(extent_);
  }
  FragmentSpace(const FragmentSpace&) = delete;
  FragmentSpace& operator=(const FragmentSpace&) = delete;

  const ExtentAddr& extent() const { return extent_; }
  void MarkDropped() { dropped_.store(true, std::memory_order_relaxed); }

 private:
  const ExtentAddr extent_;
  pool::SpaceAllocator* const space_;
  std::atomic<bool> dropped_{false};
};

/// What all tables of a database share. It outlives their handles.
struct TableSurroundings {
  pool::TableStore* store = nullptr;
  pool::SpaceAllocator* space = nullptr;  ///< Null: another object owns the space.
  EpochDomain* epochs = nullptr;
  IndexMemory* memory = nullptr;    ///< What indexes are counted in; null: there is no budget.
  TableUses* uses = nullptr;        ///< What lookups are counted in; null: they are not.
  const TableKeys* keys = nullptr;  ///< For tables that are encrypted; null: there are none.
};

/// A live table of the database: opened once, shared by all versions that hold it. When the last of
/// them goes after the edit that dropped the table, its space is freed. A table with repaired
/// fragments has a new handle, which shares with the old one what is the same.
///
/// Thread safety: all methods may be called from many threads at once; `tier()` under a guard of
/// the epoch domain.
class TableHandle {
 public:
  static Status Open(TableMeta meta, const Comparator* comparator,
                     const TableSurroundings& surroundings, PointTier::Kind tier,
                     std::shared_ptr<TableHandle>* handle);
  /// The same without reading anything: see Load.
  static Status OpenUnread(TableMeta meta, const Comparator* comparator,
                           const TableSurroundings& surroundings,
                           std::shared_ptr<TableHandle>* handle);
  /// The same table with other fragments, of which those of `placement` that are not of this handle
  /// are new. Reads the table's range index where it is now.
  Status OpenMoved(Placement placement, std::shared_ptr<TableHandle>* handle) const;
  ~TableHandle();
  TableHandle(const TableHandle&) = delete;
  TableHandle& operator=(const TableHandle&) = delete;

  const TableMeta& meta() const { return *meta_; }
  const std::shared_ptr<const TableMeta>& shared_meta() const { return meta_; }
  const TableReader& reader() const { return *reader_; }
  uint64_t id() const { return meta_->id; }
  uint64_t size() const { return meta_->size; }

  /// Null if the table was opened unread and has not been used since.
  const PointTier* tier() const {
    return tier_->current.load(std::memory_order_acquire);  // Pairs with SetTier.
  }
  /// Whether everything was loaded once: the range index, which may have been evicted since, and a
  /// tier that is more than a shape.
  bool loaded() const { return tier_->loaded.load(std::memory_order_acquire); }
  /// Reads the indexes of a table that was opened unread, with this tier, unless that has happened;
  /// the range index only if there is room. A failure leaves all as it was.
  Status Load(PointTier::Kind kind) const;
  /// Serves a lookup that met a table that is not loaded: reads the little that it lacks, which is
  /// the shape of the point index, and range tombstones.
  Status PrepareLookups() const;
  /// Loads the other tier and retires the old one. Of a loaded table; one caller at a time.
  Status SetTier(PointTier::Kind kind);

  /// The edit that dropped this table is committed.
  void MarkDropped() {
    for (const auto& fragment : fragments_) fragment->MarkDropped();
  }
  /// Records that the edit that put `moved`, an OpenMoved of this, in this one's place is
  /// committed; or, the other way round, that `moved` is given up.
  void MarkReplacedBy(const TableHandle& moved);
  /// Tells `moved`, an OpenMoved of this, of the damage that was reported here since it was opened,
  /// or will be, in fragments that both have.
  void PassDamageTo(const TableHandle& moved) const;

  /// The filter or the index let a lookup pass, which has to read the table.
  void NoteLookup() const {
    if (surroundings_.uses != nullptr) surroundings_.uses->Note(meta_);
  }

  /// A lookup met a fragment that is lost. Written once only: many threads may meet it.
  void NoteDegradedRead() const {
    if (!read_degraded()) read_degraded_.store(true, std::memory_order_relaxed);
  }
  bool read_degraded() const { return read_degraded_.load(std::memory_order_relaxed); }

  /// Fragments in which damage was found, by reads, compactions or scrubbing. Reads get elsewhere
  /// what they can, but the fragments had better be made anew.
  FragmentSet damaged() const { return reader_->extent()->damaged(); }
  void ReportDamage(FragmentSet fragments) const { reader_->extent()->ReportDamage(fragments); }
  void ReportDamage(FragmentSet fragments, uint64_t chunk) const {
    reader_->extent()->ReportDamage(fragments, chunk);
  }

  /// Bytes of this process's memory.
  size_t MemoryUsage() const;

  /// Set while a compaction has the table as input. Threads that set it or decide by it hold the
  /// database's mutex; those that only report it do not, so it is relaxed.
  std::atomic<bool> being_compacted{false};

 private:
  /// The tier of a table, however often the table moved.
  struct TierSlot {
    explicit TierSlot(IndexMemory* of) : memory(of) {}
    ~TierSlot();
    /// Counts the memory of what takes so many bytes less, and so many more.
    void Count(const PointTier* less, const PointTier* more) const;

    IndexMemory* const memory;
    std::atomic<const PointTier*> current{nullptr};
    std::atomic<bool> loaded{false};  ///< Set once it is more than a shape.
    Mutex loading;                    ///< Held while the first one is loaded.
  };

  TableHandle(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
              const TableSurroundings& surroundings)
      : meta_(std::move(meta)), comparator_(comparator), surroundings_(surroundings) {}

  /// Replaces the present tier.
  void PutTier(std::unique_ptr<const PointTier> tier) const;
  enum class Read : uint8_t { kNothing, kRangeIndex };
  Status OpenReader(Read read);

  const std::shared_ptr<const TableMeta> meta_;
  const Comparator* const comparator_;
  const TableSurroundings surroundings_;
  std::unique_ptr<TableReader> reader_;
  std::shared_ptr<TierSlot> tier_;
  std::vector<std::shared_ptr<FragmentSpace>> fragments_;
  mutable std::atomic<bool> read_degraded_{false};
};

}  // namespace nacre
