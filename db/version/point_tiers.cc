#include "db/version/point_tiers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <unordered_set>
#include <utility>

#include "util/log.h"

namespace nacre {
namespace {

using Kind = PointTier::Kind;

/// Adds `table` to the changes if it does not have this tier; true if it has.
bool Check(const std::shared_ptr<TableHandle>& table, Kind kind, TierChanges* changes) {
  if (!table->loaded()) return false;
  if (table->tier()->kind() == kind) return true;
  (kind == Kind::kIndex ? changes->to_indexes : changes->to_filters).push_back(table);
  return false;
}

void CheckChunk(const TableChunk& chunk, Kind kind, TierChanges* changes) {
  if (chunk.IsKnownToHave(kind)) return;
  chunk.ForgetTier();
  bool all = true;
  for (const auto& table : chunk.tables()) all = Check(table, kind, changes) && all;
  if (all) chunk.NoteTier(kind);
}

/// Tables that get their indexes by their use, and the chunks that they are in.
struct ChosenTables {
  std::unordered_set<const TableHandle*> tables;
  std::unordered_set<const TableChunk*> chunks;
};

struct Candidate {
  LevelIterator place;
  double worth = 0;  ///< For each byte.
};

/// The lookups that an index is worth, with the benefit of the doubt to one that is here already.
/// Samples are counts of chance events, so two standard deviations are their square root, twice.
double WorthOf(const TableUse& use, bool has_index) {
  constexpr double kUnused = 4;  // As many samples may come to a table that is hardly used.
  const double doubt = 2 * std::sqrt(use.lookups);
  if (has_index) return use.lookups + doubt + kUnused;
  const double proved = use.lookups - doubt;
  return proved > kUnused ? proved : 0;
}

ChosenTables ChooseByUse(const VersionList& versions, const std::vector<TableUse>& uses,
                         uint64_t* left, TierChanges* changes) {
  std::vector<Candidate> candidates;
  for (const TableUse& use : uses) {
    const auto place = LocateTable(versions, *use.table);
    if (!place.has_value() || !(**place)->loaded()) continue;
    const TableHandle& table = ***place;
    const double worth = WorthOf(use, table.tier()->kind() == Kind::kIndex);
    const double extra = static_cast<double>(std::max<uint64_t>(IndexExtraBytes(table.meta()), 1));
    if (worth > 0) candidates.push_back({*place, worth / extra});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
  ChosenTables chosen;
  for (const Candidate& candidate : candidates) {
    const std::shared_ptr<TableHandle>& table = *candidate.place;
    const uint64_t extra = IndexExtraBytes(table->meta());
    if (extra > *left) continue;
    *left -= extra;
    Check(table, Kind::kIndex, changes);
    chosen.tables.insert(table.get());
    chosen.chunks.insert(candidate.place.chunk()->get());
  }
  return chosen;
}

/// Gives indexes to the other tables of a chunk in their order, while there is room.
void FillChunk(const TableChunk& chunk, const ChosenTables& chosen, uint64_t* left,
               TierChanges* changes) {
  chunk.ForgetTier();
  for (const auto& table : chunk.tables()) {
    if (chosen.tables.contains(table.get())) continue;
    const uint64_t extra = IndexExtraBytes(table->meta());
    const bool fits = extra <= *left;
    if (fits) *left -= extra;
    Check(table, fits ? Kind::kIndex : Kind::kBloom, changes);
  }
}

}  // namespace

TierChanges PlanPointTiers(const VersionList& versions, uint64_t share,
                           const std::vector<TableUse>& uses) {
  uint64_t filters = 0;
  uint64_t all_extra = 0;
  ForEachChunk(versions, [&](const TableChunk& chunk, int /*level*/) {
    filters += chunk.sums().filter_bytes;
    all_extra += chunk.sums().index_extra_bytes;
  });
  uint64_t left = share - std::min(share, filters);
  TierChanges changes;
  ChosenTables chosen;
  if (all_extra > left) chosen = ChooseByUse(versions, uses, &left, &changes);
  ForEachChunk(versions, [&](const TableChunk& chunk, int /*level*/) {
    const TableSums& sums = chunk.sums();
    if (chosen.chunks.contains(&chunk)) {
      FillChunk(chunk, chosen, &left, &changes);
    } else if (sums.index_extra_bytes <= left) {
      left -= sums.index_extra_bytes;
      CheckChunk(chunk, Kind::kIndex, &changes);
    } else if (sums.least_index_extra_bytes > left) {
      CheckChunk(chunk, Kind::kBloom, &changes);
    } else {
      FillChunk(chunk, chosen, &left, &changes);
    }
  });
  return changes;
}

PointTiers::PointTiers(Needs needs)
    : needs_(std::move(needs)),
      memory_(needs_.budget == SIZE_MAX ? nullptr : std::make_unique<IndexMemory>(needs_.budget)) {}

void PointTiers::Rebalance() {
  if (memory_ == nullptr) return;
  MutexLock lock(&mutex_);
  Change(uses_.Collect(), SIZE_MAX);
}

void PointTiers::Start(TaskThreads* threads) {
  constexpr std::chrono::seconds kRest{1};
  if (memory_ == nullptr) return;
  task_.Start({threads}, "nacre-tiers", kRest, PeriodicTask::Begin::kWithRest,
              [this] { FollowUse(); });
}

void PointTiers::FollowUse() {
  if (!uses_.period_ended()) return;
  const std::vector<TableUse> uses = uses_.Collect();
  for (size_t changes = 1; changes > 0 && !task_.stopping();) {
    MutexLock lock(&mutex_);
    changes = Change(uses, kChangesAtATime);
  }
}

size_t PointTiers::Change(const std::vector<TableUse>& uses, size_t most) {
  const TierChanges changes = PlanPointTiers(needs_.tables(), memory_->PointShare(), uses);
  // Filters make room for indexes.
  const size_t to_filters = SetTiers(changes.to_filters, Kind::kBloom, most);
  return to_filters + SetTiers(changes.to_indexes, Kind::kIndex, most);
}

size_t PointTiers::SetTiers(const TableList& tables, PointTier::Kind kind, size_t most) {
  size_t made = 0;
  for (const auto& table : tables) {
    if (made == most) break;
    // Tables that are no longer part of the database, but are still read, may have it.
    if (kind == Kind::kIndex && !memory_->HasRoomForPointIndex(IndexExtraBytes(table->meta()))) {
      continue;
    }
    if (Status status = table->SetTier(kind); status.ok()) {
      ++made;
    } else {
      Log(needs_.log, LogLevel::kWarn, "{}: point tier of table {}: {}", needs_.name, table->id(),
          status.ToString());
    }
  }
  return made;
}

}  // namespace nacre
