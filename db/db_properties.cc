#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "db/db_impl.h"
#include "db/version/space_report.h"
#include "nacre/statistics.h"
#include "util/uri.h"

namespace nacre {

/// What GetProperty answers: numbers in one table, texts in another.
class DBProperties {
 public:
  DBProperties(DBImpl* db, const ColumnFamily* family) : db_(db), family_(family) {
    MutexLock lock(&db_->mutex_);
    view_ = family->current_view();
    versions_ = db_->CurrentVersions();
    compaction_due_ = family->picker().Due(*view_->version);
  }

  bool Number(const std::string& name, uint64_t* value) {
    using Function = uint64_t (DBProperties::*)();
    static constexpr std::pair<std::string_view, Function> kNumbers[] = {
        {"num-entries-active-mem-table", &DBProperties::ActiveEntries},
        {"cur-size-active-mem-table", &DBProperties::ActiveBytes},
        {"cur-size-all-mem-tables", &DBProperties::MemTableBytes},
        {"size-all-mem-tables", &DBProperties::MemTableBytes},
        {"num-entries-imm-mem-tables", &DBProperties::ImmutableEntries},
        {"num-deletes-active-mem-table", &DBProperties::ActiveDeletions},
        {"num-deletes-imm-mem-tables", &DBProperties::ImmutableDeletions},
        {"num-immutable-mem-table", &DBProperties::Immutables},
        {"mem-table-flush-pending", &DBProperties::FlushPending},
        {"num-running-flushes", &DBProperties::RunningFlushes},
        {"num-running-compactions", &DBProperties::RunningCompactions},
        {"compaction-pending", &DBProperties::CompactionPending},
        {"estimate-pending-compaction-bytes", &DBProperties::PendingBytes},
        {"num-snapshots", &DBProperties::Snapshots},
        {"oldest-snapshot-sequence", &DBProperties::OldestSnapshot},
        {"events.dropped", &DBProperties::EventsDropped},
        {"estimate-table-readers-mem", &DBProperties::IndexBytesOfFamily},
        {"estimate-live-data-size", &DBProperties::LiveBytes},
        {"actual-delayed-write-rate", &DBProperties::DelayedRate},
        {"estimate-num-keys", &DBProperties::EstimatedKeys},
        {"is-write-stopped", &DBProperties::WriteStopped},
        {"total-sst-files-size", &DBProperties::TableBytes},
        {"live-sst-files-size", &DBProperties::TableBytes},
        {"num-live-tables", &DBProperties::Tables},
        {"num-unloaded-tables", &DBProperties::UnloadedTables},
        {"num-tombstones", &DBProperties::Tombstones},
        {"space.used-bytes", &DBProperties::UsedBytes},
        {"space.quarantined-bytes", &DBProperties::QuarantinedBytes},
        {"space.compute-bytes", &DBProperties::ComputeBytes},
        {"space.index-bytes", &DBProperties::IndexBytes},
        {"space.index-budget-used", &DBProperties::IndexBudgetUsed},
        {"network.compute-read", &DBProperties::ComputeRead},
        {"network.compute-written", &DBProperties::ComputeWritten},
        {"network.memnode-read", &DBProperties::MemnodeRead},
        {"network.memnode-written", &DBProperties::MemnodeWritten},
        {"flush.near-data", &DBProperties::FlushesNearData},
        {"flush.fallbacks", &DBProperties::FlushFallbacks},
        {"compaction.bytes-read", &DBProperties::CompactionRead},
        {"compaction.bytes-written", &DBProperties::CompactionWritten},
        {"compaction.cpu-nanos", &DBProperties::CompactionCpu},
        {"encoding.data-bytes", &DBProperties::EncodedBytes},
        {"encoding.cpu-nanos", &DBProperties::EncodingCpu},
        {"stall-nanos", &DBProperties::StallNanos},
        {"damage.reads", &DBProperties::DamagedReads},
        {"damage.fragments", &DBProperties::DamagedFragments},
        {"repair.tables-left", &DBProperties::TablesToRepair},
        {"repair.bytes-done", &DBProperties::RepairedBytes},
        {"repair.cpu-nanos", &DBProperties::RepairCpu},
        {"scrub.bytes", &DBProperties::ScrubBytes},
        {"scrub.damaged-fragments", &DBProperties::ScrubDamaged},
        {"scrub.passes", &DBProperties::ScrubPasses},
        {"scrub.copy-bytes", &DBProperties::ScrubCopyBytes},
        {"scrub.copy-passes", &DBProperties::ScrubCopyPasses},
        {"scrub.damaged-copies", &DBProperties::ScrubDamagedCopies},
        {"scrub.healed-copies", &DBProperties::ScrubHealedCopies},
        {"manifest.edits", &DBProperties::ManifestEdits},
        {"manifest.checkpoints", &DBProperties::ManifestCheckpoints},
        {"manifest.delta-bytes", &DBProperties::ManifestDeltaBytes},
        {"manifest.image-bytes", &DBProperties::ManifestImageBytes},
        {"log.bytes", &DBProperties::LogBytes},
        {"log.writes", &DBProperties::LogWrites},
        {"log.segments", &DBProperties::LogSegments},
    };
    constexpr std::string_view kFilesAtLevel = "num-files-at-level";
    if (name.starts_with(kFilesAtLevel)) {
      uint64_t level = 0;
      const Slice digits(name.data() + kFilesAtLevel.size(), name.size() - kFilesAtLevel.size());
      const auto deepest = static_cast<uint64_t>(version().num_levels() - 1);
      if (!ParseNumber(digits, 0, deepest, &level).ok()) return false;
      *value = version().CountTables(static_cast<int>(level));
      return true;
    }
    constexpr std::string_view kFallback = "flush.fallback.";
    for (size_t i = 0; i < kFlushFallbacks && name.starts_with(kFallback); ++i) {
      const auto why = static_cast<FlushFallback>(i);
      if (name.substr(kFallback.size()) != NameOf(why)) continue;
      *value = db_->flush_sites_.fallbacks(why);
      return true;
    }
    constexpr std::string_view kSpace = "space.";
    for (const SpaceField& field : SpaceFields()) {
      if (!name.starts_with(kSpace) || name.substr(kSpace.size()) != field.name) continue;
      *value = field.value(Space());
      return true;
    }
    for (const auto& [of, number] : kNumbers) {
      if (of != name) continue;
      *value = (this->*number)();
      return true;
    }
    return false;
  }

