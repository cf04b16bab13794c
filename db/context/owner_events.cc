#include "db/context/owner_events.h"

#include <algorithm>
#include <utility>

#include "db/family/column_family.h"
#include "util/exceptions.h"

namespace nacre {

namespace {

TableFileCreationInfo InfoOf(const std::string& db, const ColumnFamily& family,
                             const TableHandle& table, uint64_t job,
                             TableFileCreationReason reason) {
  TableFileCreationInfo info;
  info.db_name = db;
  info.cf_name = family.name();
  info.file_number = table.id();
  info.file_size = table.size();
  info.job_id = job;
  info.reason = reason;
  return info;
}

CompactionJobInfo InfoOf(const Compaction& compaction, uint64_t job, bool move) {
  CompactionJobInfo info;
  info.cf_id = compaction.family->id();
  info.cf_name = compaction.family->name();
  info.job_id = job;
  info.base_input_level = compaction.level;
  info.output_level = compaction.output_level;
  info.is_trivial_move = move;
  for (const auto& table : compaction.inputs) {
    info.input_file_infos.push_back({compaction.level, table->id()});
  }
  for (const auto& table : compaction.overlap) {
    info.input_file_infos.push_back({compaction.output_level, table->id()});
  }
  info.stats.is_manual_compaction = compaction.manual;
  info.stats.num_input_files = info.input_file_infos.size();
  info.stats.total_input_bytes = compaction.InputBytes();
  return info;
}

}  // namespace

OwnerEvents::OwnerEvents(TaskThreads* threads, DB* db, std::string name,
                         std::vector<std::shared_ptr<EventListener>> listeners)
    : db_(db), name_(std::move(name)), listeners_(std::move(listeners)) {
  if (listens()) executor_ = threads->NewExecutor(1, "nacre-events");
}

void OwnerEvents::Post(EventWeight weight, Event event) {
  if (!listens()) return;
  MutexLock lock(&mutex_);
  if (executor_ == nullptr) return;
  queue_.Push(std::move(event), weight);
  if (telling_) return;
  telling_ = true;
  executor_->Schedule([this] { Tell(); });
}

void OwnerEvents::Tell() {
  MutexLock lock(&mutex_);
  while (!queue_.empty()) {
    const Event event = queue_.Pop();
    MutexUnlock unlock(&mutex_);
    // What a listener throws is dropped: no caller is there to be told.
    for (const auto& listener : listeners_) {
      CatchAll([&] {
        event(listener.get(), db_);
        return Status::OK();
      }).IgnoreError();
    }
  }
  telling_ = false;
}

uint64_t OwnerEvents::dropped() const {
  MutexLock lock(&mutex_);
  return queue_.dropped();
}

void OwnerEvents::Stop() {
  std::unique_ptr<Executor> executor;
  {
    MutexLock lock(&mutex_);
    executor = std::move(executor_);
  }
  executor.reset();  // Without the lock: listeners may call what posts.
}

void OwnerEvents::FlushBegins(const ColumnFamily& family, uint64_t job) {
  if (!listens()) return;
  FlushJobInfo info;
  info.cf_id = family.id();
  info.cf_name = family.name();
  info.job_id = job;
  Post(EventWeight::kDetail, [info = std::move(info)](EventListener* listener, DB* db) {
    listener->OnFlushBegin(db, info);
  });
}

void OwnerEvents::FlushCompleted(std::span<const FamilyEdit> edits, WriteStallCondition stall) {
  if (!listens()) return;
  for (const FamilyEdit& edit : edits) {
    TablesCreated(edit, TableFileCreationReason::kFlush);
    FlushJobInfo info;
    info.cf_id = edit.family->id();
    info.cf_name = edit.family->name();
    info.job_id = edit.job;
    info.triggered_writes_slowdown = stall == WriteStallCondition::kDelayed;
    info.triggered_writes_stop = stall == WriteStallCondition::kStopped;
    for (const auto& added : edit.edit.added) {
      const TableMeta& meta = added.table->meta();
      const bool first = info.file_numbers.empty();
      info.file_numbers.push_back(meta.id);
      info.smallest_seqno =
          first ? meta.smallest_sequence : std::min(info.smallest_seqno, meta.smallest_sequence);
      info.largest_seqno = std::max(info.largest_seqno, meta.largest_sequence);
      info.num_entries += meta.entries;
      info.total_bytes += meta.size;
    }
    Post(EventWeight::kImportant, [info = std::move(info)](EventListener* listener, DB* db) {
      listener->OnFlushCompleted(db, info);
    });
  }
}

void OwnerEvents::TablesCreated(const FamilyEdit& edit, TableFileCreationReason reason) {
  for (const auto& added : edit.edit.added) {
    Post(EventWeight::kDetail,
         [info = InfoOf(name_, *edit.family, *added.table, edit.job, reason)](
             EventListener* listener, DB*) { listener->OnTableFileCreated(info); });
  }
}

void OwnerEvents::TablesDeleted(const TableList& tables, uint64_t job) {
  if (!listens()) return;
  for (const auto& table : tables) {
    TableFileDeletionInfo info;
    info.db_name = name_;
    info.file_number = table->id();
    info.job_id = job;
    Post(EventWeight::kDetail, [info = std::move(info)](EventListener* listener, DB*) {
      listener->OnTableFileDeleted(info);
    });
  }
}

void OwnerEvents::CompactionBegins(const Compaction& compaction, uint64_t job, bool move) {
  if (!listens()) return;
  Post(EventWeight::kDetail,
       [info = InfoOf(compaction, job, move)](EventListener* listener, DB* db) {
         listener->OnCompactionBegin(db, info);
       });
}

void OwnerEvents::CompactionCompleted(const Compaction& compaction, const FamilyEdit& edit,
                                      bool move, const Status& status, uint64_t nanos) {
  if (!listens()) return;
  CompactionJobInfo info = InfoOf(compaction, edit.job, move);
  info.status = status;
  info.stats.elapsed_micros = nanos / 1000;
  if (status.ok()) {
    if (!move) TablesCreated(edit, TableFileCreationReason::kCompaction);
    for (const auto& added : edit.edit.added) {
      info.output_file_infos.push_back({added.level, added.table->id()});
      info.stats.total_output_bytes += added.table->size();
    }
    info.stats.num_output_files = info.output_file_infos.size();
  }
  Post(EventWeight::kImportant, [info = std::move(info)](EventListener* listener, DB* db) {
    listener->OnCompactionCompleted(db, info);
  });
  if (status.ok() && !move) TablesDeleted(edit.edit.removed, edit.job);
}

void OwnerEvents::NodesChanged(const NodeStates& before, const NodeStates& now,
                               const pool::PoolClient& client) {
  if (!listens()) return;
  for (size_t i = 0; i < now.alive.size(); ++i) {
    // At first all count as alive.
    const bool was_alive = before.alive.empty() || before.Alive(static_cast<NodeId>(i));
    if (now.alive[i] == was_alive) continue;
    NodeInfo info{client.node_address(static_cast<NodeId>(i))};
    const bool alive = now.alive[i];
    Post(EventWeight::kImportant, [info = std::move(info), alive](EventListener* listener, DB* db) {
      alive ? listener->OnNodeJoined(db, info) : listener->OnNodeLost(db, info);
    });
  }
}

void OwnerEvents::PaceChanged(const std::string& address, bool slow) {
  if (!listens()) return;
  Post(EventWeight::kImportant, [info = NodeInfo{address}, slow](EventListener* listener, DB* db) {
    slow ? listener->OnNodeSlow(db, info) : listener->OnNodePrompt(db, info);
  });
}

void OwnerEvents::Rebuilt(const NodeRebuildInfo& info) {
  if (!listens()) return;
  Post(EventWeight::kImportant,
       [info](EventListener* listener, DB* db) { listener->OnRebuildCompleted(db, info); });
}

void OwnerEvents::MemTableSealed(const ColumnFamily& family, const MemTable& memtable,
                                 SequenceNumber earliest) {
  if (!listens()) return;
  MemTableInfo info;
  info.cf_name = family.name();
  info.earliest_seqno = earliest;
  info.num_entries = memtable.entries();
  info.num_deletes = memtable.deletions();
  Post(EventWeight::kDetail, [info = std::move(info)](EventListener* listener, DB*) {
    listener->OnMemTableSealed(info);
  });
}

void OwnerEvents::StallChanged(const ColumnFamily& family, WriteStallCondition before,
                               WriteStallCondition now) {
  if (!listens()) return;
  WriteStallInfo info;
  info.cf_name = family.name();
  info.condition.cur = now;
  info.condition.prev = before;
  Post(EventWeight::kImportant, [info = std::move(info)](EventListener* listener, DB*) {
    listener->OnStallConditionsChanged(info);
  });
}

void OwnerEvents::WorkFailed(BackgroundErrorReason reason, const Status& error) {
  if (!listens()) return;
  Post(EventWeight::kImportant, [reason, error](EventListener* listener, DB*) {
    Status copy = error;
    listener->OnBackgroundError(reason, &copy);
  });
}

void OwnerEvents::Fenced(const Status& status) {
  if (!listens() || fenced_.exchange(true, std::memory_order_relaxed)) return;
  Post(EventWeight::kImportant,
       [status](EventListener* listener, DB* db) { listener->OnFenced(db, status); });
}

void OwnerEvents::HandleDeleted(ColumnFamilyHandle* handle) {
  for (const auto& listener : listeners_) listener->OnColumnFamilyHandleDeletionStarted(handle);
}

}  // namespace nacre
