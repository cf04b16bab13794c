#include "db/flush/flush_scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

void FlushScheduler::Schedule() {
  state_->mutex.AssertHeld();
  BackgroundWork& work = state_->work;
  if (work.pauses > 0 || work.flush_running) return;
  if (state_->handing_over.load(std::memory_order_relaxed)) return;
  if (work.ended_generations.empty() && !work.pool_full) return;
  // What cannot be scheduled is not running; the task begins with the mutex.
  executor_->Schedule([this] { Loop(); });
  work.flush_running = true;
}

Status FlushScheduler::Flush(const FlushOptions& options, const ColumnFamily* only) try {
  MutexLock lock(&state_->mutex);
  if (state_->closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  ++state_->work.flush_waiters;
  state_->changed.SignalAll();
  const Status status = FlushAndWait(options, only);
  --state_->work.flush_waiters;
  return status;
} catch (...) {
  return StatusOfException();
}

Status FlushScheduler::FlushAndWait(const FlushOptions& options, const ColumnFamily* only) {
  // An attempt that began earlier may have failed for a reason that is gone.
  const uint64_t earlier = state_->work.flush_attempts;
  const auto has_failed = [this, earlier]() REQUIRES(state_->mutex) {
    return !state_->work.flush_error.ok() && state_->work.flush_failed_attempt > earlier;
  };
  const auto is_given_up = [this] { return state_->handing_over.load(std::memory_order_relaxed); };
  // Full MemTables that wait keep their bound even against explicit flushes.
  const auto most = [this]() REQUIRES(state_->mutex) { return state_->MemTablesMax() - 1; };
  while (state_->work.ended_generations.size() >= most() && !has_failed() && !is_given_up()) {
    state_->changed.Wait();
  }
  if (is_given_up()) return Status::ShutdownInProgress();
  if (state_->work.ended_generations.size() >= most()) return state_->work.flush_error;
  if (generations_->HasEntries(only)) generations_->Switch();
  if (state_->work.ended_generations.empty() || !options.wait) return Status::OK();
  const SequenceNumber boundary = state_->work.ended_generations.back().boundary;
  const auto is_flushed = [this, boundary]() REQUIRES(state_->mutex) {
    return state_->work.ended_generations.empty() ||
           state_->work.ended_generations.front().boundary > boundary;
  };
  while (!is_flushed() && !has_failed() && !is_given_up()) state_->changed.Wait();
  if (is_flushed()) return Status::OK();
  return has_failed() ? state_->work.flush_error : Status::ShutdownInProgress();
}

bool FlushScheduler::AwaitRoom(uint64_t room) {
  {
    MutexLock lock(&state_->mutex);
    while (state_->work.room_made == room && state_->work.RoomMayCome() &&
           !state_->closing.load(std::memory_order_relaxed)) {
      state_->changed.Wait();
    }
    if (state_->work.room_made != room) return true;
  }
  compactions_->MakeRoom();
  MutexLock lock(&state_->mutex);
  return state_->work.room_made != room;
}

void FlushScheduler::Loop() {
  int failures = 0;
  for (;;) {
    EndedGeneration oldest{};
    bool flushes = false;
    uint64_t attempt = 0;
    uint64_t room = 0;
    {
      MutexLock lock(&state_->mutex);
      const bool closing = state_->closing.load(std::memory_order_relaxed);
      const bool idle =
          state_->work.ended_generations.empty() && (closing || !state_->work.pool_full);
      const bool given_up = state_->handing_over.load(std::memory_order_relaxed);
      if (idle || given_up || (closing && failures > 0) || state_->work.pauses > 0) {
        state_->work.flush_running = false;
        state_->changed.SignalAll();
        return;
      }
      flushes = !state_->work.ended_generations.empty();
      if (flushes) {
        oldest = state_->work.ended_generations.front();
        attempt = ++state_->work.flush_attempts;
      }
      room = state_->work.room_made;
    }
    if (!flushes) {
      WatchFullPool(room, &failures);
      continue;
    }
    std::vector<FamilyEdit> edits;
    NACRE_POINT("flush.begin");
    const uint64_t begun = context_.tables_begun.Begin();
    if (NACRE_PLANTED_BUG("log.released-before-the-flush"))
      committer_->ReleaseLog(writes_->log(), oldest.boundary - 1);
    Status status = CatchAll([&] {
      Status written = flusher_.Flush(oldest, &edits);
      NACRE_POINT("flush.tables-written");
      return written.ok() ? CommitFlush(oldest, &edits) : written;
    });
    context_.tables_begun.End(begun);
    if (!status.ok() && state_->handing_over.load(std::memory_order_relaxed)) continue;
    status = context_.ExplainFailure(std::move(status));
    // A pool is full once nothing is left that could make room in it.
    if (status.IsNoSpace() && (committer_->GiveUpKeptLog() || AwaitRoom(room) || EnterFullPool())) {
      continue;
    }
    {
      MutexLock lock(&state_->mutex);
      state_->work.flush_error = status;
      if (status.ok()) {
        // In a full pool the pauses go on growing: few deletions are not worth a flush of their
        // own.
        if (!state_->work.pool_full) failures = 0;
      } else {
        Log(context_.options.info_log, LogLevel::kError, "{}: flush failed: {}", context_.name,
            status.ToString());
        context_.events.WorkFailed(BackgroundErrorReason::kFlush, status);
        state_->work.flush_failed_attempt = attempt;
        state_->changed.SignalAll();  // Writers that wait for room are told why there is none.
        state_->BackOff(DatabaseState::Work::kFlush, ++failures, room);
      }
    }
    NACRE_POINT("flush.committed");
    if (status.ok()) committer_->ReleaseLog(writes_->log(), oldest.boundary - 1);
    NACRE_POINT("flush.log-released");
    edits.clear();
    state_->RetireUnlinkedViews();
    if (status.ok()) context_.point_tiers.Rebalance();
  }
}

Status FlushScheduler::CommitFlush(const EndedGeneration& flushed, std::vector<FamilyEdit>* edits) {
  ManifestEdit change;
  change.last_sequence = flushed.boundary - 1;
  const Status status = committer_->Commit(*edits, &change, [&]() REQUIRES(state_->mutex) {
    state_->flushed = std::max(state_->flushed, flushed.boundary - 1);
    state_->work.flush_error = Status::OK();
    state_->work.ended_generations.pop_front();
    for (const auto& [id, family] : state_->families->by_id) {
      if (family->FindMemTable(flushed.generation) == nullptr) continue;
      std::shared_ptr<const Version> version = family->current_view()->version;
      for (const FamilyEdit& edit : *edits) {
        if (edit.family == family) version = Version::Apply(*version, edit.edit);
      }
      state_->InstallView(family.get(), family->MemTablesWithout(flushed.generation),
                          std::move(version));
      family->ForgetMemTable(flushed.generation);
    }
    if (state_->work.memtable_full) generations_->Switch();
    controller_->Update();
    // This precedes any use of the tables.
    context_.events.FlushCompleted(*edits, ConditionOf(controller_->stall()));
    state_->MaybeSchedule();
    state_->changed.SignalAll();
  });
  if (!status.ok()) committer_->GiveUp(*edits, status);
  return status;
}

bool FlushScheduler::EnterFullPool() {
  MutexLock lock(&state_->mutex);
  if (state_->work.pool_full) return false;
  state_->work.pool_full = true;
  controller_->Update();
  Log(context_.options.info_log, LogLevel::kWarn,
      "{}: the pool is full: only deletions are written", context_.name);
  return true;
}

void FlushScheduler::WatchFullPool(uint64_t room, int* failures) {
  const std::shared_ptr<const ColumnFamilySet> families = state_->Families();
  const Status status = CatchAll([&] {
    for (const auto& [id, family] : families->by_id) {
      NACRE_RETURN_IF_ERROR(
          headroom_->CheckFlush(*family, /*bytes=*/0, /*earlier=*/0, /*pool_full=*/false));
    }
    return Status::OK();
  });
  if (status.IsNoSpace() && AwaitRoom(room)) return;
  MutexLock lock(&state_->mutex);
  state_->work.flush_error = status;
  state_->changed.SignalAll();
  if (status.ok()) {
    *failures = 0;
    state_->work.pool_full = false;
    controller_->Update();
    Log(context_.options.info_log, LogLevel::kInfo, "{}: the pool has room again", context_.name);
    return;
  }
  if (state_->work.ended_generations.empty())
    state_->BackOff(DatabaseState::Work::kFlush, ++*failures, room);
  // Deletions make no room before they are in tables, however few they are.
  const bool closing = state_->closing.load(std::memory_order_relaxed);
  if (state_->work.ended_generations.empty() && !closing &&
      generations_->HasEntries(/*only=*/nullptr))
    generations_->Switch();
}

void FlushScheduler::FlushWritten() {
  MutexLock lock(&state_->mutex);
  const bool under_way = !state_->work.ended_generations.empty();
  if (under_way || state_->closing.load(std::memory_order_relaxed)) return;
  if (generations_->HasEntries(nullptr)) generations_->Switch();
}

}  // namespace nacre