  /// Whether the number is of the family: there is one for each.
  static bool IsOfFamily(const std::string& name) {
    static constexpr std::string_view kOfFamily[] = {
        "num-entries-active-mem-table",
        "num-entries-imm-mem-tables",
        "num-deletes-active-mem-table",
        "num-deletes-imm-mem-tables",
        "cur-size-active-mem-table",
        "cur-size-all-mem-tables",
        "size-all-mem-tables",
        "num-immutable-mem-table",
        "mem-table-flush-pending",
        "compaction-pending",
        "estimate-num-keys",
        "estimate-pending-compaction-bytes",
        "estimate-table-readers-mem",
        "estimate-live-data-size",
        "total-sst-files-size",
        "live-sst-files-size",
        "num-live-tables",
        "num-tombstones",
    };
    return name.starts_with("num-files-at-level") || std::ranges::count(kOfFamily, name) > 0;
  }

  bool Map(const std::string& name, std::map<std::string, std::string>* value) {
    const auto add = [&](const std::string& key, uint64_t number) {
      (*value)[key] = std::to_string(number);
    };
    if (name == "cfstats") {
      for (int level = 0; level < version().num_levels(); ++level) {
        const std::string prefix = "L" + std::to_string(level);
        add(prefix + ".num-files", version().CountTables(level));
        add(prefix + ".bytes", version().LevelBytes(level));
      }
      add("mem-table-bytes", MemTableBytes());
      add("estimate-num-keys", EstimatedKeys());
      add("estimate-pending-compaction-bytes", PendingBytes());
    } else if (name == "dbstats") {
      const DBCounters& counters = db_->counters_;
      add("flushes", counters.flushes.load());
      add("flush.bytes-written", counters.flush_bytes.load());
      add("compactions", counters.compactions.load());
      add("compaction.moves", counters.trivial_moves.load());
      add("compaction.bytes-read", CompactionRead());
      add("compaction.bytes-written", CompactionWritten());
      add("compaction.cpu-nanos", CompactionCpu());
      add("stall-nanos", StallNanos());
    } else if (name == "aggregated-table-properties") {
      add("num-files", Tables());
      add("num-entries", SumOverTables([](const TableHandle& t) { return t.meta().entries; }));
      add("num-deletions", Tombstones());
      add("raw-bytes", SumOverTables([](const TableHandle& t) { return t.meta().user_bytes; }));
      add("data-size", SumOverTables([](const TableHandle& t) { return t.meta().records.length; }));
      add("index-size", SumOverTables([](const TableHandle& t) {
            return t.meta().point_index.length + t.meta().range_index.length;
          }));
      add("filter-size", SumOverTables([](const TableHandle& t) { return t.meta().bloom.length; }));
    } else if (name == "space") {
      const SpaceReport space = Space();
      for (const SpaceField& field : SpaceFields())
        add(std::string(field.name), field.value(space));
    } else {
      return false;
    }
    return true;
  }

