#include "db/write/write_path.h"

#include <algorithm>
#include <string>
#include <utility>

#include "db/context/operation_counts.h"
#include "db/wal/log_seal.h"
#include "db/write/update_check.h"
#include "nacre/statistics.h"
#include "table/format/write_batch_format.h"
#include "util/exceptions.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/perf_step.h"

namespace nacre {
namespace {

bool DeletesOnly(const WriteBatch& updates) { return !updates.HasPut() && !updates.HasMerge(); }

Slice FirstKey(const WriteBatch& updates) {
  Slice first;
  bool found = false;
  // What cannot be read fails when it is inserted.
  ForEachUpdate(updates.Data(), [&](ValueType, uint32_t, const Slice& key, const Slice&) {
    if (!std::exchange(found, true)) first = key;
  }).IgnoreError();
  return first;
}

Status CheckWriteOptions(const WriteOptions& options) {
  if (options.disable_wal && options.sync) {
    return Status::InvalidArgument("WriteOptions::sync needs the log, which disable_wal turns off");
  }
  return Status::OK();
}

}  // namespace

Status WritePath::WriteOne(const WriteOptions& options, ColumnFamily* family, ValueType type,
                           const Slice& key, const Slice& value) try {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  NACRE_RETURN_IF_ERROR(CheckUpdateOf(family->options(), type, key, value));
  const SlowOperationWatch watch(&context_.slow_operations, "Write", family->name(), key);
  const uint64_t start = context_.options.statistics == nullptr ? 0 : context_.clock->NowNanos();
  const bool deletes = IsDeletion(type) || type == ValueType::kRangeDeletion;
  NACRE_RETURN_IF_ERROR(controller_->Admit(options, key.size() + value.size(), deletes));
  const bool logged = IsLogged(options);
  if (logged) NACRE_RETURN_IF_ERROR(Settle());
  const WriteSequencer::Ticket ticket = sequencer_->Begin(1);
  uint64_t position = 0;
  WrittenMemory memory = WrittenMemory::kEnough;
  Status status;
  // Later writes wait for the ticket: whatever happens, it ends or breaks off.
  bool inserted = type == ValueType::kRangeDeletion;  // Those may be there in part.
  try {
    if (!WriteSequencer::HasNumbers(ticket)) [[unlikely]]
      return GiveUp(ticket, Status::OK());
    MemTable* memtable = generations_->MemTableOf(family, ticket);
    const uint64_t hash = Hash64(key);
    memtable->Prefetch(hash);  // It comes while the log takes the record, and the entry is filled.
    if (logged) {
      const EncodedUpdate update(type, family->id(), key, value);
      NACRE_RETURN_IF_ERROR(Append(ticket, update.parts(), &position));
      // It travels while the MemTable takes it.
      if (AwaitsLog(options)) log_->Start();
    }
    if (!logged && log_ != nullptr) memtable->NoteUnlogged();
    bool new_chunk = false;
    {
      const PerfTimer timer(&PerfContext::write_memtable_time);
      memtable->Add(ticket.first, type, key, hash, value, &new_chunk);
    }
    inserted = true;
    // Until it is published the MemTable cannot be flushed, let alone freed; so look before.
    if (new_chunk) [[unlikely]]
      memory = MemTableGenerations::MemoryOf(*family, *memtable);
    status = End(options, ticket, position, /*finished=*/false);
  } catch (...) {
    return inserted || position != 0 ? BreakOff(ticket, StatusOfException())
                                     : GiveUp(ticket, StatusOfException());
  }
  if (memory != WrittenMemory::kEnough) [[unlikely]]
    generations_->MakeRoom(memory, ticket.generation, !options.no_slowdown);
  if (context_.options.statistics != nullptr) [[unlikely]] {
    CountWrite(context_.options.statistics.get(), context_.clock, start, status, /*updates=*/1,
               key.size() + value.size(), logged);
  }
  return status;
} catch (...) {
  return StatusOfException();
}

Status WritePath::Append(const WriteSequencer::Ticket& ticket, std::span<const Slice> updates,
                         uint64_t* position) {
  const PerfTimer timer(&PerfContext::write_wal_time);
  const SequenceNumber last = ticket.first + ticket.count - 1;
  const auto count = static_cast<uint32_t>(ticket.count);
  Status status = CatchAll([&]() -> Status {
    if (encryptor_ == nullptr) [[likely]]
      return log_->Append(last, ticket.first, count, updates, position);
    std::string payload;
    NACRE_RETURN_IF_ERROR(encryptor_->Encrypt(ticket.first, count, updates, &payload));
    const Slice encrypted(payload);
    return log_->Append(last, ticket.first, count, {&encrypted, 1}, position);
  });
  if (status.ok()) [[likely]]
    return status;
  return context_.ExplainFailure(GiveUp(ticket, std::move(status)));
}

Status WritePath::GiveUp(const WriteSequencer::Ticket& ticket, Status why) {
  if (!WriteSequencer::HasNumbers(ticket)) {
    why = Status::Aborted("the database has given out all of its sequence numbers");
    controller_->StopFor(why);
  }
  // Followers must hear that these numbers have no entries before a later write is acknowledged, or
  // they would wait for them.
  const SequenceNumber last = ticket.first + ticket.count - 1;
  SequenceNumber untold = untold_.load(std::memory_order_relaxed);
  while (log_ != nullptr && untold < last &&
         !untold_.compare_exchange_weak(untold, last, std::memory_order_release)) {
  }
  if (!sequencer_->Finish(ticket, why_stuck_).ok()) unsettled_.Add({.ticket = ticket});
  return why;
}

Status WritePath::BreakOff(const WriteSequencer::Ticket& ticket, Status why) {
  if (ticket.first + ticket.count - 1 <= sequencer_->LastPublished()) return why;
  Log(context_.options.info_log, LogLevel::kError,
      "{}: a write broke off; no more are taken until it is opened again: {}", context_.name,
      why.ToString());
  controller_->StopFor(why);
  return why;
}

Status WritePath::CheckBatch(const WriteOptions& options, const WriteBatch* updates,
                             std::shared_ptr<const ColumnFamilySet>* families) const {
  NACRE_RETURN_IF_ERROR(CheckWriteOptions(options));
  if (updates == nullptr) return Status::InvalidArgument("Write: the batch is null");
  // What is wrong with the bytes is found before any sequence number is taken.
  Status refused;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      updates->Data(), [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
        const ColumnFamily* family = state_->default_family.get();
        if (id != kDefaultFamily) [[unlikely]] {
          if (*families == nullptr) *families = state_->Families();
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

Status WritePath::Write(const WriteOptions& options, WriteBatch* updates) try {
  std::shared_ptr<const ColumnFamilySet> families;
  NACRE_RETURN_IF_ERROR(CheckBatch(options, updates, &families));
  if (updates->Count() == 0) return Status::OK();
  const bool watched = context_.slow_operations.threshold().count() != 0;
  const SlowOperationWatch watch(&context_.slow_operations, "Write", /*family=*/"",
                                 watched ? FirstKey(*updates) : Slice(), updates->Count());
  const uint64_t start = context_.options.statistics == nullptr ? 0 : context_.clock->NowNanos();
  const bool stalled = controller_->stall() != Stall::kNone;
  const bool deletes = stalled && DeletesOnly(*updates);  // Which takes a look at all of them.
  NACRE_RETURN_IF_ERROR(controller_->Admit(options, updates->GetDataSize(), deletes));
  Status status = Finish(options, InsertBatch(options, *updates, families.get(), /*send=*/true));
  if (context_.options.statistics != nullptr) [[unlikely]] {
    CountWrite(context_.options.statistics.get(), context_.clock, start, status, updates->Count(),
               updates->GetDataSize(), IsLogged(options));
  }
  return status;
} catch (...) {
  return StatusOfException();
}

bool WritePath::Start(const WriteOptions& options, WriteBatch* updates, StartedWrite* started) try {
  std::shared_ptr<const ColumnFamilySet> families;
  started->status = CheckBatch(options, updates, &families);
  if (!started->status.ok() || updates->Count() == 0) return true;
  if (controller_->stall() != Stall::kNone) return false;
  if (unsettled_.any()) return false;
  *started = InsertBatch(options, *updates, families.get(), /*send=*/false);
  return true;
} catch (...) {
  started->status = StatusOfException();
  return true;
}

StartedWrite WritePath::InsertBatch(const WriteOptions& options, const WriteBatch& updates,
                                    const ColumnFamilySet* families, bool send) {
  StartedWrite started;
  const bool logged = IsLogged(options);
  if (logged) started.status = Settle();
  if (!started.status.ok()) return started;
  started.ticket = sequencer_->Begin(updates.Count());
  bool touched = false;
  // Later writes wait for the ticket: whatever happens, it ends or breaks off.
  try {
    if (!WriteSequencer::HasNumbers(started.ticket)) [[unlikely]] {
      started.status = GiveUp(started.ticket, Status::OK());
      return started;
    }
    if (logged) {
      Slice encoded(updates.Data());
      encoded.remove_prefix(kWriteBatchHeader);
      started.status = Append(started.ticket, {&encoded, 1}, &started.position);
      if (!started.status.ok()) return started;
      started.unsent = AwaitsLog(options) && !send;
      if (AwaitsLog(options) && send) log_->Start();
    }
    touched = true;
    InsertUpdates(updates, families, logged, &started);
  } catch (...) {
    started.status = touched ? BreakOff(started.ticket, StatusOfException())
                             : GiveUp(started.ticket, StatusOfException());
  }
  return started;
}

void WritePath::InsertUpdates(const WriteBatch& updates, const ColumnFamilySet* families,
                              bool logged, StartedWrite* started) {
  const PerfTimer timer(&PerfContext::write_memtable_time);
  SequenceNumber sequence = started->ticket.first;
  ColumnFamily* family = nullptr;
  MemTable* memtable = nullptr;
  bool new_chunk = false;
  // Until it is published no MemTable can be flushed, let alone freed; so look before.
  const auto end_family = [&] {
    if (new_chunk) {
      started->memory =
          std::max(started->memory, MemTableGenerations::MemoryOf(*family, *memtable));
    }
    new_chunk = false;
  };
  started->inserted = ForEachUpdate(
      updates.Data(), [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
        if (memtable == nullptr || family->id() != id) [[unlikely]] {
          end_family();
          family = id == kDefaultFamily ? state_->default_family.get() : families->Find(id);
          memtable = generations_->MemTableOf(family, started->ticket);
          if (!logged && log_ != nullptr) memtable->NoteUnlogged();
        }
        memtable->Add(sequence++, type, key, value, &new_chunk);
      });
  end_family();
}

Status WritePath::Finish(const WriteOptions& options, const StartedWrite& started) {
  if (started.ticket.count == 0 || !started.status.ok()) return started.status;
  Status status;
  try {
    status = End(options, started.ticket, started.position, started.finished);
  } catch (...) {
    return BreakOff(started.ticket, StatusOfException());
  }
  return CatchAll([&] {
    if (started.memory != WrittenMemory::kEnough) [[unlikely]]
      generations_->MakeRoom(started.memory, started.ticket.generation, !options.no_slowdown);
    return started.inserted.ok() ? status : started.inserted;
  });
}

bool WritePath::TryFinish(const WriteOptions& options, StartedWrite* started, Status* status) {
  if (started->ticket.count == 0 || !started->status.ok()) {
    *status = started->status;
    return true;
  }
  if (!started->finished) {
    if (started->position != 0 && AwaitsLog(options) && !log_->Has(started->position)) return false;
    started->finished = sequencer_->TryFinish(started->ticket);
  }
  // Without need for room in MemTables, or to tell followers of what the log did not take.
  if (!started->finished || started->memory != WrittenMemory::kEnough ||
      !sequencer_->IsPublished(started->ticket.first + started->ticket.count) ||
      untold_.load(std::memory_order_acquire) != 0) {
    return false;
  }
  *status = started->inserted;
  return true;
}

Status WritePath::OpenLog(uint64_t next_number, const LogReadResult& replayed, LogSpace* space) {
  LogWriterOptions options;
  options.client = context_.client;
  options.clock = context_.clock;
  options.database_id = context_.database_id;
  options.first_segment_bytes = kFirstSegmentBytes;
  options.segment_bytes = LogSegmentBytes(state_->default_family->options().write_buffer_size);
  options.next_number = next_number;
  options.previous_number = replayed.end_number;
  options.previous_bytes = replayed.end_bytes;
  if (context_.options.manual_wal_flush) {
    // What is published may be on its way to the log still.
    options.complete_through = [before = sequencer_->LastPublished()] { return before; };
  } else {
    options.complete_through = [this] { return sequencer_->LastPublished(); };
  }
  if (context_.keys != nullptr) {
    NACRE_RETURN_IF_ERROR(LogEncryptor::Make(*context_.keys->ring(), context_.database_id,
                                             context_.epoch, &encryptor_));
    options.encrypted = true;
  }
  options.log = context_.options.info_log.get();
  return LogWriter::Open(options, space, &log_);
}

Status WritePath::SyncLog() {
  if (log_ == nullptr) return Status::OK();
  if (context_.options.statistics == nullptr) return context_.ExplainFailure(log_->Sync());
  const uint64_t start = context_.clock->NowNanos();
  Status status = context_.ExplainFailure(log_->Sync());
  context_.options.statistics->recordTick(WAL_FILE_SYNCED);
  context_.options.statistics->reportTimeToHistogram(WAL_FILE_SYNC_MICROS,
                                                     (context_.clock->NowNanos() - start) / 1000);
  return status;
}

Status WritePath::End(const WriteOptions& options, const WriteSequencer::Ticket& ticket,
                      uint64_t position, bool finished) {
  if (position != 0 && AwaitsLog(options) && !finished) {
    PerfTimer timer(&PerfContext::write_wal_time);
    Status status = log_->Await(position);
    timer.Stop();
    if (!status.ok()) [[unlikely]] {
      unsettled_.Add({.ticket = ticket, .position = position});
      return context_.ExplainFailure(std::move(status));
    }
  }
  PerfTimer timer(&PerfContext::write_thread_wait_nanos);
  Status status = finished ? Status::OK() : sequencer_->Finish(ticket, why_stuck_);
  if (status.ok()) [[likely]] {
    status = sequencer_->AwaitPublished(ticket.first + ticket.count, why_stuck_);
  } else {
    unsettled_.Add({.ticket = ticket});
  }
  timer.Stop();
  if (!status.ok()) [[unlikely]] {
    NACRE_POINT("write.given-up");
    return context_.ExplainFailure(
        status.WithContext("a write before this one is not in the log yet"));
  }
  // Acquire: pairs with GiveUp, by way of the sequencer.
  const bool told = untold_.load(std::memory_order_acquire) == 0 || position == 0;
  return told ? Status::OK() : TellFollowers();
}

Status WritePath::WhyStuck() const {
  NACRE_RETURN_IF_ERROR(controller_->fault());
  return log_ != nullptr && unsettled_.any() ? log_->status() : Status::OK();
}

Status WritePath::TellFollowers() {
  MutexLock settling(&settling_);
  SequenceNumber untold = untold_.load(std::memory_order_acquire);
  if (untold == 0) return Status::OK();
  const bool all = untold <= sequencer_->LastPublished();
  if (Status status = log_->StartSegment(); !status.ok())
    return context_.ExplainFailure(std::move(status));
  // Unless there are more meanwhile.
  if (all) untold_.compare_exchange_strong(untold, 0, std::memory_order_acq_rel);
  return Status::OK();
}

Status WritePath::SealLog(const std::vector<LogSegment>& segments) {
  if (segments.empty()) return Status::OK();
  std::unique_ptr<LogSealer> sealer;
  NACRE_RETURN_IF_ERROR(LogSealer::Create(context_.client, context_.database_id, &sealer));
  bool all = true;
  for (const LogSegment& segment : segments) {
    if (Status status = sealer->Seal(segment, {}); !status.ok()) {
      all = false;
      Log(context_.options.info_log, LogLevel::kWarn,
          "{}: log segment {} is not marked as sealed: {}", context_.name, segment.number,
          status.ToString());
    }
  }
  // The root has named the new manifest before.
  if (!all) context_.clock->SleepFor(kUnmarkedPause);
  return Status::OK();
}

Status WritePath::Settle() {
  if (log_ == nullptr || !unsettled_.any()) [[likely]]
    return Status::OK();
  MutexLock settling(&settling_);
  UnsettledWrite write;
  // One before it may be given up while this one waits for it to be published.
  const auto is_first = [this, &write] {
    UnsettledWrite first;
    return unsettled_.First(&first) && first.ticket.first == write.ticket.first;
  };
  while (unsettled_.First(&write)) {
    if (Status status = log_->Await(write.position); !status.ok()) {
      return context_.ExplainFailure(std::move(status));
    }
    bool overtaken = false;
    Status status = sequencer_->Finish(write.ticket, [&] {
      overtaken = !is_first();
      return overtaken ? Status::TryAgain("an earlier write is to be settled first") : WhyStuck();
    });
    if (status.ok()) {
      unsettled_.Remove(write);
    } else if (!overtaken) {
      return context_.ExplainFailure(std::move(status));
    }
  }
  return Status::OK();
}

}  // namespace nacre
