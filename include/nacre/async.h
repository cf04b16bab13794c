#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

class ColumnFamilyHandle;
class WriteBatch;

/// The place where coroutines run: the event loop of an application, or a strand of its thread
/// pool. `RunLoop` (nacre/task.h) is a small one.
///
/// An executor resumes what it is given one after the other, never two at once, on threads of its
/// own choice.
class AsyncExecutor {
 public:
  virtual ~AsyncExecutor() = default;
  /// Has `coroutine` resumed soon, behind those that were scheduled before, and not within this
  /// call. Called by what runs on this executor only.
  virtual void Schedule(std::coroutine_handle<> coroutine) = 0;
};

/// One operation of an AsyncDB, from its start until the executor has noted its end. Applications
/// have no use for it.
class AsyncOperation {
 public:
  virtual ~AsyncOperation() = default;

 protected:
  /// Its end was taken note of.
  virtual void Recycle() = 0;

  Status status_;
  bool ended_ = false;
  bool abandoned_ = false;          ///< The task was destroyed before it was awaited to its end.
  std::coroutine_handle<> waiter_;  ///< Null: not awaited yet.

 private:
  friend class AsyncStatus;
};

/// The end of an operation that has begun: `Status status = co_await db->GetAsync(...)`, at once or
/// later, once. Several may be under way before the first is awaited. One that is dropped goes on
/// to its end; what it was given has to stay until then.
class [[nodiscard]] AsyncStatus {
 public:
  explicit AsyncStatus(AsyncOperation* operation) : operation_(operation) {}
  AsyncStatus(AsyncStatus&& other) noexcept
      : operation_(std::exchange(other.operation_, nullptr)) {}
  AsyncStatus& operator=(AsyncStatus&&) = delete;
  ~AsyncStatus() {
    if (operation_ == nullptr) return;
    operation_->abandoned_ = true;
    if (operation_->ended_) operation_->Recycle();
  }

  bool await_ready() const noexcept { return operation_->ended_; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { operation_->waiter_ = waiter; }
  Status await_resume() {
    AsyncOperation* const operation = std::exchange(operation_, nullptr);
    Status status = std::move(operation->status_);
    operation->Recycle();
    return status;
  }

 private:
  AsyncOperation* operation_;
};

/// A database for coroutines: one thread has hundreds of reads on their way to the nodes and waits
/// for none of them. `DB::NewAsyncDB` makes one for each executor.
///
/// Reads begin within the call, writes when the executor has nothing older to do: all that were
/// asked for by then, with one write to the log. Both go on whenever that is so: while any is under
/// way, there is something to resume. Those that need more than reads of records that arrive (an
/// index that is not loaded, a lost node, a write's way to the log) are left to threads of this
/// object, so that they hold up no other operation; connecting to a node is not.
///
/// Keys, values, batches and snapshots stay as they are until the operation has ended.
///
/// Thread safety: only code that runs on its executor may call it. The database outlives it.
class AsyncDB {
 public:
  /// Nothing is under way any more.
  virtual ~AsyncDB() = default;

  /// As DB::Get: what it answers is as of the call. A null family is the default one.
  virtual AsyncStatus GetAsync(const ReadOptions& options, ColumnFamilyHandle* family,
                               const Slice& key, PinnableSlice* value) = 0;
  AsyncStatus GetAsync(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
    return GetAsync(options, nullptr, key, value);
  }
  /// As DB::MultiGet: ends when all of them have; OK, as `statuses` has what became of each key.
  virtual AsyncStatus MultiGetAsync(const ReadOptions& options, ColumnFamilyHandle* family,
                                    size_t num_keys, const Slice* keys, PinnableSlice* values,
                                    Status* statuses) = 0;
  AsyncStatus MultiGetAsync(const ReadOptions& options, size_t num_keys, const Slice* keys,
                            PinnableSlice* values, Status* statuses) {
    return MultiGetAsync(options, nullptr, num_keys, keys, values, statuses);
  }
  /// As DB::Write.
  virtual AsyncStatus WriteAsync(const WriteOptions& options, WriteBatch* updates) = 0;

  /// Operations that have begun and not ended.
  virtual size_t under_way() const = 0;
};

}  // namespace nacre
