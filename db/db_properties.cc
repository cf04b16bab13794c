#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "db/database_parts.h"
#include "db/family/family_properties.h"
#include "db/owner_controls.h"
#include "db/version/space_report.h"
#include "nacre/statistics.h"
#include "pool/node_pace_report.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/uri.h"

namespace nacre {

/// What `GetProperty` answers about all of a database; family_properties.h has the rest.
class DBProperties {
 public:
  explicit DBProperties(DatabaseParts* parts) : parts_(parts) {}

  /// Those of `family`, which the caller keeps.
  FamilyProperties OfFamily(const ColumnFamily& family) const {
    MutexLock lock(&parts_->state.mutex);
    return {family, parts_->generations.sequencer()->generation()};
  }
  bool Number(std::string_view name, uint64_t* value) const;
  bool Map(std::string_view name, std::map<std::string, std::string>* value) const;
  /// Those of the family, or else of all of the database.
  bool Number(const FamilyProperties& family, std::string_view name, uint64_t* value) const {
    return FamilyNumber(family, name, value) || Number(name, value);
  }
  bool Map(const FamilyProperties& family, std::string_view name,
           std::map<std::string, std::string>* value) const {
    return family.Map(name, value) || Map(name, value);
  }
  bool FamilyNumber(const FamilyProperties& family, std::string_view name, uint64_t* value) const {
    const EpochDomain::Guard guard(&parts_->context.epochs);
    return family.Number(name, value);
  }
  std::string Stats(const FamilyProperties& family) const;
  SpaceReport Space() const {
    return MakeSpaceReport(parts_->state.Versions(), parts_->context.space,
                           parts_->context.copy_bytes.ByNode(),
                           parts_->context.client->node_count());
  }

 private:
  struct Entry;

  template <typename Function>
  uint64_t SumOverTables(Function function) const {
    uint64_t sum = 0;
    ForEachTable(parts_->state.Versions(),
                 [&](const auto& table, int /*level*/) { sum += function(*table); });
    return sum;
  }
  uint64_t SumOverNodes(uint64_t pool::NodeStats::*field) const {
    uint64_t sum = 0;
    for (int node = 0; node < parts_->context.client->node_count(); ++node) {
      pool::NodeStats stats;
      // A node that is lost counts for nothing.
      const Status status =
          pool::GetStats(parts_->context.client, static_cast<NodeId>(node), &stats);
      if (status.ok()) sum += stats.*field;
    }
    return sum;
  }
  uint64_t SlowNodes() const {
    const auto nodes = pool::ReportPace(*parts_->context.client);
    return static_cast<uint64_t>(std::count_if(nodes.begin(), nodes.end(), [](auto& node) {
      return node.state == pool::NodePaceReport::State::kSlow;
    }));
  }
  uint64_t LateWaits() const {
    uint64_t sum = 0;
    for (const auto& node : pool::ReportPace(*parts_->context.client)) sum += node.late;
    return sum;
  }
  uint64_t DelayedWriteRate() const {
    if (parts_->write_controller.stall() != Stall::kDelay) return 0;
    return parts_->write_controller.DelayedRate();
  }
  uint64_t UsedBytes() const {
    const SpaceReport space = Space();
    return space.stored_bytes() + space.unlinked_bytes - space.lost_bytes;
  }
  uint64_t IndexBytes() const {
    EpochDomain::Guard guard(&parts_->context.epochs);
    return SumOverTables([](const TableHandle& table) { return table.MemoryUsage(); });
  }
  /// 0 without one.
  uint64_t OfRecordCache(uint64_t (*number)(const RecordCache& cache)) const {
    const RecordCache* const cache = parts_->context.record_cache.get();
    return cache == nullptr ? 0 : number(*cache);
  }
  /// Indexes, the cache of records, MemTables and the spare blocks of MemTables.
  uint64_t ComputeBytes() const;
  LogWriterStats LogStats() const {
    return parts_->writes.log() == nullptr ? LogWriterStats() : parts_->writes.log()->stats();
  }

