#include <utility>

#include "db/db_impl.h"
#include "util/exceptions.h"

namespace nacre {

Status OwnerControls::SuggestCompactRange(ColumnFamilyHandle* handle, const Slice* begin,
                                          const Slice* end) try {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(db_->state_.FindFamily(handle, &family));
  MutexLock lock(&db_->state_.mutex);
  const Version& version = family->version();
  for (int level = 0; level + 1 < version.depth(); ++level) {
    family->picker().Suggest(level, version.Overlapping(level, begin, end));
  }
  db_->state_.MaybeSchedule();
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status OwnerControls::PauseBackgroundWork() { return db_->state_.PauseWork(); }

Status OwnerControls::ContinueBackgroundWork() { return db_->state_.ContinueWork(); }

void OwnerControls::DisableManualCompaction() {
  MutexLock lock(&db_->state_.mutex);
  ++db_->state_.work.manual_bans;
  db_->changed_.SignalAll();
  while (db_->state_.work.manual_running > 0) db_->changed_.Wait();
}

void OwnerControls::EnableManualCompaction() {
  MutexLock lock(&db_->state_.mutex);
  if (db_->state_.work.manual_bans > 0) --db_->state_.work.manual_bans;
}

Status OwnerControls::Resume() {
  {
    MutexLock lock(&db_->state_.mutex);
    db_->state_.MadeRoom();  // What waits before it tries again need not.
    db_->state_.MaybeSchedule();
  }
  return db_->flushes_.Flush(FlushOptions(), /*only=*/nullptr);
}

}  // namespace nacre
