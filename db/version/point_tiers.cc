#include "db/version/point_tiers.h"

#include <algorithm>
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

}  // namespace

TierChanges PlanPointTiers(const VersionList& versions, uint64_t share) {
  uint64_t filters = 0;
  ForEachChunk(versions, [&](const TableChunk& chunk, int /*level*/) {
    filters += chunk.sums().filter_bytes;
  });
  uint64_t left = share - std::min(share, filters);
  TierChanges changes;
  ForEachChunk(versions, [&](const TableChunk& chunk, int /*level*/) {
    const TableSums& sums = chunk.sums();
    if (sums.index_extra_bytes <= left) {
      left -= sums.index_extra_bytes;
      CheckChunk(chunk, Kind::kIndex, &changes);
      return;
    }
    if (sums.least_index_extra_bytes > left) {
      CheckChunk(chunk, Kind::kBloom, &changes);
      return;
    }
    chunk.ForgetTier();
    for (const auto& table : chunk.tables()) {
      const uint64_t extra = IndexExtraBytes(table->meta());
      const bool fits = extra <= left;
      if (fits) left -= extra;
      Check(table, fits ? Kind::kIndex : Kind::kBloom, &changes);
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
  const TierChanges changes = PlanPointTiers(needs_.tables(), memory_->PointShare());
  SetTiers(changes.to_filters, Kind::kBloom);  // They make room for the others.
  SetTiers(changes.to_indexes, Kind::kIndex);
}

void PointTiers::SetTiers(const TableList& tables, Kind kind) {
  for (const auto& table : tables) {
    // Tables that are no longer part of the database, but are still read, may have it.
    if (kind == Kind::kIndex && !memory_->HasRoomForPointIndex(IndexExtraBytes(table->meta()))) {
      continue;
    }
    if (Status status = table->SetTier(kind); !status.ok()) {
      Log(needs_.log, LogLevel::kWarn, "{}: point tier of table {}: {}", needs_.name, table->id(),
          status.ToString());
    }
  }
}

}  // namespace nacre