  std::string LevelStats() {
    std::string text = "Level Files Size(MB)\n--------------------\n";
    for (int level = 0; level < version().num_levels(); ++level) {
      text += fmt::format("{:3d} {:8d} {:8.0f}\n", level, version().CountTables(level),
                          static_cast<double>(version().LevelBytes(level)) / (1 << 20));
    }
    return text;
  }

  std::string Tables(const char* separator) {
    std::string text;
    for (int level = 0; level < version().num_levels(); ++level) {
      for (const auto& table : version().tables(level)) {
        const TableMeta& meta = table->meta();
        text += fmt::format("level {} table {} entries {} tombstones {} bytes {} [{} .. {}] on",
                            level, meta.id, meta.entries, meta.tombstones, meta.size,
                            meta.smallest_user_key().ToString(true),
                            meta.largest_user_key().ToString(true));
        for (const ExtentAddr& fragment : meta.placement.fragments) {
          text += fmt::format(" node {} at {}", static_cast<unsigned>(fragment.start.node),
                              static_cast<uint64_t>(fragment.start.offset));
        }
        text += separator;
      }
    }
    return text;
  }

  std::string Stats() {
    const DBCounters& counters = db_->counters_;
    std::string text = LevelStats();
    text += fmt::format("MemTables: {} waiting to be flushed, {} in all\n", Immutables(),
                        FormatBytes(MemTableBytes()));
    text += fmt::format("Flushes: {}, {} written, {} near the data\n", counters.flushes.load(),
                        FormatBytes(counters.flush_bytes.load()), FlushesNearData());
    const double cpu_seconds = static_cast<double>(CompactionCpu()) / 1e9;
    text +=
        fmt::format("Compactions: {} and {} moves, {} read, {} written, {:.2f} s of executor CPU\n",
                    counters.compactions.load(), counters.trivial_moves.load(),
                    FormatBytes(CompactionRead()), FormatBytes(CompactionWritten()), cpu_seconds);
    text +=
        fmt::format("Stalls: {:.3f} s over all writers\n", static_cast<double>(StallNanos()) / 1e9);
    const SpaceReport space = Space();
    text += fmt::format("Space: {} of user data in tables, {} stored, {} leased\n",
                        FormatBytes(space.user_bytes), FormatBytes(space.stored_bytes()),
                        FormatBytes(space.leased_bytes));
    text += fmt::format("Compute node: {} of indexes, {} with MemTables and their spare blocks\n",
                        FormatBytes(IndexBytes()), FormatBytes(ComputeBytes()));
    return text;
  }

  SpaceReport Space() const {
    return MakeSpaceReport(versions_, *db_->space_, db_->copy_bytes_.ByNode(),
                           db_->client_->node_count());
  }

 private:
  const Version& version() const { return *view_->version; }

  /// Of the family.
  template <typename Function>
  uint64_t SumOverTables(Function function) const {
    uint64_t sum = 0;
    ForEachTable({view_->version},
                 [&](const auto& table, int /*level*/) { sum += function(*table); });
    return sum;
  }
  /// Of all families.
  template <typename Function>
  uint64_t SumOverAllTables(Function function) const {
    uint64_t sum = 0;
    ForEachTable(versions_, [&](const auto& table, int /*level*/) { sum += function(*table); });
    return sum;
  }

