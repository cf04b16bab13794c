#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "db/db_impl.h"
#include "db/read/operation_counts.h"
#include "db/write/update_limits.h"
#include "nacre/statistics.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/perf_step.h"

namespace nacre {
namespace {

Status CheckUpdateOf(const ColumnFamilyOptions& options, ValueType type, const Slice& key,
                     const Slice& value) {
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

bool DeletesOnly(const WriteBatch& updates) { return !updates.HasPut() && !updates.HasMerge(); }

Status CheckWriteOptions(const WriteOptions& options) {
  if (options.disable_wal && options.sync) {
    return Status::InvalidArgument("WriteOptions::sync needs the log, which disable_wal turns off");
  }
  return Status::OK();
}

}  // namespace

Status DBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   const Slice& value) {
  return WriteOne(options, family, ValueType::kValue, key, value);
}

Status DBImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  return WriteOne(options, family, ValueType::kDeletion, key, Slice());
}

Status DBImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                            const Slice& key) {
  return WriteOne(options, family, ValueType::kSingleDeletion, key, Slice());
}

Status DBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                           const Slice& begin, const Slice& end) {
  return WriteOne(options, family, ValueType::kRangeDeletion, begin, end);
}

Status DBImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& operand) {
  return WriteOne(options, family, ValueType::kMerge, key, operand);
}

Status DBImpl::WriteOne(const WriteOptions& options, ColumnFamilyHandle* handle, ValueType type,
                        const Slice& key, const Slice& value) try {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(handle, &family, Use::kWrite));
  NACRE_RETURN_IF_ERROR(CheckUpdateOf(family->options(), type, key, value));
  const uint64_t start = options_.statistics == nullptr ? 0 : clock_->NowNanos();
  const bool deletes = IsDeletion(type) || type == ValueType::kRangeDeletion;
  NACRE_RETURN_IF_ERROR(Admit(options, key.size() + value.size(), deletes));
  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) NACRE_RETURN_IF_ERROR(SettleWrites());
  const WriteSequencer::Ticket ticket = sequencer_.Begin(1);
  uint64_t position = 0;
  bool full = false;
  Status status;
  // Later writes wait for the ticket: whatever happens, it ends or breaks off.
  bool inserted = type == ValueType::kRangeDeletion;  // Those may be there in part.
  try {
    if (!WriteSequencer::HasNumbers(ticket)) [[unlikely]]
      return GiveUpTicket(ticket, Status::OK());
    if (logged) {
      const EncodedUpdate update(type, family->id(), key, value);
      NACRE_RETURN_IF_ERROR(Append(options, ticket, update.parts(), &position));
    }
    MemTable* memtable = MemTableOf(family, ticket);
    if (!logged && log_ != nullptr) memtable->NoteUnlogged();
    bool new_chunk = false;
    {
      const PerfTimer timer(&PerfContext::write_memtable_time);
      memtable->Add(ticket.first, type, key, value, &new_chunk);
    }
    inserted = true;
    // Until it is published the MemTable cannot be flushed, let alone freed; so look before.
    full = new_chunk && memtable->MemoryUsage() >= family->options().write_buffer_size;
    status = EndWrite(options, ticket, position);
  } catch (...) {
    return inserted || position != 0 ? BreakOff(ticket, StatusOfException())
                                     : GiveUpTicket(ticket, StatusOfException());
  }
  if (full) [[unlikely]]
    HandleFullMemTable(ticket.generation);
  if (options_.statistics != nullptr) [[unlikely]] {
    CountWrite(options_.statistics.get(), clock_, start, status, /*updates=*/1,
               key.size() + value.size(), logged);
  }
  return status;
} catch (...) {
  return StatusOfException();
}

Status DBImpl::Append(const WriteOptions& options, const WriteSequencer::Ticket& ticket,
                      std::span<const Slice> updates, uint64_t* position) {
  const PerfTimer timer(&PerfContext::write_wal_time);
  const SequenceNumber last = ticket.first + ticket.count - 1;
  Status status = CatchAll([&] {
    return log_->Append(last, ticket.first, static_cast<uint32_t>(ticket.count), updates, position);
  });
  if (status.ok()) [[likely]] {
    // It travels while the MemTable takes it.
    if (AwaitsLog(options)) log_->Start();
    return status;
  }
  return Explain(GiveUpTicket(ticket, std::move(status)));
}

