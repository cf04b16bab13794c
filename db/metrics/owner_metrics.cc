#include "db/metrics/owner_metrics.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/metrics/node_metrics.h"
#include "db/metrics/statistics_metrics.h"
#include "db/version/space_report.h"
#include "pool/databases.h"

namespace nacre {
namespace {

using metrics::Description;
using metrics::Kind;
using P = DatabaseParts&;

/// A number that one look at a part tells.
struct Figure {
  Description metric;
  uint64_t (*value)(P parts);
};

LogWriterStats LogStats(P parts) {
  return parts.writes.log() == nullptr ? LogWriterStats() : parts.writes.log()->stats();
}

constexpr Figure kFigures[] = {
    {{"nacre_db_sequence", "Sequence number of the latest write.", Kind::kGauge},
     [](P p) { return p.generations.sequencer()->LastPublished(); }},
    {{"nacre_db_flushes_total", "Flushes.", Kind::kCounter},
     [](P p) { return p.context.counters.flushes.load(); }},
    {{"nacre_db_flush_written_bytes_total", "Bytes of tables that flushes made.", Kind::kCounter},
     [](P p) { return p.context.counters.flush_bytes.load(); }},
    {{"nacre_db_near_data_flushes_total", "Flushes that nodes made from the log.", Kind::kCounter},
     [](P p) { return p.flushes.sites().near_data(); }},
    {{"nacre_db_compactions_total", "Compactions that merged tables.", Kind::kCounter},
     [](P p) { return p.context.counters.compactions.load(); }},
    {{"nacre_db_compaction_moves_total", "Compactions that only moved a table.", Kind::kCounter},
     [](P p) { return p.context.counters.trivial_moves.load(); }},
    {{"nacre_db_compaction_read_bytes_total", "Keys and values that compactions read.",
      Kind::kCounter},
     [](P p) { return p.context.counters.compaction_bytes_read.load(); }},
    {{"nacre_db_compaction_written_bytes_total", "Bytes of tables that compactions made.",
      Kind::kCounter},
     [](P p) { return p.context.counters.compaction_bytes_written.load(); }},
    {{"nacre_db_writes_delayed", "Whether writes are slowed down.", Kind::kGauge},
     [](P p) { return uint64_t{p.write_controller.stall() == Stall::kDelay}; }},
    {{"nacre_db_writes_stopped", "Whether writes wait.", Kind::kGauge},
     [](P p) { return uint64_t{p.write_controller.stall() == Stall::kStop}; }},
    {{"nacre_db_log_written_bytes_total", "Bytes that were appended to the log.", Kind::kCounter},
     [](P p) { return LogStats(p).bytes_appended; }},
    {{"nacre_db_log_writes_total", "Writes of the log, each to all replicas.", Kind::kCounter},
     [](P p) { return LogStats(p).writes_posted; }},
    {{"nacre_db_log_segments_total", "Segments of the log that were begun.", Kind::kCounter},
     [](P p) { return LogStats(p).segments; }},
    {{"nacre_db_log_segments_left_total",
      "Segments that ended early since a node of theirs was slow or gone.", Kind::kCounter},
     [](P p) { return LogStats(p).ensemble_changes; }},
    {{"nacre_db_log_readers", "Archives and others that want the log to be kept.", Kind::kGauge},
     [](P p) { return uint64_t{p.context.log_readers.List().size()}; }},
    {{"nacre_db_log_kept_bytes", "Bytes of the log, of one copy, that are kept for readers alone.",
      Kind::kGauge},
     [](P p) { return p.committer.kept_log_bytes(); }},
    {{"nacre_db_archived_sequence", "All up to this sequence can be restored from an archive.",
      Kind::kGauge},
     [](P p) { return p.context.log_readers.Restorable(); }},
    {{"nacre_db_manifest_edits_total", "Changes of the manifest.", Kind::kCounter},
     [](P p) { return p.committer.manifest()->counters().edits; }},
    {{"nacre_db_manifest_image_updates_total", "Updates of the manifest's image.", Kind::kCounter},
     [](P p) { return p.committer.manifest()->counters().image_updates; }},
    {{"nacre_db_quarantined_bytes", "Freed bytes that wait for nodes to say that a job has ended.",
      Kind::kGauge},
     [](P p) { return p.context.space.quarantined_bytes(); }},
    {{"nacre_db_repaired_bytes_total", "Bytes of fragments that were made anew.", Kind::kCounter},
     [](P p) { return p.context.counters.repaired_bytes.load(); }},
    {{"nacre_db_damaged_reads_total", "Reads that returned damaged bytes.", Kind::kCounter},
     [](P p) { return p.context.store.damaged_reads(); }},
    {{"nacre_db_scrubbed_bytes_total", "Bytes of fragments that were compared with checksums.",
      Kind::kCounter},
     [](P p) { return p.redundancy_keeper->table_scrub().bytes.load(); }},
    {{"nacre_db_scrub_passes_total", "Times that all tables were scrubbed.", Kind::kCounter},
     [](P p) { return p.redundancy_keeper->table_scrub().passes.load(); }},
    {{"nacre_db_scrub_damaged_fragments_total", "Fragments that scrubbing found damaged.",
      Kind::kCounter},
     [](P p) { return p.redundancy_keeper->table_scrub().fragments.load(); }},
    {{"nacre_db_scrub_damaged_copies_total",
      "Copies of log and manifest that scrubbing found damaged.", Kind::kCounter},
     [](P p) { return p.redundancy_keeper->metadata_scrub().damaged.load(); }},
    {{"nacre_db_scrub_healed_copies_total", "Those of them that are whole again.", Kind::kCounter},
     [](P p) { return p.redundancy_keeper->metadata_scrub().healed.load(); }},
    {{"nacre_db_slow_operations_total",
      "Operations that took at least slow_operation_threshold, if it is set.", Kind::kCounter},
     [](P p) { return p.context.slow_operations.count(); }},
    {{"nacre_db_events_dropped_total", "Events that listeners were too slow for.", Kind::kCounter},
     [](P p) { return p.context.events.dropped(); }},
};

/// As above, of times in nanoseconds.
constexpr Figure kTimes[] = {
    {{"nacre_db_write_stall_seconds_total", "Time that writers waited, over all of them.",
      Kind::kCounter},
     [](P p) { return p.context.counters.stall_nanos.load(); }},
    {{"nacre_db_compaction_cpu_seconds_total", "Processor time of compactions, wherever they ran.",
      Kind::kCounter},
     [](P p) { return p.context.counters.compaction_cpu_nanos.load(); }},
    {{"nacre_db_repair_cpu_seconds_total", "Processor time of repair, on nodes.", Kind::kCounter},
     [](P p) { return p.context.counters.repair_cpu_nanos.load(); }},
};

constexpr Description kFallbacks = {
    "nacre_db_flush_fallbacks_total",
    "Flushes, or parts of them, that this process made and no node, by reason.", Kind::kCounter};
constexpr Description kDelayedRate = {"nacre_db_delayed_write_bytes_per_second",
                                      "What writes are slowed down to; 0: they are not.",
                                      Kind::kGauge};

// ---- Families ----
constexpr Description kLevelTables = {"nacre_db_level_tables", "Tables of the level.",
                                      Kind::kGauge};
constexpr Description kLevelBytes = {
    "nacre_db_level_bytes", "Bytes of the level's tables, each counted once.", Kind::kGauge};
constexpr Description kMemTableBytes = {"nacre_db_memtable_bytes", "Memory of MemTables.",
                                        Kind::kGauge};
constexpr Description kMemTables = {"nacre_db_memtables", "MemTables, the one that is written too.",
                                    Kind::kGauge};
constexpr Description kPending = {"nacre_db_pending_compaction_bytes",
                                  "Bytes that compactions are behind by, estimated.", Kind::kGauge};

// ---- Tables ----
constexpr Description kIndexBytes = {
    "nacre_db_index_bytes", "Memory of this process for the indexes of tables.", Kind::kGauge};
constexpr Description kUnloaded = {"nacre_db_unloaded_tables",
                                   "Tables whose indexes are not in memory yet.", Kind::kGauge};
constexpr Description kDamaged = {"nacre_db_damaged_fragments",
                                  "Fragments known to be damaged and not made anew yet.",
                                  Kind::kGauge};
constexpr Description kSpace = {"nacre_db_space_bytes",
                                "Bytes of the nodes' memory, by what they hold.", Kind::kGauge};

// ---- Work ----
constexpr Description kRunningFlushes = {"nacre_db_running_flushes", "Flushes under way.",
                                         Kind::kGauge};
constexpr Description kRunningCompactions = {"nacre_db_running_compactions",
                                             "Compactions under way.", Kind::kGauge};
constexpr Description kSnapshots = {"nacre_db_snapshots", "Snapshots that are held.", Kind::kGauge};
constexpr Description kPoolFull = {"nacre_db_pool_full",
                                   "Whether nothing but deletions is written for want of room.",
                                   Kind::kGauge};
constexpr Description kFailing = {
    "nacre_db_failing", "Whether the latest work of the kind failed: flush, compaction or write.",
    Kind::kGauge};
constexpr Description kFenced = {
    "nacre_db_fenced", "Whether another process has taken the database over.", Kind::kGauge};
constexpr Description kLease = {"nacre_db_lease",
                                "Whether reads may be answered without asking the nodes again.",
                                Kind::kGauge};

// ---- Repair ----
constexpr Description kRepairState = {
    "nacre_db_repair_state", "1 for the state that repair is in, 0 for the others.", Kind::kGauge};
constexpr Description kRepairLeft = {"nacre_db_repair_left_bytes",
                                     "Bytes of fragments that are still to be made anew or moved.",
                                     Kind::kGauge};
constexpr Description kCacheCapacity = {"nacre_db_record_cache_capacity_bytes",
                                        "Room of the cache of records.", Kind::kGauge};
constexpr Description kCacheBytes = {"nacre_db_record_cache_bytes",
                                     "Bytes that the cache of records takes.", Kind::kGauge};

/// What a family, or all of a shard's, come to.
struct FamilySums {
  std::vector<std::pair<uint64_t, uint64_t>> levels;  ///< Tables and bytes.
  uint64_t memtables = 0;
  uint64_t memtable_bytes = 0;
  uint64_t pending_bytes = 0;