  /// That takes writes; null if nothing has been written since the one before was full.
  const MemTable* Active() const {
    const bool any = !view_->memtables.empty();
    const MemTable* newest = any ? view_->memtables.front().get() : nullptr;
    return any && newest->generation() == db_->sequencer_.generation() ? newest : nullptr;
  }
  uint64_t ActiveEntries() { return Active() != nullptr ? Active()->entries() : 0; }
  uint64_t ActiveBytes() { return Active() != nullptr ? Active()->MemoryUsage() : 0; }
  uint64_t MemTableBytes() {
    uint64_t bytes = 0;
    for (const auto& memtable : view_->memtables) bytes += memtable->MemoryUsage();
    return bytes;
  }
  uint64_t Immutables() {
    return static_cast<uint64_t>(
        std::count_if(view_->memtables.begin(), view_->memtables.end(), [&](const auto& memtable) {
          return memtable->generation() != db_->sequencer_.generation() && memtable->entries() > 0;
        }));
  }
  template <typename Function>
  uint64_t SumOverImmutables(Function function) const {
    uint64_t sum = 0;
    for (const auto& memtable : view_->memtables) {
      if (memtable.get() != Active()) sum += function(*memtable);
    }
    return sum;
  }
  uint64_t ImmutableEntries() {
    return SumOverImmutables([](const MemTable& memtable) { return memtable.entries(); });
  }
  uint64_t ActiveDeletions() { return Active() != nullptr ? Active()->deletions() : 0; }
  uint64_t ImmutableDeletions() {
    return SumOverImmutables([](const MemTable& memtable) { return memtable.deletions(); });
  }
  /// 0 if there is none.
  uint64_t OldestSnapshot() {
    MutexLock lock(&db_->mutex_);
    return db_->snapshots_.Oldest();
  }
  uint64_t EventsDropped() { return db_->events_.dropped(); }
  uint64_t IndexBytesOfFamily() {
    EpochDomain::Guard guard(&db_->epochs_);
    return SumOverTables([](const TableHandle& table) { return table.MemoryUsage(); });
  }
  /// An estimate: the deepest level has each key once, and nearly all that there are.
  uint64_t LiveBytes() {
    const int depth = version().depth();
    return depth == 0 ? 0 : version().LevelBytes(depth - 1);
  }
  /// Bytes a second that writers are slowed down to; 0: they are not.
  uint64_t DelayedRate() {
    if (db_->stall_.load(std::memory_order_relaxed) != Stall::kDelay) return 0;
    const uint64_t rate = db_->live_.delayed_write_rate;
    return rate > 0 ? rate : kDefaultDelayedRate;
  }
  uint64_t FlushPending() { return Immutables() > 0 ? 1 : 0; }
  uint64_t RunningFlushes() {
    MutexLock lock(&db_->mutex_);
    return db_->background_.flush_running ? 1 : 0;
  }
  uint64_t RunningCompactions() {
    MutexLock lock(&db_->mutex_);
    return static_cast<uint64_t>(db_->background_.compactions_running) +
           static_cast<uint64_t>(db_->background_.manual_compactions);
  }
  uint64_t CompactionPending() { return compaction_due_ ? 1 : 0; }
  uint64_t PendingBytes() { return family_->picker().PendingBytes(version()); }
  uint64_t Snapshots() {
    MutexLock lock(&db_->mutex_);
    return db_->snapshots_.size();
  }
  uint64_t EstimatedKeys() {
    uint64_t entries = 0;
    uint64_t deletions = 0;
    for (const auto& memtable : view_->memtables) {
      entries += memtable->entries();
      deletions += memtable->deletions();
    }
    entries += SumOverTables([](const TableHandle& table) { return table.meta().entries; });
    deletions += Tombstones();
    // As RocksDB does: a tombstone is an entry itself and hides another one.
    return entries > 2 * deletions ? entries - 2 * deletions : 0;
  }
  uint64_t WriteStopped() {
    return db_->stall_.load(std::memory_order_relaxed) == Stall::kStop ? 1 : 0;
  }
  uint64_t TableBytes() {
    uint64_t bytes = 0;
    for (int level = 0; level < version().depth(); ++level) bytes += version().LevelBytes(level);
    return bytes;
  }
  uint64_t Tables() { return version().CountTables(); }
  uint64_t Tombstones() {
    return SumOverTables([](const TableHandle& table) { return table.meta().tombstones; });
  }
  /// Of jobs that nodes have not said they ended.
  uint64_t QuarantinedBytes() { return db_->space_->quarantined_bytes(); }
  uint64_t UsedBytes() {
    const SpaceReport space = Space();
    return space.stored_bytes() + space.unlinked_bytes - space.lost_bytes;
  }
  uint64_t IndexBytes() {
    EpochDomain::Guard guard(&db_->epochs_);
    return SumOverAllTables([](const TableHandle& table) { return table.MemoryUsage(); });
  }
  /// Of Options::index_memory_budget; 0 without one.
  uint64_t IndexBudgetUsed() {
    const IndexMemory* const memory = db_->point_tiers_.memory();
    return memory == nullptr ? 0 : memory->used();
  }
  uint64_t AllMemTableBytes() {
    uint64_t bytes = 0;
    MutexLock lock(&db_->mutex_);
    for (const auto& [id, family] : db_->families_->by_id) {
      for (const auto& memtable : family->current_view()->memtables) {
        bytes += memtable->MemoryUsage();
      }
    }
    return bytes;
  }
  uint64_t ComputeBytes() {
    return IndexBytes() + AllMemTableBytes() + db_->memtable_blocks_->FreeBytes();
  }
  uint64_t ComputeRead() { return db_->client_->device()->traffic().bytes_read; }
  uint64_t ComputeWritten() { return db_->client_->device()->traffic().bytes_written; }
  uint64_t SumOverNodes(uint64_t pool::NodeStats::*field) {
    uint64_t sum = 0;
    for (int node = 0; node < db_->client_->node_count(); ++node) {
      pool::NodeStats stats;
      // A node that is lost counts for nothing.
      if (db_->client_->GetStats(static_cast<NodeId>(node), &stats).ok()) sum += stats.*field;
    }
    return sum;
  }
  uint64_t MemnodeRead() { return SumOverNodes(&pool::NodeStats::bytes_read); }
  uint64_t MemnodeWritten() { return SumOverNodes(&pool::NodeStats::bytes_written); }
  uint64_t FlushesNearData() { return db_->flush_sites_.near_data(); }
  uint64_t FlushFallbacks() { return db_->flush_sites_.fallbacks(); }
  uint64_t CompactionRead() { return db_->counters_.compaction_bytes_read.load(); }
  uint64_t CompactionWritten() { return db_->counters_.compaction_bytes_written.load(); }
  uint64_t CompactionCpu() { return db_->counters_.compaction_cpu_nanos.load(); }
  uint64_t EncodedBytes() { return db_->store_->encoding_work().data_bytes; }
  uint64_t EncodingCpu() { return db_->store_->encoding_work().cpu_nanos; }
  uint64_t DamagedReads() { return db_->store_->damaged_reads(); }
  uint64_t DamagedFragments() {
    return SumOverAllTables([](const TableHandle& table) {
      return static_cast<uint64_t>(std::popcount(table.damaged()));
    });
  }
  uint64_t UnloadedTables() {
    return SumOverAllTables([](const TableHandle& table) { return table.loaded() ? 0u : 1u; });
  }
  uint64_t ScrubBytes() { return db_->scrubber_.counters().bytes.load(); }
  uint64_t ScrubDamaged() { return db_->scrubber_.counters().fragments.load(); }
  uint64_t ScrubPasses() { return db_->scrubber_.counters().passes.load(); }
  uint64_t ScrubCopyBytes() { return db_->copy_scrubber_->counters().bytes.load(); }
  uint64_t ScrubCopyPasses() { return db_->copy_scrubber_->counters().passes.load(); }
  uint64_t ScrubDamagedCopies() { return db_->copy_scrubber_->counters().damaged.load(); }
  uint64_t ScrubHealedCopies() { return db_->copy_scrubber_->counters().healed.load(); }
  uint64_t StallNanos() { return db_->counters_.stall_nanos.load(); }
  /// Whoever sees 0 may take further nodes away.
  uint64_t TablesToRepair() {
    // First: what is made by then is in the version.
    const uint64_t at_risk = db_->tables_begun_.AtRisk();
    const uint64_t damage_reports = db_->store_->damage_reports();
    return at_risk + PlanRepair(db_->Versions(), db_->LookAtNodes(), damage_reports).size();
  }
  uint64_t RepairedBytes() { return db_->counters_.repaired_bytes.load(); }
  uint64_t RepairCpu() { return db_->counters_.repair_cpu_nanos.load(); }
  uint64_t ManifestEdits() { return db_->manifest_->counters().edits; }
  uint64_t ManifestCheckpoints() { return db_->manifest_->counters().checkpoints; }
  uint64_t ManifestDeltaBytes() { return db_->manifest_->counters().delta_bytes; }
  uint64_t ManifestImageBytes() { return db_->manifest_->counters().image_bytes; }
  /// All 0 without a log.
  LogWriterStats LogStats() { return db_->log_ == nullptr ? LogWriterStats() : db_->log_->stats(); }
  uint64_t LogBytes() { return LogStats().bytes_appended; }
  uint64_t LogWrites() { return LogStats().writes_posted; }
  uint64_t LogSegments() { return LogStats().segments; }

