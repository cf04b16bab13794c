#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "db/context/event_queue.h"
#include "db/context/node_states.h"
#include "db/family/family_edit.h"
#include "db/memtable/memtable.h"
#include "db/version/compaction_picker.h"
#include "nacre/listener.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// Has a thread tell the listeners of a database what happens, in order. The threads that
/// tell something may hold locks and never wait; the listeners run with none. The oldest events are
/// dropped if the listeners are too slow (db/context/event_queue.h). Without listeners there is no
/// thread, and nothing is done.
///
/// Thread safety: all methods may be called from many threads at once.
class OwnerEvents {
 public:
  OwnerEvents(TaskThreads* threads, DB* db, std::string name,
              std::vector<std::shared_ptr<EventListener>> listeners);

  bool listens() const { return !listeners_.empty(); }
  /// Events that the listeners were too slow for, and were not told of.
  uint64_t dropped() const EXCLUDES(mutex_);
  /// Returns when all was told; what comes later is not.
  void Stop() EXCLUDES(mutex_);

  void FlushBegins(const ColumnFamily& family, uint64_t job);
  void FlushCompleted(std::span<const FamilyEdit> edits, WriteStallCondition stall);
  void CompactionBegins(const Compaction& compaction, uint64_t job, bool move);
  void CompactionCompleted(const Compaction& compaction, const FamilyEdit& edit, bool move,
                           const Status& status, uint64_t nanos);
  void TablesDeleted(const TableList& tables, uint64_t job);
  /// None of its entries is before `earliest`.
  void MemTableSealed(const ColumnFamily& family, const MemTable& memtable,
                      SequenceNumber earliest);
  void StallChanged(const ColumnFamily& family, WriteStallCondition before,
                    WriteStallCondition now);
  void WorkFailed(BackgroundErrorReason reason, const Status& error);
  void NodesChanged(const NodeStates& before, const NodeStates& now,
                    const pool::PoolClient& client);
  void PaceChanged(const std::string& address, bool slow);
  void Rebuilt(const NodeRebuildInfo& info);
  /// Told once, however often it is called.
  void Fenced(const Status& status);
  /// At once, in the calling thread.
  void HandleDeleted(ColumnFamilyHandle* handle);

 private:
  using Event = std::function<void(EventListener* listener, DB* db)>;

  /// The bound of each weight; about 20 MB, if a listener never returns.
  static constexpr size_t kMostEvents = size_t{1} << 16;

  void Post(EventWeight weight, Event event) EXCLUDES(mutex_);
  /// Tells all that there is.
  void Tell() EXCLUDES(mutex_);
  void TablesCreated(const FamilyEdit& edit, TableFileCreationReason reason);

  DB* const db_;
  const std::string name_;
  const std::vector<std::shared_ptr<EventListener>> listeners_;
  std::atomic<bool> fenced_{false};
  mutable Mutex mutex_;
  EventQueue<Event> queue_ GUARDED_BY(mutex_){kMostEvents};
  bool telling_ GUARDED_BY(mutex_) = false;  ///< Or about to.
  std::unique_ptr<Executor> executor_ GUARDED_BY(mutex_);
};

}  // namespace nacre
