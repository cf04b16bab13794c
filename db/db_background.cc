#include <utility>

#include "db/database_parts.h"
#include "db/owner_controls.h"
#include "util/exceptions.h"

namespace nacre {

Status OwnerControls::SuggestCompactRange(ColumnFamilyHandle* handle, const Slice* begin,
                                          const Slice* end) try {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_->state.FindFamily(handle, &family));
  MutexLock lock(&parts_->state.mutex);
  const Version& version = family->version();
  for (int level = 0; level + 1 < version.depth(); ++level) {
    family->picker().Suggest(level, version.Overlapping(level, begin, end));
  }
  parts_->state.MaybeSchedule();
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status OwnerControls::PauseBackgroundWork() { return parts_->state.PauseWork(); }

Status OwnerControls::ContinueBackgroundWork() { return parts_->state.ContinueWork(); }

void OwnerControls::DisableManualCompaction() {
  MutexLock lock(&parts_->state.mutex);
  ++parts_->state.work.manual_bans;
  parts_->state.changed.SignalAll();
  while (parts_->state.work.manual_running > 0) parts_->state.changed.Wait();
}

void OwnerControls::EnableManualCompaction() {
  MutexLock lock(&parts_->state.mutex);
  if (parts_->state.work.manual_bans > 0) --parts_->state.work.manual_bans;
}

Status OwnerControls::Resume() {
  {
    MutexLock lock(&parts_->state.mutex);
    parts_->state.MadeRoom();  // What waits before it tries again need not.
    parts_->state.MaybeSchedule();
  }
  return parts_->flushes.Flush(FlushOptions(), /*only=*/nullptr);
}

}  // namespace nacre