Status DBImpl::GiveUpTicket(const WriteSequencer::Ticket& ticket, Status why) {
  if (!WriteSequencer::HasNumbers(ticket)) {
    why = Status::Aborted("the database has given out all of its sequence numbers");
    troubled_.fault.Set(why);
    MutexLock lock(&state_.mutex);
    UpdateStall();
  }
  // Followers must hear that these numbers have no entries before a later write is acknowledged, or
  // they would wait for them.
  const SequenceNumber last = ticket.first + ticket.count - 1;
  SequenceNumber untold = troubled_.untold.load(std::memory_order_relaxed);
  while (log_ != nullptr && untold < last &&
         !troubled_.untold.compare_exchange_weak(untold, last, std::memory_order_release)) {
  }
  if (!sequencer_.Finish(ticket, why_stuck_).ok()) troubled_.unsettled.Add({.ticket = ticket});
  return why;
}

Status DBImpl::BreakOff(const WriteSequencer::Ticket& ticket, Status why) {
  if (ticket.first + ticket.count - 1 <= sequencer_.LastPublished()) return why;
  troubled_.fault.Set(why);
  Log(options_.info_log, LogLevel::kError,
      "{}: a write broke off; no more are taken until it is opened again: {}", name_,
      why.ToString());
  MutexLock lock(&state_.mutex);
  UpdateStall();
  changed_.SignalAll();
  return why;
}

Status DBImpl::CheckBatch(const WriteOptions& options, const WriteBatch* updates,
                          std::shared_ptr<const ColumnFamilySet>* families) const {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  if (updates == nullptr) return Status::InvalidArgument("Write: the batch is null");
  // What is wrong with the bytes is found before any sequence number is taken.
  Status refused;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      updates->Data(), [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
        const ColumnFamily* family = default_family_.get();
        if (id != kDefaultFamily) [[unlikely]] {
          if (*families == nullptr) *families = state_.Families();
          family = (*families)->Find(id);
          if (family == nullptr && refused.ok()) {
            refused = Status::InvalidArgument("Invalid column family specified in write batch: " +
                                              std::to_string(id));
          }
        }
        if (refused.ok()) [[likely]]
          refused = CheckUpdateOf(family->options(), type, key, value);
      }));
  return refused;
}

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) try {
  std::shared_ptr<const ColumnFamilySet> families;
  NACRE_RETURN_IF_ERROR(CheckBatch(options, updates, &families));
  if (updates->Count() == 0) return Status::OK();
  const uint64_t start = options_.statistics == nullptr ? 0 : clock_->NowNanos();
  const bool stalled = stall_.load(std::memory_order_relaxed) != Stall::kNone;
  const bool deletes = stalled && DeletesOnly(*updates);  // Which takes a look at all of them.
  NACRE_RETURN_IF_ERROR(Admit(options, updates->GetDataSize(), deletes));
  Status status = FinishWrite(options, InsertBatch(options, *updates, families.get()));
  if (options_.statistics != nullptr) [[unlikely]] {
    CountWrite(options_.statistics.get(), clock_, start, status, updates->Count(),
               updates->GetDataSize(), log_ != nullptr && !options.disable_wal);
  }
  return status;
} catch (...) {
  return StatusOfException();
}

bool DBImpl::StartWrite(const WriteOptions& options, WriteBatch* updates,
                        StartedWrite* started) try {
  std::shared_ptr<const ColumnFamilySet> families;
  started->status = CheckBatch(options, updates, &families);
  if (!started->status.ok() || updates->Count() == 0) return true;
  if (stall_.load(std::memory_order_acquire) != Stall::kNone) return false;
  if (troubled_.unsettled.any()) return false;
  *started = InsertBatch(options, *updates, families.get());
  return true;
} catch (...) {
  started->status = StatusOfException();
  return true;
}

