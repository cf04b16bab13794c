#include <algorithm>
#include <chrono>
#include <utility>

#include "db/db_impl.h"
#include "db/update_limits.h"
#include "table/write_batch_format.h"
#include "util/log.h"

namespace nacre {
namespace {

Status CheckUpdateOf(const Options& options, ValueType type, uint32_t family, const Slice& key,
                     const Slice& value) {
  if (family != kDefaultFamily) [[unlikely]] {
    return Status::NotSupported("column family " + std::to_string(family));
  }
  if (type == ValueType::kRangeDeletion) [[unlikely]] {
    NACRE_RETURN_IF_ERROR(CheckUpdate(value, Slice()));
    if (options.comparator->Compare(key, value) > 0) {
      return Status::InvalidArgument("DeleteRange: the end is before the beginning");
    }
  }
  if (type == ValueType::kMerge && options.merge_operator == nullptr) {
    return Status::NotSupported("Merge without Options::merge_operator");
  }
  return CheckUpdate(key, value);
}

}  // namespace

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

Status DBImpl::SingleDelete(const WriteOptions& options, const Slice& key) {
  return WriteOne(options, ValueType::kSingleDeletion, key, Slice());
}

Status DBImpl::DeleteRange(const WriteOptions& options, const Slice& begin, const Slice& end) {
  return WriteOne(options, ValueType::kRangeDeletion, begin, end);
}

Status DBImpl::Merge(const WriteOptions& options, const Slice& key, const Slice& operand) {
  return WriteOne(options, ValueType::kMerge, key, operand);
}

Status DBImpl::WriteOne(const WriteOptions& options, ValueType type, const Slice& key,
                        const Slice& value) {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  NACRE_RETURN_IF_ERROR(CheckUpdateOf(options_, type, kDefaultFamily, key, value));
  NACRE_RETURN_IF_ERROR(Admit(options, key.size() + value.size()));
  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) NACRE_RETURN_IF_ERROR(SettleWrites());
  const WriteSequencer::Ticket ticket = sequencer_.Begin(1);
  uint64_t position = 0;
  if (logged) {
    const EncodedUpdate update(type, kDefaultFamily, key, value);
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

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  if (updates == nullptr) return Status::InvalidArgument("Write: the batch is null");
  // What is wrong with the bytes is found before any sequence number is taken.
  Status refused;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      updates->Data(), [&](ValueType type, uint32_t family, const Slice& key, const Slice& value) {
        if (refused.ok()) [[likely]]
          refused = CheckUpdateOf(options_, type, family, key, value);
      }));
  NACRE_RETURN_IF_ERROR(std::move(refused));
  const uint32_t count = updates->Count();
  if (count == 0) return Status::OK();
  NACRE_RETURN_IF_ERROR(Admit(options, updates->GetDataSize()));

  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) NACRE_RETURN_IF_ERROR(SettleWrites());
  const WriteSequencer::Ticket ticket = sequencer_.Begin(count);
  uint64_t position = 0;
  if (logged) {
    Slice encoded(updates->Data());
    encoded.remove_prefix(kWriteBatchHeader);
    NACRE_RETURN_IF_ERROR(Append(options, ticket, {&encoded, 1}, &position));
  }
  MemTable* memtable = MemTableOf(ticket);
  if (!logged && log_ != nullptr) memtable->NoteUnlogged();
  bool new_chunk = false;
  SequenceNumber sequence = ticket.first;
  const Status inserted = ForEachUpdate(
      updates->Data(), [&](ValueType type, uint32_t, const Slice& key, const Slice& value) {
        memtable->Add(sequence++, type, key, value, &new_chunk);
      });
  const bool full = new_chunk && memtable->MemoryUsage() >= options_.write_buffer_size;
  const uint64_t generation = memtable->generation();
  Status status = EndWrite(options, ticket, position);
  if (full) [[unlikely]]
    HandleFullMemTable(generation);
  return inserted.ok() ? status : inserted;
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
