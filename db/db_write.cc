#include <algorithm>
#include <chrono>
#include <utility>

#include "db/db_impl.h"
#include "db/update_limits.h"
#include "table/write_batch_format.h"
#include "util/log.h"

namespace nacre {

Status DBImpl::CheckWriteOptions(const WriteOptions& options) const {
  if (options.disable_wal && options.sync) {
    return Status::InvalidArgument("WriteOptions::sync needs the log, which disable_wal turns off");
  }
  return Status::OK();
}

Status DBImpl::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  return WriteOne(options, ValueType::kValue, key, value);
}

Status DBImpl::Delete(const WriteOptions& options, const Slice& key) {
  return WriteOne(options, ValueType::kDeletion, key, Slice());
}

Status DBImpl::WriteOne(const WriteOptions& options, ValueType type, const Slice& key,
                        const Slice& value) {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  NACRE_RETURN_IF_ERROR(CheckUpdate(key, value));
  NACRE_RETURN_IF_ERROR(Admit(options, key.size() + value.size()));
  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) NACRE_RETURN_IF_ERROR(SettleWrites());
  const WriteSequencer::Ticket ticket = sequencer_.Begin(1);
  uint64_t position = 0;
  if (logged) {
    const EncodedUpdate update(type, key, value);
    NACRE_RETURN_IF_ERROR(Append(options, ticket, update.parts(), &position));
  }
  MemTable* memtable = MemTableOf(ticket);
  if (!logged && log_ != nullptr) memtable->NoteUnlogged();
  bool new_chunk = false;
  memtable->Add(ticket.first, type, key, value, &new_chunk);
  // Until it is published the MemTable cannot be flushed, let alone freed; so look before.
  const bool full = new_chunk && memtable->MemoryUsage() >= options_.write_buffer_size;
  const uint64_t generation = memtable->generation();
  Status status = EndWrite(options, ticket, position);
  if (full) [[unlikely]]
    HandleFullMemTable(generation);
  return status;
}

Status DBImpl::Append(const WriteOptions& options, const WriteSequencer::Ticket& ticket,
                      std::span<const Slice> updates, uint64_t* position) {
  const SequenceNumber last = ticket.first + ticket.count - 1;
  Status status =
      log_->Append(last, ticket.first, static_cast<uint32_t>(ticket.count), updates, position);
  if (status.ok()) [[likely]] {
    // It travels while the MemTable takes it.
    if (AwaitsLog(options)) log_->Start();
    return status;
  }
  // Its sequence numbers stay without entries. Followers must hear of that before a later write is
  // acknowledged, or they would wait for these.
  SequenceNumber untold = untold_.load(std::memory_order_relaxed);
  while (untold < last && !untold_.compare_exchange_weak(untold, last, std::memory_order_release)) {
  }
  sequencer_.Finish(ticket);
  return Explain(std::move(status));
}

Status DBImpl::CheckBatch(const WriteOptions& options, const WriteBatch* updates) const {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  if (updates == nullptr) return Status::InvalidArgument("Write: the batch is null");
  // What is wrong with the bytes is found before any sequence number is taken.
  Status refused;
  NACRE_RETURN_IF_ERROR(
      ForEachUpdate(updates->Data(), [&](ValueType, const Slice& key, const Slice& value) {
        if (refused.ok()) [[likely]]
          refused = CheckUpdate(key, value);
      }));
  return refused;
}

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  NACRE_RETURN_IF_ERROR(CheckBatch(options, updates));
  if (updates->Count() == 0) return Status::OK();
  NACRE_RETURN_IF_ERROR(Admit(options, updates->GetDataSize()));
  return FinishWrite(options, InsertBatch(options, *updates));
}

bool DBImpl::StartWrite(const WriteOptions& options, WriteBatch* updates, StartedWrite* started) {
  started->status = CheckBatch(options, updates);
  if (!started->status.ok() || updates->Count() == 0) return true;
  if (stall_.load(std::memory_order_acquire) != Stall::kNone) return false;
  if (unsettled_count_.load(std::memory_order_acquire) > 0) return false;
  *started = InsertBatch(options, *updates);
  return true;
}

StartedWrite DBImpl::InsertBatch(const WriteOptions& options, const WriteBatch& updates) {
  StartedWrite started;
  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) started.status = SettleWrites();
  if (!started.status.ok()) return started;
  started.ticket = sequencer_.Begin(updates.Count());
  if (logged) {
    Slice encoded(updates.Data());
    encoded.remove_prefix(kWriteBatchHeader);
    started.status = Append(options, started.ticket, {&encoded, 1}, &started.position);
    if (!started.status.ok()) return started;
  }
  MemTable* memtable = MemTableOf(started.ticket);
  if (!logged && log_ != nullptr) memtable->NoteUnlogged();
  bool new_chunk = false;
  SequenceNumber sequence = started.ticket.first;
  started.inserted =
      ForEachUpdate(updates.Data(), [&](ValueType type, const Slice& key, const Slice& value) {
        memtable->Add(sequence++, type, key, value, &new_chunk);
      });
  started.full = new_chunk && memtable->MemoryUsage() >= options_.write_buffer_size;
  started.generation = memtable->generation();
  return started;
}