  DBImpl* const db_;
  const ColumnFamily* const family_;
  std::shared_ptr<const ReadView> view_;  ///< Of the family.
  VersionList versions_;                  ///< Of all.
  bool compaction_due_ = false;
};

namespace {

/// What follows the prefix; none: it has no prefix that is known.
std::optional<std::string> NameOf(const Slice& property) {
  for (const std::string_view prefix : {"nacre.", "rocksdb."}) {
    if (property.starts_with(prefix)) return property.ToString().substr(prefix.size());
  }
  return std::nullopt;
}

}  // namespace

bool OwnerControls::GetProperty(ColumnFamilyHandle* handle, const Slice& property,
                                std::string* value) {
  value->clear();
  ColumnFamily* family = nullptr;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value() || !db_->FindFamily(handle, &family).ok()) return false;
  DBProperties properties(db_, family);
  if (name == "levelstats") {
    *value = properties.LevelStats();
  } else if (name == "stats") {
    *value = properties.Stats();
  } else if (name == "space") {
    *value = properties.Space().ToString();
  } else if (name == "open.timeline") {
    MutexLock lock(&db_->mutex_);
    *value = db_->open_timeline_.ToString();
  } else if (name == "sstables") {
    *value = properties.Tables("\n");
  } else if (name == "options-statistics") {
    if (db_->options_.statistics != nullptr) *value = db_->options_.statistics->ToString();
  } else if (std::map<std::string, std::string> map; properties.Map(*name, &map)) {
    for (const auto& [key, number] : map) *value += key + ": " + number + "\n";
  } else {
    uint64_t number = 0;
    if (!properties.Number(*name, &number)) return false;
    *value = std::to_string(number);
  }
  return true;
}

