#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/job_plugins.h"
#include "db/options_check.h"
#include "util/log.h"

namespace nacre {

Status DBImpl::CompactManually(ColumnFamily* family, int level, int output_level,
                               const Slice* begin, const Slice* end, uint32_t max_subcompactions) {
  std::unique_ptr<Compaction> compaction;
  {
    MutexLock commit(&commit_mutex_);
    MutexLock lock(&mutex_);
    if (const auto held = families_->by_id.find(family->id()); held != families_->by_id.end()) {
      compaction = family->picker().PickRange(family->current_view()->version, level, output_level,
                                              begin, end);
      if (compaction != nullptr) compaction->family = held->second;
    }
  }
  if (compaction == nullptr) return Status::OK();
  compaction->max_subcompactions = max_subcompactions;
  compaction->manual = true;
  const Status status = RunAndCommit(compaction.get());
  compaction.reset();
  RetireUnlinkedViews();
  if (status.ok()) {
    MutexLock lock(&mutex_);
    MadeRoom();
  }
  return status;
}

Status DBImpl::CheckManual() const {
  MutexLock lock(&mutex_);
  return background_.manual_running == 0 ? Status::OK() : background_.CheckManual();
}

Status DBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* handle,
                            const Slice* begin, const Slice* end) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(handle, &family));
  if (options.change_level) {
    return Status::NotSupported("CompactRangeOptions::change_level");
  }
  if (options.max_subcompactions > kMaxSubcompactions) {
    return Status::InvalidArgument("CompactRangeOptions::max_subcompactions is " +
                                   std::to_string(options.max_subcompactions) +
                                   ", must be in [0, " + std::to_string(kMaxSubcompactions) + "]");
  }
  Status flushed = FlushFamilies(FlushOptions(), family);
  if (flushed.IsNoSpace()) {
    // What is shadowed in tables may be the room that the flush needs.
    NACRE_RETURN_IF_ERROR(CompactLevels(family, options.max_subcompactions, begin, end));
    flushed = FlushFamilies(FlushOptions(), family);
  }
  NACRE_RETURN_IF_ERROR(std::move(flushed));
  return CompactLevels(family, options.max_subcompactions, begin, end);
}

Status DBImpl::CompactLevels(ColumnFamily* family, uint32_t max_subcompactions, const Slice* begin,
                             const Slice* end) {
  {
    // Alone: no automatic compaction starts, those that run are waited for.
    MutexLock lock(&mutex_);
    while ((background_.manual_compactions > 0 || background_.pauses > 0) &&
           background_.manual_bans == 0 && !closing_.load(std::memory_order_relaxed)) {
      changed_.Wait();
    }
    if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    NACRE_RETURN_IF_ERROR(background_.CheckManual());
    ++background_.manual_compactions;
    ++background_.manual_running;
    while (background_.compactions_running > 0) changed_.Wait();
  }
  Status status;
  int depth = 0;
  {
    MutexLock lock(&mutex_);
    depth = family->version().depth();
  }
  for (int level = 0; status.ok() && level + 1 < std::max(depth, 2); ++level) {
    status = CheckManual();
    if (!status.ok()) break;
    status = CompactManually(family, level, level + 1, begin, end, max_subcompactions);
  }
  {
    MutexLock lock(&mutex_);
    depth = family->version().depth();
  }
  if (status.ok() && depth > 1) status = RewriteGarbage(family, depth - 1, begin, end);
  epochs_.Collect();
  MutexLock lock(&mutex_);
  --background_.manual_compactions;
  --background_.manual_running;
  MaybeSchedule();
  changed_.SignalAll();
  return status;
}

Status DBImpl::RewriteGarbage(ColumnFamily* family, int level, const Slice* begin,
                              const Slice* end) {
  TableList tables;
  {
    MutexLock lock(&mutex_);
    tables = family->version().Overlapping(level, begin, end);
  }
  for (auto& table : tables) {
    const std::shared_ptr<TableHandle> held = std::move(table);  // Its space goes with the last.
    const TableMeta& meta = held->meta();
    // A filter is asked for what came here by moves, too.
    if (CompactionFilterName(family->options()).empty() && meta.tombstones == 0 &&
        meta.entries == meta.user_keys && !meta.has_operands && !meta.has_range_deletions()) {
      continue;
    }
    const Slice first = meta.smallest_user_key();
    const Slice last = meta.largest_user_key();
    NACRE_RETURN_IF_ERROR(CheckManual());
    NACRE_RETURN_IF_ERROR(CompactManually(family, level, level, &first, &last));
  }
  return Status::OK();
}

Status DBImpl::WaitForCompact() {
  {
    MutexLock lock(&mutex_);
    for (;;) {
      if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
      if (!background_.flush_error.ok()) return background_.flush_error;
      if (CompactionFails()) return background_.compaction_error;
      if (immutables_.empty() && !background_.flush_running &&
          background_.compactions_running == 0 && background_.manual_compactions == 0 &&
          !CompactionDue()) {
        break;
      }
      changed_.Wait();
    }
  }
  epochs_.Collect();
  return Status::OK();
}

}  // namespace nacre
