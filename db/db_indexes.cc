#include <chrono>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "util/log.h"

namespace nacre {

std::vector<std::weak_ptr<const TableHandle>> DBImpl::UnloadedTables() const {
  const VersionList versions = Versions();
  std::vector<std::weak_ptr<const TableHandle>> unloaded;
  for (int level = 0; level < Depth(versions); ++level) {
    for (const auto& table : TablesOf(versions, level)) {
      if (!table->loaded()) unloaded.push_back(table);
    }
  }
  return unloaded;
}

PointTier::Kind DBImpl::FirstTier() const {
  return options_.index_memory_budget == SIZE_MAX ? PointTier::Kind::kIndex
                                                  : PointTier::Kind::kBloom;
}

int DBImpl::BloomBitsPerKey() const {
  return options_.index_memory_budget == SIZE_MAX ? 0 : kBloomBitsPerKey;
}

void DBImpl::LoadIndexes() {
  constexpr std::chrono::seconds kRest{1};
  std::set<uint64_t> failed;  // Told of already.
  for (;;) {
    const auto tables = UnloadedTables();
    if (tables.empty()) break;
    bool all = true;
    for (const auto& weak : tables) {
      if (closing_.load(std::memory_order_relaxed)) return;
      const std::shared_ptr<const TableHandle> table = weak.lock();
      if (table == nullptr) continue;  // Compacted away, or repaired: then it has another handle.
      const Status status = table->Load(FirstTier());
      if (status.ok()) continue;
      all = false;
      if (!failed.insert(table->id()).second) continue;
      Log(options_.info_log, LogLevel::kError,
          "{}: table {} cannot be read until its indexes can be loaded: {}", name_, table->id(),
          status.ToString());
    }
    MutexLock lock(&mutex_);
    // Reads need the processors first, then what was replayed can be flushed.
    MaybeSchedule();
    if (all) continue;
    if (!closing_.load(std::memory_order_relaxed)) changed_.WaitFor(kRest);
  }
  {
    MutexLock lock(&mutex_);
    MaybeSchedule();
  }
  RebalancePointTiers();
  {
    MutexLock lock(&mutex_);
    open_timeline_.EndStep("indexes");
  }
  epochs_.PrepareToReclaim();  // Takes its time, and nobody has to wait for it here.
}

void DBImpl::RebalancePointTiers() {
  if (options_.index_memory_budget == SIZE_MAX) return;
  MutexLock tier_lock(&tier_mutex_);
  // Upper levels first: they are looked at for every key. What does not fit keeps its filter.
  const VersionList versions = Versions();
  uint64_t left = options_.index_memory_budget;
  for (int level = 0; level < Depth(versions); ++level) {
    for (const auto& table : TablesOf(versions, level)) {
      const TableMeta& meta = table->meta();
      const bool fits = meta.point_index.length <= left;
      const auto kind = fits ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
      left -= std::min<uint64_t>(left, fits ? meta.point_index.length : meta.bloom.length);
      // What is not loaded yet is so with the tier that takes less, and promoted when all are.
      if (!table->loaded() || table->tier()->kind() == kind) continue;
      if (Status status = table->SetTier(kind); !status.ok()) {
        Log(options_.info_log, LogLevel::kWarn, "{}: point tier of table {}: {}", name_,
            table->id(), status.ToString());
      }
    }
  }
}

}  // namespace nacre
