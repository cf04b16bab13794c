#pragma once

#include <atomic>
#include <cstdint>

#include "db/context/background_work.h"
#include "db/context/database_state.h"
#include "db/write/write_fault.h"
#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

/// Whether writers go ahead, slow down or stop: by how far flushes and compactions are behind them,
/// by what failed, and by whether the database is open.
///
/// Thread safety: all methods may be called from many threads at once. What they decide by is
/// guarded by the mutex of the state.
class WriteController {
 public:
  explicit WriteController(DatabaseState* state) : context_(*state->context), state_(state) {}
  WriteController(const WriteController&) = delete;
  WriteController& operator=(const WriteController&) = delete;

  /// Acquire: pairs with Update.
  Stall stall() const { return stall_.load(std::memory_order_acquire); }
  /// Waits while writes are stalled; `bytes` are about to be written, of deletions only or not.
  Status Admit(const WriteOptions& options, uint64_t bytes, bool deletes) {
    if (stall() == Stall::kNone) [[likely]]
      return Status::OK();
    return AdmitStalled(options, bytes, deletes);
  }
  /// What writers are stalled by has changed, perhaps. The caller holds the state's mutex.
  void Update();
  /// No more writes are taken until the database is opened again.
  void StopFor(const Status& why) EXCLUDES(state_->mutex);
  /// The same for a caller who has the mutex, or to whom it makes no difference when writers are
  /// told.
  void SetFault(const Status& why) { fault_.Set(why); }
  /// Why no more writes are taken; OK: they are.
  Status fault() const { return fault_.status(); }
  /// Bytes a second that writers are slowed down to, if they are.
  uint64_t DelayedRate() const;

 private:
  static Stall StallOf(const ColumnFamily& family);
  Status AdmitStalled(const WriteOptions& options, uint64_t bytes, bool deletes)
      EXCLUDES(state_->mutex);
  /// When a stalled writer may go ahead, in nanoseconds of the clock.
  Status AwaitTurn(const WriteOptions& options, uint64_t bytes, bool deletes, uint64_t now_nanos,
                   uint64_t* pay_until_nanos) EXCLUDES(state_->mutex);

  DatabaseContext& context_;
  DatabaseState* const state_;
  std::atomic<Stall> stall_{Stall::kNone};
  WriteFault fault_;
  /// When the bytes of delayed writers are paid for.
  uint64_t delayed_until_nanos_ GUARDED_BY(state_->mutex) = 0;
};

}  // namespace nacre
