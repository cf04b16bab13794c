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
  db_->MaybeSchedule();
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

Status OwnerControls::PauseBackgroundWork() {
  MutexLock lock(&db_->state_.mutex);
  if (db_->closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  ++db_->state_.work.pauses;
  db_->changed_.SignalAll();
  while (db_->state_.work.flush_running || db_->state_.work.compactions_running > 0 ||
         db_->state_.work.manual_compactions > 0) {
    db_->changed_.Wait();
  }
  return Status::OK();
}

Status OwnerControls::ContinueBackgroundWork() {
  MutexLock lock(&db_->state_.mutex);
  if (db_->state_.work.pauses == 0) {
    return Status::InvalidArgument("ContinueBackgroundWork: it is not paused");
  }
  if (--db_->state_.work.pauses > 0) return Status::OK();
  db_->MaybeSchedule();
  db_->changed_.SignalAll();
  return Status::OK();
}

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
    db_->MaybeSchedule();
  }
  return db_->FlushFamilies(FlushOptions(), /*only=*/nullptr);
}

}  // namespace nacre
