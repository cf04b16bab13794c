#include <memory>
#include <string>
#include <utility>

#include "db/compaction/manual_compaction.h"
#include "db/db_impl.h"
#include "db/options/options_check.h"
#include "util/exceptions.h"

namespace nacre {

Status DBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* handle,
                            const Slice* begin, const Slice* end) try {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_.state.FindFamily(handle, &family));
  // It may be dropped meanwhile, and the handle destroyed.
  const std::shared_ptr<const ColumnFamily> held = family->shared_from_this();
  if (options.max_subcompactions > kMaxSubcompactions) {
    return Status::InvalidArgument("CompactRangeOptions::max_subcompactions is " +
                                   std::to_string(options.max_subcompactions) +
                                   ", must be in [0, " + std::to_string(kMaxSubcompactions) + "]");
  }
  ManualCompaction compaction(&parts_.compactions, family, begin, end, options.max_subcompactions);
  Status flushed = parts_.flushes.Flush(FlushOptions(), family);
  if (flushed.IsNoSpace()) {
    // What is shadowed in tables may be the room that the flush needs.
    NACRE_RETURN_IF_ERROR(compaction.CompactLevels());
    flushed = parts_.flushes.Flush(FlushOptions(), family);
  }
  NACRE_RETURN_IF_ERROR(std::move(flushed));
  NACRE_RETURN_IF_ERROR(compaction.CompactLevels());
  return options.change_level ? compaction.MoveDeepestLevel(options.target_level) : Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::WaitForCompact() {
  {
    MutexLock lock(&parts_.state.mutex);
    for (;;) {
      if (parts_.state.closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
      if (!parts_.state.work.flush_error.ok()) return parts_.state.work.flush_error;
      NACRE_RETURN_IF_ERROR(parts_.state.CompactionFailure());
      if (parts_.state.work.ended_generations.empty() && !parts_.state.work.flush_running &&
          parts_.state.work.compactions_running == 0 && parts_.state.work.manual_compactions == 0 &&
          !parts_.state.CompactionDue()) {
        break;
      }
      parts_.state.changed.Wait();
    }
  }
  parts_.context.epochs.Collect();
  return Status::OK();
}

}  // namespace nacre
