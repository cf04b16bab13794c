#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {

IndexLoader::Needs DBImpl::IndexNeeds() const {
  return {.name = name_,
          .log = options_.info_log.get(),
          .tier = FirstTier(),
          .threads = static_cast<size_t>(options_.max_background_jobs),
          .closing = &closing_,
          .tables = [this] { return Versions(); }};
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
  for (;;) {
    auto result = IndexLoader::Result::kSomeFailed;
    CatchAll([&] {
      result = index_loader_.LoadAll();
      return Status::OK();
    }).IgnoreError();  // A lack of memory is over at the next attempt, perhaps.
    MutexLock lock(&mutex_);
    if (closing_.load(std::memory_order_relaxed)) return;
    // Reads need the processors first, then what was replayed can be flushed.
    try {
      MaybeSchedule();
    } catch (...) {
      result = IndexLoader::Result::kSomeFailed;
    }
    if (result == IndexLoader::Result::kNothingToDo) break;
    if (result == IndexLoader::Result::kSomeFailed) changed_.WaitFor(kRest);
  }
  CatchAll([this] {
    RebalancePointTiers();
    MutexLock lock(&mutex_);
    open_timeline_.EndStep("indexes");
    return Status::OK();
  }).IgnoreError();            // What does not get its tier now gets it after a compaction.
  epochs_.PrepareToReclaim();  // Takes its time, and nobody has to wait for it here.
}

void DBImpl::RebalancePointTiers() {
  if (options_.index_memory_budget == SIZE_MAX) return;
  MutexLock tier_lock(&tier_mutex_);
  // Upper levels first: they are looked at for every key. What does not fit keeps its filter.
  const VersionList versions = Versions();
  uint64_t left = options_.index_memory_budget;
  ForEachTable(versions, [&](const auto& table, int /*level*/) {
    const TableMeta& meta = table->meta();
    const bool fits = meta.point_index.length <= left;
    const auto kind = fits ? PointTier::Kind::kIndex : PointTier::Kind::kBloom;
    left -= std::min<uint64_t>(left, fits ? meta.point_index.length : meta.bloom.length);
    // What is not loaded yet is so with the tier that takes less, and promoted when all are.
    if (!table->loaded() || table->tier()->kind() == kind) return;
    if (Status status = table->SetTier(kind); !status.ok()) {
      Log(options_.info_log, LogLevel::kWarn, "{}: point tier of table {}: {}", name_, table->id(),
          status.ToString());
    }
  });
}

}  // namespace nacre