bool OwnerControls::GetIntProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   uint64_t* value) {
  *value = 0;
  ColumnFamily* family = nullptr;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value() || !db_->FindFamily(handle, &family).ok()) return false;
  return DBProperties(db_, family).Number(*name, value);
}

bool OwnerControls::GetMapProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   std::map<std::string, std::string>* value) {
  value->clear();
  ColumnFamily* family = nullptr;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value() || !db_->FindFamily(handle, &family).ok()) return false;
  return DBProperties(db_, family).Map(*name, value);
}

bool OwnerControls::GetAggregatedIntProperty(const Slice& property, uint64_t* value) {
  *value = 0;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value()) return false;
  if (!DBProperties::IsOfFamily(*name)) {
    return DBProperties(db_, db_->default_family_.get()).Number(*name, value);
  }
  bool known = false;
  const std::shared_ptr<const ColumnFamilySet> families = db_->Families();
  for (const auto& [id, family] : families->by_id) {
    uint64_t of_family = 0;
    // A level may be beyond those of some families.
    if (!DBProperties(db_, family.get()).Number(*name, &of_family)) continue;
    known = true;
    *value += of_family;
  }
  return known;
}

Status OwnerControls::ResetStats() {
  DBCounters& counters = db_->counters_;
  for (std::atomic<uint64_t>* counter :
       {&counters.flushes, &counters.flush_bytes, &counters.compactions, &counters.trivial_moves,
        &counters.compaction_bytes_read, &counters.compaction_bytes_written,
        &counters.compaction_cpu_nanos, &counters.stall_nanos}) {
    counter->store(0, std::memory_order_relaxed);
  }
  return Status::OK();
}

}  // namespace nacre
