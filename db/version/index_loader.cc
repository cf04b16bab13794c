#include "db/version/index_loader.h"

#include <algorithm>
#include <utility>

#include "util/log.h"
#include "util/threads/thread.h"

namespace nacre {

Status IndexLoader::PrepareLookups(const TableHandle& table) {
  if (table.tier() == nullptr) {
    MutexLock lock(&mutex_);
    if (wanted_.size() < kMostWanted) wanted_.push_back(table.id());
  }
  return table.PrepareLookups();
}

IndexLoader::Tables IndexLoader::UnloadedTables() const {
  const VersionList versions = needs_.tables();
  Tables unloaded;
  ForEachTable(versions, [&](const auto& table, int /*level*/) {
    if (table->loaded()) return;
    unloaded.places.emplace(table->id(), unloaded.in_order.size());
    unloaded.in_order.push_back(table);
  });
  return unloaded;
}

IndexLoader::Result IndexLoader::LoadAll() {
  const Tables tables = UnloadedTables();
  if (tables.in_order.empty()) return Result::kNothingToDo;
  {
    MutexLock lock(&mutex_);
    next_ = 0;
    all_ = true;
  }
  const size_t threads = std::min(needs_.threads, tables.in_order.size());
  RunTogether("nacre-indexes", threads, [&](size_t) { Work(tables); });
  MutexLock lock(&mutex_);
  return all_ ? Result::kAllLoaded : Result::kSomeFailed;
}

void IndexLoader::Work(const Tables& tables) {
  while (!needs_.closing->load(std::memory_order_relaxed)) {
    const size_t next = Next(tables);
    if (next >= tables.in_order.size()) return;
    // Null: compacted away, or repaired; then it has another handle.
    const std::shared_ptr<const TableHandle> table = tables.in_order[next].lock();
    const Status status = table == nullptr ? Status::OK() : table->Load(needs_.tier);
    if (status.ok()) continue;
    MutexLock lock(&mutex_);
    all_ = false;
    if (!failed_.insert(table->id()).second) continue;
    Log(needs_.log, LogLevel::kError,
        "{}: table {} cannot be read until its indexes can be loaded: {}", needs_.name, table->id(),
        status.ToString());
  }
}

size_t IndexLoader::Next(const Tables& tables) {
  MutexLock lock(&mutex_);
  while (!wanted_.empty()) {
    const auto wanted = tables.places.find(wanted_.front());
    wanted_.pop_front();
    if (wanted != tables.places.end()) return wanted->second;
  }
  return next_++;
}

}  // namespace nacre
