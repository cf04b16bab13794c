#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/compaction/manual_compaction.h"
#include "db/db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/uri.h"

// Room in the pool for flushes, and for the compactions after them.

namespace nacre {

bool DBImpl::EnterFullPool() {
  MutexLock lock(&state_.mutex);
  if (state_.work.pool_full) return false;
  state_.work.pool_full = true;
  write_controller_.Update();
  Log(options_.info_log, LogLevel::kWarn, "{}: the pool is full: only deletions are written",
      name_);
  return true;
}

void DBImpl::WatchFullPool(uint64_t room, int* failures) {
  const std::shared_ptr<const ColumnFamilySet> families = state_.Families();
  const Status status = CatchAll([&] {
    for (const auto& [id, family] : families->by_id) {
      NACRE_RETURN_IF_ERROR(
          headroom_.CheckFlush(*family, /*bytes=*/0, /*earlier=*/0, /*pool_full=*/false));
    }
    return Status::OK();
  });
  if (status.IsNoSpace() && AwaitRoom(room)) return;
  MutexLock lock(&state_.mutex);
  state_.work.flush_error = status;
  changed_.SignalAll();
  if (status.ok()) {
    *failures = 0;
    state_.work.pool_full = false;
    write_controller_.Update();
    Log(options_.info_log, LogLevel::kInfo, "{}: the pool has room again", name_);
    return;
  }
  if (state_.work.immutables.empty())
    state_.BackOff(DatabaseState::Work::kFlush, ++*failures, room);
  // Deletions make no room before they are in tables, however few they are.
  const bool closing = closing_.load(std::memory_order_relaxed);
  if (state_.work.immutables.empty() && !closing && generations_.HasEntries(/*only=*/nullptr))
    generations_.Switch();
}

void DBImpl::CompactForSpace() {
  bool snapshots_changed = false;
  bool pool_full = false;
  std::shared_ptr<const ColumnFamilySet> families;
  {
    MutexLock lock(&state_.mutex);
    if (state_.work.manual_compactions > 0 || closing_.load(std::memory_order_relaxed)) return;
    ++state_.work.manual_compactions;
    ++state_.work.compactions_held;
    // Those that wait to be tried again end.
    changed_.SignalAll();
    while (state_.work.compactions_running > 0) changed_.Wait();
    std::vector<SequenceNumber> snapshots = state_.snapshots.Sequences();
    snapshots_changed = snapshots != snapshots_at_last_rewrite_;
    snapshots_at_last_rewrite_ = std::move(snapshots);
    families = state_.families;
    pool_full = state_.work.pool_full;
  }
  for (const auto& [id, family] : families->by_id) {
    if (family->options().disable_auto_compactions) continue;
    int depth = 0;
    {
      MutexLock lock(&state_.mutex);
      depth = family->version().depth();
    }
    ManualCompaction compaction(this, family.get(), nullptr, nullptr);
    // What they answer is in the LOG.
    CatchAll([&] { return compaction.CompactLevel(0); }).IgnoreError();
    for (int level = 1; level + 1 < depth; ++level) {
      CatchAll([&] { return compaction.SinkTombstones(level); }).IgnoreError();
    }
    // Level 0 is merged with level 1, in the less room the less there is of it.
    if (pool_full && depth > 2) CatchAll([&] { return compaction.CompactLevel(1); }).IgnoreError();
    // Versions that snapshots held are garbage once these are released; while they are not,
    // writing the tables anew would free nothing.
    for (int level = 1; snapshots_changed && level < std::max(depth, 2); ++level) {
      CatchAll([&] { return compaction.RewriteGarbage(level); }).IgnoreError();
    }
  }
  epochs_.Collect();
  MutexLock lock(&state_.mutex);
  --state_.work.manual_compactions;
  --state_.work.compactions_held;
  MaybeSchedule();
  changed_.SignalAll();
}

}  // namespace nacre
