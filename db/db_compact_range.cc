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
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family));
  // It may be dropped meanwhile, and the handle destroyed.
  const std::shared_ptr<const ColumnFamily> held = family->shared_from_this();
  if (options.max_subcompactions > kMaxSubcompactions) {
    return Status::InvalidArgument("CompactRangeOptions::max_subcompactions is " +
                                   std::to_string(options.max_subcompactions) +
                                   ", must be in [0, " + std::to_string(kMaxSubcompactions) + "]");
  }
  ManualCompaction compaction(&compactions_, family, begin, end, options.max_subcompactions);
  Status flushed = flushes_.Flush(FlushOptions(), family);
  if (flushed.IsNoSpace()) {
    // What is shadowed in tables may be the room that the flush needs.
    NACRE_RETURN_IF_ERROR(compaction.CompactLevels());
    flushed = flushes_.Flush(FlushOptions(), family);
  }
  NACRE_RETURN_IF_ERROR(std::move(flushed));
  NACRE_RETURN_IF_ERROR(compaction.CompactLevels());
  return options.change_level ? compaction.MoveDeepestLevel(options.target_level) : Status::OK();
} catch (...) {
  return StatusOfException();
}

Status DBImpl::WaitForCompact() {
  {
    MutexLock lock(&state_.mutex);
    for (;;) {
      if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
      if (!state_.work.flush_error.ok()) return state_.work.flush_error;
      if (state_.work.CompactionFails()) return state_.work.compaction_error;
      if (state_.work.immutables.empty() && !state_.work.flush_running &&
          state_.work.compactions_running == 0 && state_.work.manual_compactions == 0 &&
          !state_.CompactionDue()) {
        break;
      }
      changed_.Wait();
    }
  }
  epochs_.Collect();
  return Status::OK();
}

}  // namespace nacre