  DatabaseParts* const parts_;
};

uint64_t DBProperties::ComputeBytes() const {
  uint64_t bytes = IndexBytes() + parts_->generations.SpareBytes();
  bytes += OfRecordCache([](const auto& cache) { return uint64_t{cache.used()}; });
  MutexLock lock(&parts_->state.mutex);
  for (const auto& [id, family] : parts_->state.families->by_id) {
    for (const auto& memtable : family->current_view()->memtables) bytes += memtable->MemoryUsage();
  }
  return bytes;
}

struct DBProperties::Entry {
  std::string_view name;
  uint64_t (*number)(const DBProperties&);
};

bool DBProperties::Number(std::string_view name, uint64_t* value) const {
  using P = const DBProperties&;
  static constexpr Entry kNumbers[] = {
      {"num-running-flushes",
       [](P p) {
         MutexLock lock(&p.parts_->state.mutex);
         return uint64_t{p.parts_->state.work.flush_running};
       }},
      {"num-running-compactions",
       [](P p) {
         MutexLock lock(&p.parts_->state.mutex);
         return static_cast<uint64_t>(p.parts_->state.work.compactions_running +
                                      p.parts_->state.work.manual_compactions);
       }},
      {"num-snapshots",
       [](P p) {
         MutexLock lock(&p.parts_->state.mutex);
         return uint64_t{p.parts_->state.snapshots.size()};
       }},
      {"oldest-snapshot-sequence",
       [](P p) {
         MutexLock lock(&p.parts_->state.mutex);
         return p.parts_->state.snapshots.Oldest();
       }},
      {"slow-nodes", [](P p) { return p.SlowNodes(); }},
      {"waits.late", [](P p) { return p.LateWaits(); }},
      {"reads.hedged", [](P p) { return p.parts_->context.client->hedged_reads(); }},
      {"jobs.left", [](P p) { return p.parts_->context.client->jobs_left(); }},
      {"events.dropped", [](P p) { return p.parts_->context.events.dropped(); }},
      {"actual-delayed-write-rate", [](P p) { return p.DelayedWriteRate(); }},
      {"is-write-stopped",
       [](P p) { return uint64_t{p.parts_->write_controller.stall() == Stall::kStop}; }},
      {"num-unloaded-tables",
       [](P p) {
         return p.SumOverTables([](const auto& table) { return uint64_t{!table.loaded()}; });
       }},
      {"space.used-bytes", [](P p) { return p.UsedBytes(); }},
      {"space.quarantined-bytes", [](P p) { return p.parts_->context.space.quarantined_bytes(); }},
      {"space.compute-bytes", [](P p) { return p.ComputeBytes(); }},
      {"space.index-bytes", [](P p) { return p.IndexBytes(); }},
      {"space.index-budget-used",
       [](P p) {
         return p.parts_->context.point_tiers.memory() == nullptr
                    ? 0
                    : p.parts_->context.point_tiers.memory()->used();
       }},
      {"record-cache.capacity",
       [](P p) {
         return p.OfRecordCache([](const auto& cache) { return uint64_t{cache.capacity()}; });
       }},
      {"record-cache.bytes",
       [](P p) {
         return p.OfRecordCache([](const auto& cache) { return uint64_t{cache.used()}; });
       }},
      {"record-cache.hits",
       [](P p) { return p.OfRecordCache([](const auto& cache) { return cache.counts().hits; }); }},
      {"record-cache.misses",
       [](P p) {
         return p.OfRecordCache([](const auto& cache) { return cache.counts().misses; });
       }},
      {"network.compute-read",
       [](P p) { return p.parts_->context.client->device()->traffic().bytes_read; }},
      {"network.compute-written",
       [](P p) { return p.parts_->context.client->device()->traffic().bytes_written; }},
      {"network.memnode-read", [](P p) { return p.SumOverNodes(&pool::NodeStats::bytes_read); }},
      {"network.memnode-written",
       [](P p) { return p.SumOverNodes(&pool::NodeStats::bytes_written); }},
      {"flush.near-data", [](P p) { return p.parts_->flushes.sites().near_data(); }},
      {"flush.fallbacks", [](P p) { return p.parts_->flushes.sites().fallbacks(); }},
      {"compaction.bytes-read",
       [](P p) { return p.parts_->context.counters.compaction_bytes_read.load(); }},
      {"compaction.bytes-written",
       [](P p) { return p.parts_->context.counters.compaction_bytes_written.load(); }},
      {"compaction.cpu-nanos",
       [](P p) { return p.parts_->context.counters.compaction_cpu_nanos.load(); }},
      {"encoding.data-bytes",
       [](P p) { return p.parts_->context.store.encoding_work().data_bytes; }},
      {"encoding.cpu-nanos", [](P p) { return p.parts_->context.store.encoding_work().cpu_nanos; }},
      {"stall-nanos", [](P p) { return p.parts_->context.counters.stall_nanos.load(); }},
      {"damage.reads", [](P p) { return p.parts_->context.store.damaged_reads(); }},
      {"damage.fragments",
       [](P p) {
         return p.SumOverTables([](const auto& table) {
           return static_cast<uint64_t>(std::popcount(table.damaged()));
         });
       }},
      {"repair.tables-left",
       [](P p) { return p.parts_->redundancy_keeper->repairer().TablesToRepair(); }},
      {"repair.bytes-done", [](P p) { return p.parts_->context.counters.repaired_bytes.load(); }},
      {"repair.cpu-nanos", [](P p) { return p.parts_->context.counters.repair_cpu_nanos.load(); }},
      {"scrub.bytes", [](P p) { return p.parts_->redundancy_keeper->table_scrub().bytes.load(); }},
      {"scrub.damaged-fragments",
       [](P p) { return p.parts_->redundancy_keeper->table_scrub().fragments.load(); }},
      {"scrub.passes",
       [](P p) { return p.parts_->redundancy_keeper->table_scrub().passes.load(); }},
      {"scrub.copy-bytes",
       [](P p) { return p.parts_->redundancy_keeper->metadata_scrub().bytes.load(); }},
      {"scrub.copy-passes",
       [](P p) { return p.parts_->redundancy_keeper->metadata_scrub().passes.load(); }},
      {"scrub.damaged-copies",
       [](P p) { return p.parts_->redundancy_keeper->metadata_scrub().damaged.load(); }},
      {"scrub.healed-copies",
       [](P p) { return p.parts_->redundancy_keeper->metadata_scrub().healed.load(); }},
      {"manifest.edits", [](P p) { return p.parts_->committer.manifest()->counters().edits; }},
      {"manifest.image-updates",
       [](P p) { return p.parts_->committer.manifest()->counters().image_updates; }},
      {"manifest.delta-bytes",
       [](P p) { return p.parts_->committer.manifest()->counters().delta_bytes; }},
      {"manifest.image-bytes",
       [](P p) { return p.parts_->committer.manifest()->counters().image_bytes; }},
      {"log.bytes", [](P p) { return p.LogStats().bytes_appended; }},
      {"log.writes", [](P p) { return p.LogStats().writes_posted; }},
      {"log.segments", [](P p) { return uint64_t{p.LogStats().segments}; }},
      {"log.segments-left", [](P p) { return uint64_t{p.LogStats().ensemble_changes}; }},
      {"log.kept-bytes", [](P p) { return p.parts_->committer.kept_log_bytes(); }},
      {"log.readers", [](P p) { return uint64_t{p.parts_->context.log_readers.List().size()}; }},
      {"slow-operations", [](P p) { return p.parts_->context.slow_operations.count(); }},
      {"archived-sequence", [](P p) { return p.parts_->context.log_readers.Restorable(); }},
  };
  constexpr std::string_view kFallback = "flush.fallback.";
  for (size_t i = 0; i < kFlushFallbacks && name.starts_with(kFallback); ++i) {
    const auto why = static_cast<FlushFallback>(i);
    if (name.substr(kFallback.size()) != NameOf(why)) continue;
    *value = parts_->flushes.sites().fallbacks(why);
    return true;
  }
  constexpr std::string_view kSpace = "space.";
  for (const SpaceField& field : SpaceFields()) {
    if (!name.starts_with(kSpace) || name.substr(kSpace.size()) != field.name) continue;
    *value = field.value(Space());
    return true;
  }
  for (const Entry& entry : kNumbers) {
    if (entry.name != name) continue;
    *value = entry.number(*this);
    return true;
  }
  return false;
}

bool DBProperties::Map(std::string_view name, std::map<std::string, std::string>* value) const {
  const auto add = [&](const std::string& key, uint64_t number) {
    (*value)[key] = std::to_string(number);
  };
  if (name == "dbstats") {
    const DBCounters& counters = parts_->context.counters;
    add("flushes", counters.flushes.load());
    add("flush.bytes-written", counters.flush_bytes.load());
    add("compactions", counters.compactions.load());
    add("compaction.moves", counters.trivial_moves.load());
    add("compaction.bytes-read", counters.compaction_bytes_read.load());
    add("compaction.bytes-written", counters.compaction_bytes_written.load());
    add("compaction.cpu-nanos", counters.compaction_cpu_nanos.load());
    add("stall-nanos", counters.stall_nanos.load());
    return true;
  }
  if (name == "nodes") {
    for (const pool::NodePaceReport& node : pool::ReportPace(*parts_->context.client)) {
      // One that was lost may have a successor at its address.
      (*value)[fmt::format("{} {}", node.node, node.address)] = node.ToString();
    }
    return true;
  }
  if (name == "encryption-keys") {
    std::map<std::string, uint64_t> bytes;
    for (const auto& version : parts_->state.Versions()) {
      for (int level = 0; level < version->num_levels(); ++level) {
        for (const auto& table : version->tables(level)) {
          // No key has such an ID.
          bytes[table->meta().sealed() ? table->meta().seal->key_id() : "(none)"] += table->size();
        }
      }
    }
    for (const auto& [key, of_key] : bytes) add(key, of_key);
    return true;
  }
  if (name == "log.readers") {
    for (const pool::LogReader& reader : parts_->context.log_readers.List()) {
      (*value)[fmt::format("{:016x}", reader.reader)] =
          fmt::format("has all up to {}, restorable up to {}, heard of {} ms ago", reader.sequence,
                      reader.restorable, reader.age_nanos / 1'000'000);
    }
    return true;
  }
  if (name == "slow-operations") {
    const uint64_t now = parts_->context.clock->NowNanos();
    // Their numbers keep them in their order.
    size_t number = 0;
    for (const SlowOperations::Line& line : parts_->context.slow_operations.Latest()) {
      (*value)[fmt::format("{:03}", number++)] = fmt::format(
          "{:.1f} s ago: {}", static_cast<double>(now - line.at_nanos) / 1e9, line.text);
    }
    return true;
  }
  if (name == "space") {
    const SpaceReport space = Space();
    for (const SpaceField& field : SpaceFields()) add(std::string(field.name), field.value(space));
    return true;
  }
  return false;
}

std::string DBProperties::Stats(const FamilyProperties& family) const {
  const DBCounters& counters = parts_->context.counters;
  const auto seconds = [](uint64_t nanos) { return static_cast<double>(nanos) / 1e9; };
  const SpaceReport space = Space();
  return family.LevelStats() +
         fmt::format("MemTables: {} waiting to be flushed, {} in all\n", family.FullMemTables(),
                     FormatBytes(family.MemTableBytes())) +
         fmt::format("Flushes: {}, {} written, {} near the data\n", counters.flushes.load(),
                     FormatBytes(counters.flush_bytes.load()),
                     parts_->flushes.sites().near_data()) +
         fmt::format(
             "Compactions: {} and {} moves, {} read, {} written, {:.2f} s of executor CPU\n",
             counters.compactions.load(), counters.trivial_moves.load(),
             FormatBytes(counters.compaction_bytes_read.load()),
             FormatBytes(counters.compaction_bytes_written.load()),
             seconds(counters.compaction_cpu_nanos.load())) +
         fmt::format("Stalls: {:.3f} s over all writers\n", seconds(counters.stall_nanos.load())) +
         fmt::format(
             "Nodes: {} slow; {} waits were late, {} reads hedged, {} log segments and {} jobs "
             "left\n",
             SlowNodes(), LateWaits(), parts_->context.client->hedged_reads(),
             LogStats().ensemble_changes, parts_->context.client->jobs_left()) +
         fmt::format("Space: {} of user data in tables, {} stored, {} leased\n",
                     FormatBytes(space.user_bytes), FormatBytes(space.stored_bytes()),
                     FormatBytes(space.leased_bytes)) +
         fmt::format("Compute node: {} of indexes, {} with MemTables and their spare blocks\n",
                     FormatBytes(IndexBytes()), FormatBytes(ComputeBytes()));
}

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
  if (!name.has_value() || !parts_->state.FindFamily(handle, &family).ok()) return false;
  const DBProperties database(parts_);
  const FamilyProperties of_family = database.OfFamily(*family);
  if (name == "levelstats") {
    *value = of_family.LevelStats();
  } else if (name == "stats") {
    *value = database.Stats(of_family);
  } else if (name == "space") {
    *value = database.Space().ToString();
  } else if (name == "open.timeline") {
    MutexLock lock(&parts_->state.mutex);
    *value = parts_->open_timeline.ToString();
  } else if (name == "sstables") {
    *value = of_family.Tables();
  } else if (name == "options-statistics") {
    if (parts_->context.options.statistics != nullptr)
      *value = parts_->context.options.statistics->ToString();
  } else if (std::map<std::string, std::string> map; database.Map(of_family, *name, &map)) {
    for (const auto& [key, number] : map) *value += fmt::format("{}: {}\n", key, number);
  } else {
    uint64_t number = 0;
    if (!database.Number(of_family, *name, &number)) return false;
    *value = std::to_string(number);
  }
  return true;
}