  void Add(const ColumnFamily& family, const ReadView& view) {
    const Version& version = *view.version;
    if (levels.size() < family.num_levels()) levels.resize(family.num_levels());
    for (int level = 0; level < version.depth(); ++level) {
      levels[static_cast<size_t>(level)].first += version.CountTables(level);
      levels[static_cast<size_t>(level)].second += version.LevelBytes(level);
    }
    memtables += view.memtables.size();
    for (const auto& memtable : view.memtables) memtable_bytes += memtable->MemoryUsage();
    pending_bytes += family.picker().PendingBytes(version);
  }
  void Collect(const metrics::Labels& labels, metrics::Page* page) const {
    for (size_t level = 0; level < levels.size(); ++level) {
      const metrics::Labels of_level = metrics::With(labels, "level", std::to_string(level));
      page->Add(kLevelTables, of_level, levels[level].first);
      page->Add(kLevelBytes, of_level, levels[level].second);
    }
    page->Add(kMemTables, labels, memtables);
    page->Add(kMemTableBytes, labels, memtable_bytes);
    page->Add(kPending, labels, pending_bytes);
  }
};

}  // namespace

OwnerMetrics::OwnerMetrics(DatabaseParts* parts, std::unique_ptr<metrics::Endpoint> endpoint)
    : parts_(parts), labels_(parts->context.name), endpoint_(std::move(endpoint)) {
  endpoint_->Show(this);
}

void OwnerMetrics::Collect(metrics::Page* page) const {
  for (const Figure& figure : kFigures) {
    page->Add(figure.metric, labels_.own, figure.value(*parts_));
  }
  for (const Figure& figure : kTimes) {
    page->Add(figure.metric, labels_.own, static_cast<double>(figure.value(*parts_)) * 1e-9);
  }
  CollectFamilies(page);
  CollectTables(page);
  CollectWork(page);
  CollectSpace(page);
  CollectRepair(page);
  CollectNodes(*parts_->context.client, labels_.whole, "owner", page);
  const Statistics* const statistics = parts_->context.options.statistics.get();
  if (statistics != nullptr) CollectStatistics(*statistics, labels_.whole, page);
}

void OwnerMetrics::CollectFamilies(metrics::Page* page) const {
  // Views hold their tables, and the guard what these have of their indexes.
  const EpochDomain::Guard guard(&parts_->context.epochs);
  FamilySums of_shard;
  for (const auto& [id, family] : parts_->state.Families()->by_id) {
    const std::shared_ptr<const ReadView> view = parts_->state.HoldView(*family);
    if (!labels_.shard.empty()) {
      of_shard.Add(*family, *view);
      continue;
    }
    FamilySums of_family;
    of_family.Add(*family, *view);
    of_family.Collect(metrics::With(labels_.own, "family", family->name()), page);
  }
  if (!labels_.shard.empty()) of_shard.Collect(labels_.own, page);
}

void OwnerMetrics::CollectTables(metrics::Page* page) const {
  uint64_t index_bytes = 0;
  uint64_t unloaded = 0;
  uint64_t damaged = 0;
  {
    const EpochDomain::Guard guard(&parts_->context.epochs);
    ForEachTable(parts_->state.Versions(), [&](const auto& table, int /*level*/) {
      index_bytes += table->MemoryUsage();
      unloaded += table->loaded() ? 0 : 1;
      damaged += static_cast<uint64_t>(std::popcount(table->damaged()));
    });
  }
  page->Add(kIndexBytes, labels_.own, index_bytes);
  page->Add(kUnloaded, labels_.own, unloaded);
  page->Add(kDamaged, labels_.own, damaged);
}

void OwnerMetrics::CollectWork(metrics::Page* page) const {
  Status flush_error;
  Status compaction_error;
  {
    MutexLock lock(&parts_->state.mutex);
    const BackgroundWork& work = parts_->state.work;
    flush_error = work.flush_error;
    compaction_error = parts_->state.CompactionFailure();
    page->Add(kRunningFlushes, labels_.own, uint64_t{work.flush_running});
    page->Add(kRunningCompactions, labels_.own,
              static_cast<uint64_t>(work.compactions_running + work.manual_compactions));
    page->Add(kSnapshots, labels_.own, uint64_t{parts_->state.snapshots.size()});
    page->Add(kPoolFull, labels_.own, work.pool_full);
  }
  const auto add_failing = [&](const char* work, const Status& status) {
    page->Add(kFailing, metrics::With(labels_.own, "work", work), !status.ok());
  };
  add_failing("flush", flush_error);
  add_failing("compaction", compaction_error);
  add_failing("write", parts_->write_controller.fault());
  const DatabaseContext& context = parts_->context;
  page->Add(kFenced, labels_.own, context.client->databases()->Fenced(context.database_id));
  page->Add(kLease, labels_.own, context.lease == nullptr || context.lease->Lasts());
  page->Add(kDelayedRate, labels_.own,
            parts_->write_controller.stall() == Stall::kDelay
                ? parts_->write_controller.DelayedRate()
                : 0);
  for (size_t i = 0; i < kFlushFallbacks; ++i) {
    const auto why = static_cast<FlushFallback>(i);
    page->Add(kFallbacks, metrics::With(labels_.own, "reason", std::string(NameOf(why))),
              parts_->flushes.sites().fallbacks(why));
  }
}

void OwnerMetrics::CollectSpace(metrics::Page* page) const {
  const SpaceReport space =
      MakeSpaceReport(parts_->state.Versions(), parts_->context.space,
                      parts_->context.copy_bytes.ByNode(), parts_->context.client->node_count());
  for (const SpaceField& field : SpaceFields()) {
    constexpr std::string_view kUnit = "-bytes";
    const std::string_view part = field.name.substr(0, field.name.size() - kUnit.size());
    page->Add(kSpace, metrics::With(labels_.own, "part", std::string(part)), field.value(space));
  }
  const RecordCache* const cache = parts_->context.record_cache.get();
  page->Add(kCacheCapacity, labels_.own, uint64_t{cache == nullptr ? 0 : cache->capacity()});
  page->Add(kCacheBytes, labels_.own, uint64_t{cache == nullptr ? 0 : cache->used()});
}

void OwnerMetrics::CollectRepair(metrics::Page* page) const {
  using State = pool::RepairProgress::State;
  const pool::RepairProgress repair = parts_->redundancy_keeper->repairer().progress();
  for (const State state : {State::kIdle, State::kRunning, State::kPaused, State::kWaiting}) {
    page->Add(kRepairState, metrics::With(labels_.own, "state", ToString(state)),
              state == repair.state);
  }
  page->Add(kRepairLeft, labels_.own,
            repair.bytes_total - std::min(repair.bytes_total, repair.bytes_done));
}

}  // namespace nacre