Status DBImpl::FinishWrite(const WriteOptions& options, const StartedWrite& started) {
  if (started.ticket.count == 0 || !started.status.ok()) return started.status;
  Status status = EndWrite(options, started.ticket, started.position);
  if (started.full) [[unlikely]]
    HandleFullMemTable(started.generation);
  return started.inserted.ok() ? status : started.inserted;
}

void DBImpl::HandleFullMemTable(uint64_t generation) {
  MutexLock lock(&mutex_);
  if (current_view_->memtables.front()->generation() != generation) return;  // Somebody did.
  if (immutables_.size() + 1 >= static_cast<size_t>(options_.max_write_buffer_number)) {
    memtable_full_ = true;
    UpdateStall();
    return;
  }
  SwitchMemTable();
}

void DBImpl::SwitchMemTable() {
  const auto generation = static_cast<uint16_t>(sequencer_.generation() + 1);
  std::shared_ptr<MemTable> fresh = NewMemTable(generation);
  std::shared_ptr<MemTable> full = current_view_->memtables.front();

  // In this order: readers can see the new MemTable, writers find it, and only then may a sequence
  // number name it.
  std::vector<std::shared_ptr<MemTable>> memtables = {fresh};
  memtables.insert(memtables.end(), current_view_->memtables.begin(),
                   current_view_->memtables.end());
  InstallView(std::move(memtables), current_view_->version);
  memtable_slots_[generation % kMemTableSlots].store(fresh.get(), std::memory_order_release);
  const SequenceNumber boundary = sequencer_.NextGeneration();

  immutables_.push_back({std::move(full), boundary});
  memtable_full_ = false;
  UpdateStall();
  MaybeSchedule();
}

void DBImpl::UpdateStall() {
  const Version& version = *current_view_->version;
  const auto level0 = version.level0_runs();
  Stall stall = Stall::kNone;
  if (closing_.load(std::memory_order_relaxed)) {
    stall = Stall::kClosed;
  } else if (memtable_full_) {
    stall = Stall::kStop;
  } else if (!options_.disable_auto_compactions) {
    const uint64_t pending = picker_.PendingBytes(version);
    if (level0 >= options_.level0_stop_writes_trigger ||
        pending >= options_.hard_pending_compaction_bytes_limit) {
      stall = Stall::kStop;
    } else if (level0 >= options_.level0_slowdown_writes_trigger ||
               pending >= options_.soft_pending_compaction_bytes_limit) {
      stall = Stall::kDelay;
    }
  }
  const Stall before = stall_.exchange(stall, std::memory_order_acq_rel);
  if (before == stall) return;
  changed_.SignalAll();
  Log(options_.info_log, LogLevel::kInfo,
      "{}: writes {} ({} MemTables to flush, {} flushes in level 0)", name_,
      stall == Stall::kNone    ? "go on"
      : stall == Stall::kDelay ? "slow down"
                               : "stop",
      immutables_.size(), level0);
}

Status DBImpl::AdmitStalled(const WriteOptions& options, uint64_t bytes) {
  constexpr uint64_t kDefaultDelayedRate = 16 << 20;
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const uint64_t start = clock_->NowNanos();
  Status status;
  uint64_t pay_until = 0;
  {
    MutexLock lock(&mutex_);
    for (;;) {
      const Stall stall = stall_.load(std::memory_order_relaxed);
      if (stall == Stall::kNone) break;
      if (stall == Stall::kClosed) return Status::ShutdownInProgress("database is closing");
      if (stall == Stall::kStop) {
        // Work that fails will not end the stall; the writer is told instead of kept.
        if (!flush_error_.ok()) return flush_error_;
        if (!memtable_full_ && CompactionFails()) return compaction_error_;
      }
      if (options.no_slowdown) return Status::Incomplete("write stall");
      if (stall == Stall::kDelay) {
        const uint64_t rate =
            options_.delayed_write_rate > 0 ? options_.delayed_write_rate : kDefaultDelayedRate;
        delayed_until_nanos_ =
            std::max(delayed_until_nanos_, start) + bytes * kNanosPerSecond / rate;
        pay_until = delayed_until_nanos_;
        break;
      }
      changed_.Wait();
    }
  }
  // Short debts are collected until a sleep is worth its cost.
  constexpr uint64_t kWorthSleeping = 1'000'000;
  if (pay_until > start + kWorthSleeping) {
    clock_->SleepFor(std::chrono::nanoseconds(pay_until - start));
  }
  counters_.stall_nanos.fetch_add(clock_->NowNanos() - start, std::memory_order_relaxed);
  return status;
}

}  // namespace nacre
