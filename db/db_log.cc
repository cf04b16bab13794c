#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "nacre/statistics.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/perf_step.h"

namespace nacre {

Status DBImpl::OpenLog(uint64_t next_number, const LogReadResult& replayed) {
  LogWriterOptions options;
  options.client = client_;
  options.clock = clock_;
  options.database_id = database_id_;
  options.segment_bytes = LogSegmentBytes(default_family_->options().write_buffer_size);
  options.next_number = next_number;
  options.previous_number = replayed.end_number;
  options.previous_bytes = replayed.end_bytes;
  if (options_.manual_wal_flush) {
    // What is published may be on its way to the log still.
    options.settled = [before = sequencer_.LastPublished()] { return before; };
  } else {
    options.settled = [this] { return sequencer_.LastPublished(); };
  }
  options.log = options_.info_log.get();
  return LogWriter::Open(options, this, &log_);
}

Status DBImpl::FlushWAL(bool /*sync*/) {
  if (log_ == nullptr) return Status::OK();
  if (options_.statistics == nullptr) return Explain(log_->Sync());
  const uint64_t start = clock_->NowNanos();
  Status status = Explain(log_->Sync());
  options_.statistics->recordTick(WAL_FILE_SYNCED);
  options_.statistics->reportTimeToHistogram(WAL_FILE_SYNC_MICROS,
                                             (clock_->NowNanos() - start) / 1000);
  return status;
}

Status DBImpl::EndWrite(const WriteOptions& options, const WriteSequencer::Ticket& ticket,
                        uint64_t position) {
  if (position != 0 && AwaitsLog(options)) {
    PerfTimer timer(&PerfContext::write_wal_time);
    Status status = log_->Await(position);
    timer.Stop();
    if (!status.ok()) [[unlikely]] {
      troubled_.unsettled.Add({.ticket = ticket, .position = position});
      return Explain(std::move(status));
    }
  }
  PerfTimer timer(&PerfContext::write_thread_wait_nanos);
  Status status = sequencer_.Finish(ticket, why_stuck_);
  if (status.ok()) [[likely]] {
    status = sequencer_.AwaitPublished(ticket.first + ticket.count, why_stuck_);
  } else {
    troubled_.unsettled.Add({.ticket = ticket});
  }
  timer.Stop();
  if (!status.ok()) [[unlikely]] {
    NACRE_POINT("write.given-up");
    return Explain(status.WithContext("a write before this one is not in the log yet"));
  }
  // Acquire: pairs with GiveUpTicket, by way of the sequencer.
  const bool told = troubled_.untold.load(std::memory_order_acquire) == 0 || position == 0;
  return told ? Status::OK() : TellFollowers();
}

Status DBImpl::WhyStuck() const {
  NACRE_RETURN_IF_ERROR(troubled_.fault.status());
  return log_ != nullptr && troubled_.unsettled.any() ? log_->status() : Status::OK();
}

Status DBImpl::TellFollowers() {
  MutexLock settling(&troubled_.settling);
  SequenceNumber untold = troubled_.untold.load(std::memory_order_acquire);
  if (untold == 0) return Status::OK();
  const bool all = untold <= sequencer_.LastPublished();
  if (Status status = log_->StartSegment(); !status.ok()) return Explain(std::move(status));
  // Unless there are more meanwhile.
  if (all) troubled_.untold.compare_exchange_strong(untold, 0, std::memory_order_acq_rel);
  return Status::OK();
}

Status DBImpl::SealLog(const std::vector<LogSegment>& segments) {
  if (segments.empty()) return Status::OK();
  std::unique_ptr<LogSealer> sealer;
  NACRE_RETURN_IF_ERROR(LogSealer::Create(client_, database_id_, &sealer));
  bool all = true;
  for (const LogSegment& segment : segments) {
    if (Status status = sealer->Seal(segment, {}); !status.ok()) {
      all = false;
      Log(options_.info_log, LogLevel::kWarn, "{}: log segment {} is not marked as sealed: {}",
          name_, segment.number, status.ToString());
    }
  }
  // The root has named the new manifest before.
  if (!all) clock_->SleepFor(kUnmarkedPause);
  return Status::OK();
}

Status DBImpl::Explain(Status status) {
  if (status.IsFenced()) events_.Fenced(status);
  if (status.ok() || status.IsFenced() || lease_ == nullptr) return status;
  Status owner = lease_->Renew();
  if (!owner.IsFenced()) return status;
  events_.Fenced(owner);
  return owner;
}

Status DBImpl::SettleWrites() {
  if (log_ == nullptr || !troubled_.unsettled.any()) [[likely]]
    return Status::OK();
  MutexLock settling(&troubled_.settling);
  UnsettledWrite write;
  // One before it may be given up while this one waits for it to be published.
  const auto is_first = [this, &write] {
    UnsettledWrite first;
    return troubled_.unsettled.First(&first) && first.ticket.first == write.ticket.first;
  };
  while (troubled_.unsettled.First(&write)) {
    if (Status status = log_->Await(write.position); !status.ok()) {
      return Explain(std::move(status));
    }
    bool overtaken = false;
    Status status = sequencer_.Finish(write.ticket, [&] {
      overtaken = !is_first();
      return overtaken ? Status::TryAgain("an earlier write is to be settled first") : WhyStuck();
    });
    if (status.ok()) {
      troubled_.unsettled.Remove(write);
    } else if (!overtaken) {
      return Explain(std::move(status));
    }
  }
  return Status::OK();
}

}  // namespace nacre