StartedWrite DBImpl::InsertBatch(const WriteOptions& options, const WriteBatch& updates,
                                 const ColumnFamilySet* families) {
  StartedWrite started;
  const bool logged = log_ != nullptr && !options.disable_wal;
  if (logged) started.status = SettleWrites();
  if (!started.status.ok()) return started;
  started.ticket = sequencer_.Begin(updates.Count());
  bool touched = false;
  // Later writes wait for the ticket: whatever happens, it ends or breaks off.
  try {
    if (!WriteSequencer::HasNumbers(started.ticket)) [[unlikely]] {
      started.status = GiveUpTicket(started.ticket, Status::OK());
      return started;
    }
    if (logged) {
      Slice encoded(updates.Data());
      encoded.remove_prefix(kWriteBatchHeader);
      started.status = Append(options, started.ticket, {&encoded, 1}, &started.position);
      if (!started.status.ok()) return started;
    }
    touched = true;
    InsertUpdates(updates, families, logged, &started);
  } catch (...) {
    started.status = touched ? BreakOff(started.ticket, StatusOfException())
                             : GiveUpTicket(started.ticket, StatusOfException());
  }
  return started;
}

void DBImpl::InsertUpdates(const WriteBatch& updates, const ColumnFamilySet* families, bool logged,
                           StartedWrite* started) {
  const PerfTimer timer(&PerfContext::write_memtable_time);
  SequenceNumber sequence = started->ticket.first;
  ColumnFamily* family = nullptr;
  MemTable* memtable = nullptr;
  bool new_chunk = false;
  // Until it is published no MemTable can be flushed, let alone freed; so look before.
  const auto end_family = [&] {
    started->full |= new_chunk && memtable->MemoryUsage() >= family->options().write_buffer_size;
    new_chunk = false;
  };
  started->inserted = ForEachUpdate(
      updates.Data(), [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
        if (memtable == nullptr || family->id() != id) [[unlikely]] {
          end_family();
          family = id == kDefaultFamily ? default_family_.get() : families->Find(id);
          memtable = MemTableOf(family, started->ticket);
          if (!logged && log_ != nullptr) memtable->NoteUnlogged();
        }
        memtable->Add(sequence++, type, key, value, &new_chunk);
      });
  end_family();
}

Status DBImpl::FinishWrite(const WriteOptions& options, const StartedWrite& started) {
  if (started.ticket.count == 0 || !started.status.ok()) return started.status;
  Status status;
  try {
    status = EndWrite(options, started.ticket, started.position);
  } catch (...) {
    return BreakOff(started.ticket, StatusOfException());
  }
  return CatchAll([&] {
    if (started.full) [[unlikely]]
      HandleFullMemTable(started.ticket.generation);
    return started.inserted.ok() ? status : started.inserted;
  });
}

MemTable* DBImpl::MakeMemTable(ColumnFamily* family, uint16_t generation) {
  MutexLock lock(&state_.mutex);
  return MemTableFor(family, generation);
}

MemTable* DBImpl::MemTableFor(ColumnFamily* family, uint16_t generation) {
  if (MemTable* made = family->FindMemTable(generation); made != nullptr) return made;
  // For its filter: a word for every 512 bytes.
  constexpr size_t kFilterFraction = 64;
  auto fresh = std::make_shared<MemTable>(family->user_comparator(), generation,
                                          family->options().write_buffer_size / kFilterFraction,
                                          memtable_blocks_);
  MemTable* memtable = fresh.get();
  if (family->dropped()) dropped_entries_ = true;  // By a writer who came just before.
  // Readers can see it before anybody writes to it.
  state_.InstallView(family, family->MemTablesWith(std::move(fresh)),
                     family->current_view()->version);
  family->SetMemTable(memtable);
  return memtable;
}

void DBImpl::HandleFullMemTable(uint16_t generation) {
  MutexLock lock(&state_.mutex);
  if (sequencer_.generation() != generation) return;  // Somebody did.
  if (immutables_.size() + 1 >= state_.MemTablesMax()) {
    background_.memtable_full = true;
    UpdateStall();
    return;
  }
  SwitchGeneration();
}

