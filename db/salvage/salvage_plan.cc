#include "db/salvage/salvage_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/manifest/state_record.h"
#include "pool/reports.h"
#include "pool/store/table_store.h"
#include "pool/wire/node_stats.h"
#include "table/format/extent.h"
#include "table/format/fragment_checksums.h"
#include "table/seal/sealed_extent.h"
#include "util/codes/crc32c.h"

namespace nacre {
namespace {

/// Numbers and ids of which no trace was found are not given anew: there are fewer than that.
constexpr uint64_t kUnseenMax = 1 << 20;

class Planner {
 public:
  Planner(pool::PoolClient* client, uint64_t database_id, SalvagePlan* plan)
      : client_(client),
        database_id_(database_id),
        plan_(plan),
        store_(client, pool::LocalMemory()) {}

  Status Run(const SlabsByNode& slabs, const SalvageDefaults& defaults) {
    keys_ = defaults.keys.get();
    NACRE_RETURN_IF_ERROR(ScanMemory(client_, database_id_, slabs, &scan_));
    plan_->bytes_scanned = scan_.bytes;
    plan_->notes = std::move(scan_.notes);
    if (scan_.unfinished > 0) {
      plan_->notes.push_back(fmt::format(
          "{} heads of fragments have no tail: not finished, or overwritten", scan_.unfinished));
    }
    for (const FoundTable& table : scan_.tables) {
      if (!table.fragments.empty()) Judge(table);
    }
    NACRE_RETURN_IF_ERROR(missing_key_);
    std::vector<TableLineage> states;
    for (const FoundState& found : scan_.states) states.push_back(found.state);
    const TableChoice choice = ChooseTables(candidates_, states);
    NACRE_RETURN_IF_ERROR(TakeTables(choice, defaults));
    NACRE_RETURN_IF_ERROR(TakeLog(choice));
    return TakeNumbers(choice, slabs);
  }

 private:
  /// For each number the fragment with the least damage; null if there is none.
  static std::vector<const FoundFragment*> Best(const FoundTable& table) {
    std::vector<const FoundFragment*> best(
        static_cast<size_t>(table.head.placement.redundancy.fragments()));
    for (const FoundFragment& fragment : table.fragments) {
      const FoundFragment*& now = best[fragment.number];
      if (now == nullptr || fragment.damaged_chunks() < now->damaged_chunks()) now = &fragment;
    }
    return best;
  }

  /// Whether each row has as many sound chunks as it needs. Columns without a chunk count as sound.
  static bool Readable(const TableMeta& meta, const std::vector<const FoundFragment*>& fragments) {
    size_t rows = 0;
    for (const FoundFragment* fragment : fragments) {
      if (fragment != nullptr) rows = std::max(rows, fragment->sound.size());
    }
    for (size_t row = 0; row < rows; ++row) {
      const auto sound =
          std::count_if(fragments.begin(), fragments.end(), [row](const FoundFragment* fragment) {
            return fragment != nullptr && (row >= fragment->sound.size() || fragment->sound[row]);
          });
      if (sound < meta.placement.redundancy.data) return false;
    }
    return rows > 0;
  }

  void Judge(const FoundTable& table) {
    const std::vector<const FoundFragment*> fragments = Best(table);
    SalvageCandidate candidate;
    candidate.meta = table.head;
    for (size_t i = 0; i < fragments.size(); ++i) {
      ExtentAddr& extent = candidate.meta.placement.fragments[i];
      if (fragments[i] == nullptr) {
        extent.start = RemoteAddr();
        extent.start.node = kLostNode;
      } else {
        extent = fragments[i]->extent;
        if (fragments[i]->damaged_chunks() == 0) plan_->found.push_back(extent);
      }
    }
    Status status = Readable(table.head, fragments)
                        ? ReadEnd(&candidate)
                        : Status::Corruption("too little of it is there");
    if (status.ok()) return candidates_.push_back(std::move(candidate));
    // A table whose key is not at hand is not lost.
    if (status.IsInvalidArgument()) missing_key_ = status;
    plan_->incomplete.push_back(
        fmt::format("table {} ({} of {} fragments, {} needed): {}", table.head.id,
                    std::count_if(fragments.begin(), fragments.end(),
                                  [](const auto* f) { return f != nullptr; }),
                    fragments.size(), table.head.placement.redundancy.data, status.message()));
  }

  /// What heads have no room for.
  Status ReadEnd(SalvageCandidate* candidate) {
    const Placement placement = candidate->meta.placement;
    NACRE_RETURN_IF_ERROR(OpenSeal(keys_, &candidate->meta));
    const std::shared_ptr<Extent> extent = PlainExtent(
        candidate->meta, store_.OpenExtent(candidate->meta.id, placement, candidate->meta.size));
    TableMeta footer;
    NACRE_RETURN_IF_ERROR(ReadFooter(extent.get(), &footer));
    NACRE_RETURN_IF_ERROR(OpenSeal(keys_, &footer));
    if (footer.id != candidate->meta.id || footer.database_id != database_id_) {
      return Status::Corruption("its footer is that of another table");
    }
    candidate->meta = std::move(footer);
    candidate->meta.placement = placement;
    const TableSection& section = candidate->meta.lineage;
    for (DamagedRead damage;;) {
      const std::unique_ptr<PendingRead> read = extent->StartRead(section.offset, section.length);
      Slice bytes;
      NACRE_RETURN_IF_ERROR(read->Await(&bytes));
      if (Crc32c(bytes.data(), bytes.size()) == section.crc) {
        return DecodeTableLineage(bytes, &candidate->lineage);
      }
      if (!damage.ReadAgain(extent.get(), section.offset, section.length)) {
        return Status::Corruption("its lineage does not match its checksum");
      }
    }
  }