bool OwnerControls::GetIntProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   uint64_t* value) {
  *value = 0;
  ColumnFamily* family = nullptr;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value() || !parts_->state.FindFamily(handle, &family).ok()) return false;
  const DBProperties database(parts_);
  return database.Number(database.OfFamily(*family), *name, value);
}

bool OwnerControls::GetMapProperty(ColumnFamilyHandle* handle, const Slice& property,
                                   std::map<std::string, std::string>* value) {
  value->clear();
  ColumnFamily* family = nullptr;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value() || !parts_->state.FindFamily(handle, &family).ok()) return false;
  const DBProperties database(parts_);
  return database.Map(database.OfFamily(*family), *name, value);
}

bool OwnerControls::GetAggregatedIntProperty(const Slice& property, uint64_t* value) {
  *value = 0;
  const std::optional<std::string> name = NameOf(property);
  if (!name.has_value()) return false;
  const DBProperties database(parts_);
  bool known = false;
  const std::shared_ptr<const ColumnFamilySet> families = parts_->state.Families();
  for (const auto& [id, family] : families->by_id) {
    uint64_t of_family = 0;
    // A level may be beyond those of some families.
    if (!database.FamilyNumber(database.OfFamily(*family), *name, &of_family)) continue;
    known = true;
    *value += of_family;
  }
  return known || database.Number(*name, value);
}

Status OwnerControls::ResetStats() {
  DBCounters& counters = parts_->context.counters;
  for (std::atomic<uint64_t>* counter :
       {&counters.flushes, &counters.flush_bytes, &counters.compactions, &counters.trivial_moves,
        &counters.compaction_bytes_read, &counters.compaction_bytes_written,
        &counters.compaction_cpu_nanos, &counters.stall_nanos}) {
    counter->store(0, std::memory_order_relaxed);
  }
  return Status::OK();
}

}  // namespace nacre