void DBImpl::SwitchGeneration() {
  const uint16_t full = sequencer_.generation();
  const auto generation = static_cast<uint16_t>(full + 1);
  const SequenceNumber earliest =
      immutables_.empty() ? state_.flushed + 1 : immutables_.back().boundary;
  for (const auto& [id, family] : state_.families->by_id) {
    // What was written now will be written next; writers need not wait for one another then.
    const MemTable* memtable = family->FindMemTable(full);
    if (memtable == nullptr || memtable->entries() == 0) continue;
    MemTableFor(family.get(), generation);
    events_.MemTableSealed(*family, *memtable, earliest);
  }
  immutables_.push_back({full, 0});  // First, as it may throw: a generation that ends is flushed.
  immutables_.back().boundary = sequencer_.NextGeneration();
  background_.memtable_full = false;
  dropped_entries_ = false;
  UpdateStall();
  MaybeSchedule();
}

bool DBImpl::HasEntries(const ColumnFamily* only) const {
  if (only == nullptr && dropped_entries_) return true;
  const uint16_t generation = sequencer_.generation();
  for (const auto& [id, family] : state_.families->by_id) {
    if (only != nullptr && family.get() != only) continue;
    const MemTable* memtable = family->FindMemTable(generation);
    if (memtable != nullptr && memtable->entries() > 0) return true;
  }
  return false;
}

Stall DBImpl::StallOf(const ColumnFamily& family) const {
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

void DBImpl::UpdateStall() {
  Stall stall = Stall::kNone;
  int level0 = 0;
  const ColumnFamily* behind_it = default_family_.get();
  for (const auto& [id, family] : state_.families->by_id) {
    const Stall of_family = StallOf(*family);
    if (of_family > stall) behind_it = family.get();
    stall = std::max(stall, of_family);
    level0 = std::max(level0, family->version().level0_runs());
  }
  if (background_.memtable_full || background_.pool_full || !troubled_.fault.status().ok()) {
    stall = Stall::kStop;
  }
  if (closing_.load(std::memory_order_relaxed)) stall = Stall::kClosed;
  const Stall before = stall_.exchange(stall, std::memory_order_acq_rel);
  if (before == stall) return;
  changed_.SignalAll();
  if (stall != Stall::kClosed) {
    events_.StallChanged(*behind_it, ConditionOf(before), ConditionOf(stall));
  }
  Log(options_.info_log, LogLevel::kInfo,
      "{}: writes {} ({} generations of MemTables to flush, {} flushes in level 0)", name_,
      stall == Stall::kNone    ? "go on"
      : stall == Stall::kDelay ? "slow down"
                               : "stop",
      immutables_.size(), level0);
}

Status DBImpl::AdmitStalled(const WriteOptions& options, uint64_t bytes, bool deletes) {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const PerfTimer timer(&PerfContext::write_delay_time);
  const uint64_t start = clock_->NowNanos();
  Status status;
  uint64_t pay_until = 0;
  {
    MutexLock lock(&state_.mutex);
    for (;;) {
      const Stall stall = stall_.load(std::memory_order_relaxed);
      if (stall == Stall::kNone) break;
      if (stall == Stall::kClosed) return Status::ShutdownInProgress("database is closing");
      if (stall == Stall::kStop) {
        NACRE_RETURN_IF_ERROR(troubled_.fault.status());
        if (deletes && background_.pool_full && !background_.memtable_full) break;
        // Work that fails will not end the stall; the writer is told instead of kept.
        Status failure = background_.flush_error;
        if (failure.ok() && !background_.memtable_full && CompactionFails()) {
          failure = background_.compaction_error;
        }
        if (!failure.ok()) return failure;
      }
      if (options.no_slowdown) return Status::Incomplete("write stall");
      if (stall == Stall::kDelay) {
        const uint64_t rate =
            live_.delayed_write_rate > 0 ? live_.delayed_write_rate.load() : kDefaultDelayedRate;
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
  const uint64_t stalled = clock_->NowNanos() - start;
  counters_.stall_nanos.fetch_add(stalled, std::memory_order_relaxed);
  if (options_.statistics != nullptr) {
    options_.statistics->recordTick(STALL_MICROS, stalled / 1000);
    options_.statistics->reportTimeToHistogram(WRITE_STALL, stalled / 1000);
  }
  return status;
}

}  // namespace nacre
