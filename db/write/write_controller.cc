#include "db/write/write_controller.h"

#include <algorithm>
#include <chrono>

#include "nacre/statistics.h"
#include "util/log.h"
#include "util/perf_step.h"

namespace nacre {

Stall WriteController::StallOf(const ColumnFamily& family) {
  const ColumnFamilyOptions& options = family.options();
  if (options.disable_auto_compactions) return Stall::kNone;
  const auto level0 = family.version().level0_runs();
  const uint64_t pending = family.picker().PendingBytes(family.version());
  const auto reached = [pending](uint64_t limit) { return limit > 0 && pending >= limit; };
  if (level0 >= options.level0_stop_writes_trigger ||
      reached(options.hard_pending_compaction_bytes_limit)) {
    return Stall::kStop;
  }
  if (level0 >= options.level0_slowdown_writes_trigger ||
      reached(options.soft_pending_compaction_bytes_limit)) {
    return Stall::kDelay;
  }
  return Stall::kNone;
}

void WriteController::Update() {
  state_->mutex.AssertHeld();
  Stall stall = Stall::kNone;
  int level0 = 0;
  const ColumnFamily* behind_it = state_->default_family.get();
  for (const auto& [id, family] : state_->families->by_id) {
    const Stall of_family = state_->work.copies > 0 ? Stall::kNone : StallOf(*family);
    if (of_family > stall) behind_it = family.get();
    stall = std::max(stall, of_family);
    level0 = std::max(level0, family->version().level0_runs());
  }
  if (state_->work.memtable_full || state_->work.pool_full || !fault_.status().ok()) {
    stall = Stall::kStop;
  }
  if (state_->closing.load(std::memory_order_relaxed)) stall = Stall::kClosed;
  const Stall before = stall_.exchange(stall, std::memory_order_acq_rel);  // Pairs with stall().
  if (before == stall) return;
  state_->changed.SignalAll();
  if (stall != Stall::kClosed) {
    context_.events.StallChanged(*behind_it, ConditionOf(before), ConditionOf(stall));
  }
  Log(context_.options.info_log, LogLevel::kInfo,
      "{}: writes {} ({} generations of MemTables to flush, {} flushes in level 0)", context_.name,
      stall == Stall::kNone    ? "go on"
      : stall == Stall::kDelay ? "slow down"
                               : "stop",
      state_->work.ended_generations.size(), level0);
}

void WriteController::StopFor(const Status& why) {
  fault_.Set(why);
  MutexLock lock(&state_->mutex);
  Update();
  state_->changed.SignalAll();
}

uint64_t WriteController::DelayedRate() const {
  const uint64_t rate = context_.live.delayed_write_rate;
  return rate > 0 ? rate : kDefaultDelayedRate;
}

Status WriteController::AwaitTurn(const WriteOptions& options, uint64_t bytes, bool deletes,
                                  uint64_t now_nanos, uint64_t* pay_until_nanos) {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  MutexLock lock(&state_->mutex);
  for (;;) {
    const Stall stall = stall_.load(std::memory_order_relaxed);
    if (stall == Stall::kNone) return Status::OK();
    if (stall == Stall::kClosed) return Status::ShutdownInProgress("database is closing");
    if (stall == Stall::kStop) {
      NACRE_RETURN_IF_ERROR(fault_.status());
      if (deletes && state_->work.pool_full && !state_->work.memtable_full) return Status::OK();
      // Work that fails will not end the stall; the writer is told instead of kept.
      NACRE_RETURN_IF_ERROR(state_->work.flush_error);
      if (!state_->work.memtable_full) NACRE_RETURN_IF_ERROR(state_->CompactionFailure());
    }
    if (options.no_slowdown) return Status::Incomplete("write stall");
    if (stall == Stall::kDelay) {
      delayed_until_nanos_ =
          std::max(delayed_until_nanos_, now_nanos) + bytes * kNanosPerSecond / DelayedRate();
      *pay_until_nanos = delayed_until_nanos_;
      return Status::OK();
    }
    state_->changed.Wait();
  }
}

Status WriteController::AdmitStalled(const WriteOptions& options, uint64_t bytes, bool deletes) {
  const PerfTimer timer(&PerfContext::write_delay_time);
  const uint64_t start = context_.clock->NowNanos();
  uint64_t pay_until = 0;
  NACRE_RETURN_IF_ERROR(AwaitTurn(options, bytes, deletes, start, &pay_until));
  // Short debts are collected until a sleep is worth its cost.
  constexpr uint64_t kWorthSleeping = 1'000'000;
  if (pay_until > start + kWorthSleeping) {
    context_.clock->SleepFor(std::chrono::nanoseconds(pay_until - start));
  }
  const uint64_t stalled = context_.clock->NowNanos() - start;
  context_.counters.stall_nanos.fetch_add(stalled, std::memory_order_relaxed);
  if (Statistics* const statistics = context_.options.statistics.get(); statistics != nullptr) {
    statistics->recordTick(STALL_MICROS, stalled / 1000);
    statistics->reportTimeToHistogram(WRITE_STALL, stalled / 1000);
  }
  return Status::OK();
}

}  // namespace nacre