  Status TakeTables(const TableChoice& choice, const SalvageDefaults& defaults) {
    ManifestState& state = plan_->state;
    state.comparator = defaults.comparator;
    state.num_levels = defaults.num_levels;
    if (choice.newest != SIZE_MAX) {
      const SalvageCandidate& newest = candidates_[choice.newest];
      state.comparator = newest.meta.comparator;
      plan_->chunk_size = newest.meta.chunk_size;
    }
    if (choice.num_levels != 0) state.num_levels = choice.num_levels;
    if (!choice.comparator.empty()) state.comparator = choice.comparator;
    state.families = choice.families;
    state.next_family = choice.next_family;
    if (state.comparator.empty() || state.num_levels == 0) {
      return Status::InvalidArgument(
          "no table is left that tells the comparator and the number of levels: they have to be "
          "given");
    }
    if (candidates_.empty()) plan_->parity = 1;
    for (const SalvageCandidate& candidate : candidates_) {
      plan_->parity = std::max<int>(plan_->parity, candidate.meta.placement.redundancy.parity);
    }
    for (const auto& [i, level] : choice.chosen) {
      const TableMeta& meta = candidates_[i].meta;
      const auto family = state.families.find(meta.family);
      const std::string& comparator =
          family != state.families.end() ? family->second.comparator : state.comparator;
      if (meta.comparator != comparator || level >= state.LevelsOf(meta.family)) {
        return Status::Corruption(fmt::format(
            "table {} of column family {} has comparator {} and level {}, others {} "
            "and {} levels",
            meta.id, meta.family, meta.comparator, level, comparator, state.LevelsOf(meta.family)));
      }
      state.tables[meta.id] = {level, meta};
      plan_->records += meta.entries;
      plan_->table_bytes += meta.size;
    }
    plan_->dead_tables = candidates_.size() - choice.chosen.size();
    plan_->lost = choice.lost;
    plan_->notes.insert(plan_->notes.end(), choice.notes.begin(), choice.notes.end());
    return Status::OK();
  }

  Status TakeLog(const TableChoice& choice) {
    std::map<NodeId, Stretches> occupied;
    for (const auto& [id, table] : plan_->state.tables) {
      for (const ExtentAddr& extent : table.second.placement.fragments) {
        const uint64_t start = extent.start.offset;
        if (extent.start.node != kLostNode) {
          occupied[static_cast<NodeId>(extent.start.node)][start] = start + extent.length;
        }
      }
    }
    FoundLog log;
    NACRE_RETURN_IF_ERROR(FindLog(client_, database_id_, scan_.log_heads, choice.flushed,
                                  scan_.memory, occupied, &log));
    for (const LogSegment& segment : log.segments) plan_->state.segments[segment.number] = segment;
    if (choice.record != SIZE_MAX) KeepRecord(scan_.states[choice.record]);
    plan_->state.next_segment = log.last_number + kUnseenMax;
    plan_->log_records = log.records;
    plan_->log_bytes = log.bytes;
    plan_->notes.insert(plan_->notes.end(), log.notes.begin(), log.notes.end());
    return Status::OK();
  }

  /// Keeps it once on each node.
  void KeepRecord(const FoundState& found) {
    LogSegment& record = plan_->state.segments[kStateRecordNumber];
    record.number = kStateRecordNumber;
    for (const ExtentAddr& copy : found.copies) {
      if (!HasCopyOn(record, [&](NodeId node) { return node == copy.start.node; })) {
        record.copies.push_back(copy);
      }
    }
  }

  Status TakeNumbers(const TableChoice& choice, const SlabsByNode& slabs) {
    ManifestState& state = plan_->state;
    state.database_id = database_id_;
    state.version = choice.last_version + kUnseenMax;
    state.next_table_id = choice.last_table_id + kUnseenMax;
    state.last_sequence = choice.flushed;
    Status status = Status::Unavailable("no node has memory of the database");
    for (const auto& [node, offsets] : slabs) {
      pool::NodeStats stats;
      status = pool::GetStats(client_, node, &stats);
      if (!status.ok()) continue;
      state.nodes[node] = stats.instance_id;
      state.slab_bytes = stats.slab_bytes;
    }
    if (plan_->chunk_size == 0) plan_->chunk_size = kDefaultChunkBytes;
    return state.slab_bytes != 0 ? Status::OK() : status;
  }

  static constexpr uint64_t kDefaultChunkBytes = 256 << 10;

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  SalvagePlan* const plan_;
  const TableKeys* keys_ = nullptr;
  Status missing_key_;
  pool::TableStore store_;
  MemoryScan scan_;
  std::vector<SalvageCandidate> candidates_;
};

}  // namespace

Status MakeSalvagePlan(pool::PoolClient* client, uint64_t database_id, const SlabsByNode& slabs,
                       const SalvageDefaults& defaults, SalvagePlan* plan) {
  *plan = SalvagePlan();
  return Planner(client, database_id, plan).Run(slabs, defaults);
}

}  // namespace nacre
