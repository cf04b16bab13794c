#include "db/wal/log_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pool/connect/spin_wait.h"
#include "pool/store/mirrored_extent.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// Ensembles that fail one after the other before a writer is told.
constexpr int kMaxFailures = 4;

/// What is kept of the memory of large records, such as the batches of several threads.
constexpr size_t kIdleLargeBytes = 4 << 20;

/// Adds to counters with one writer at a time.
void Add(std::atomic<uint64_t>* counter, uint64_t n) {
  counter->store(counter->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

LogWriter::LogWriter(const LogWriterOptions& options, LogSpace* space)
    : options_(options),
      large_buffers_(options.client->fabric()->context.device, kIdleLargeBytes),
      supply_(std::make_unique<LogSupply>(options.client, space, options.next_number,
                                          options.first_segment_bytes, options.segment_bytes,
                                          options.log)),
      previous_number_(options.previous_number),
      previous_bytes_(options.previous_bytes) {}

LogWriter::~LogWriter() { Close(); }

Status LogWriter::Open(const LogWriterOptions& options, LogSpace* space,
                       std::unique_ptr<LogWriter>* writer) {
  // The next owner compares so much of the log's end (log_tail.h), and no more.
  if (options.ring_bytes > kLogRingBytes) {
    return Status::InvalidArgument(fmt::format("a ring of {} bytes for the log, more than {}",
                                               options.ring_bytes, kLogRingBytes));
  }
  std::unique_ptr<LogWriter> result(new LogWriter(options, space));
  NACRE_RETURN_IF_ERROR(LogRing::Create(options.client, options.ring_bytes, &result->ring_));
  NACRE_RETURN_IF_ERROR(
      pool::AllocateBuffer(options.client->fabric(), 2 * kLogHeaderBytes, &result->headers_));
  NACRE_RETURN_IF_ERROR(LogSealer::Create(options.client, options.database_id, &result->sealer_));
  result->TakeLead();
  const LeadScope leading(&result->lead_);
  const Status s = result->OpenFor(0);
  if (s.ok()) *writer = std::move(result);
  return s;
}

void LogWriter::TakeLead() {
  pool::SpinWait pause(options_.clock);
  while (!lead_.TryTake()) pause.Pause();
}

Status LogWriter::status() const {
  if (state_.load(std::memory_order_acquire) == State::kWorking) return Status::OK();
  MutexLock lock(&mutex_);
  return status_;
}

Status LogWriter::Note(Status s) {
  MutexLock lock(&mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kEnded) return status_;
  status_ = s;
  const bool final = s.IsFenced() || s.IsShutdownInProgress();
  state_.store(final ? State::kEnded : State::kFailing, std::memory_order_release);
  return s;
}

LogWriterStats LogWriter::stats() const {
  return {.bytes_appended = bytes_appended_.load(std::memory_order_relaxed),
          .writes_posted = writes_posted_.load(std::memory_order_relaxed),
          .segments = segments_.load(std::memory_order_relaxed),
          .ensemble_changes = ensemble_changes_.load(std::memory_order_relaxed)};
}

// ---- Writers ----------------------------------------------------------------------------------

Status LogWriter::CheckWorking() {
  if (state_.load(std::memory_order_relaxed) == State::kWorking) [[likely]]
    return Status::OK();
  // A thread has to try again, or the log would fail for ever.
  if (lead_.TryTake()) {
    const LeadScope leading(&lead_);
    return OpenFor(0);
  }
  return status();
}

Status LogWriter::Append(uint64_t generation, SequenceNumber first, uint32_t count,
                         std::span<const Slice> parts, uint64_t* position) {
  uint64_t payload = 0;
  for (const Slice& part : parts) payload += part.size();
  if (payload > kMaxLogPayload || count == 0) [[unlikely]] {
    return Status::InvalidArgument(
        fmt::format("a log record of {} updates and {} bytes", count, payload));
  }
  NACRE_RETURN_IF_ERROR(CheckWorking());
  const uint64_t bytes = LogRecordBytes(payload);
  if (bytes > ring_->capacity() / LogRing::kLargestPart) [[unlikely]] {
    return AppendLarge(generation, first, count, parts, payload, position);
  }
  uint64_t at = 0;
  NACRE_RETURN_IF_ERROR(Reserve(bytes, &at));
  ring_->Fill(at, generation, first, count, parts, payload);
  *position = at + bytes;
  return Status::OK();
}

Status LogWriter::Reserve(uint64_t bytes, uint64_t* at) {
  if (ring_->TryReserve(bytes, at)) [[likely]]
    return Status::OK();
  pool::SpinWait pause(options_.clock);
  while (!ring_->TryReserve(bytes, at)) {
    // What fills the ring may have no waiter.
    if (lead_.TryTake()) {
      const LeadScope leading(&lead_);
      NACRE_RETURN_IF_ERROR(Lead());
      if (ring_->TryReserve(bytes, at)) break;
    }
    pause.Pause();
  }
  return Status::OK();
}

Status LogWriter::AppendLarge(uint64_t generation, SequenceNumber first, uint32_t count,
                              std::span<const Slice> parts, uint64_t payload, uint64_t* position) {
  auto large = std::make_unique<LargeLogRecord>();
  large->bytes = LogRecordBytes(payload);
  NACRE_RETURN_IF_ERROR(large_buffers_.Take(large->bytes, &large->memory));
  EncodeLogRecord(large->memory.data(), first, count, parts, payload);
  uint64_t at = 0;
  NACRE_RETURN_IF_ERROR(Reserve(kMinLogRecordBytes, &at));
  ring_->FillLarge(at, generation, std::move(large));
  *position = at + kMinLogRecordBytes;
  return Status::OK();
}

Status LogWriter::Await(uint64_t position) {
  if (Has(position)) return Status::OK();
  pool::SpinWait pause(options_.clock);
  while (true) {
    if (lead_.TryTake()) {
      const LeadScope leading(&lead_);
      if (!Has(position)) NACRE_RETURN_IF_ERROR(Lead());
    }
    if (Has(position)) return Status::OK();
    pause.Pause();
  }
}

// ---- The leader -------------------------------------------------------------------------------

void LogWriter::Start() {
  if (!lead_.TryTake()) return;
  const LeadScope leading(&lead_);
  if (current_.posted.bytes > 0 && current_.extent->Poll() >= last_ticket_) AcknowledgePosted();
  LogRing::Entry first;
  if (current_.extent != nullptr && current_.posted.bytes == 0 &&
      ring_->Finished(ring_->released(), &first) &&
      first.bytes <= current_.extent->length() - current_.offset) {
    // If this fails, threads that await these records find them in the ring, and try the next
    // segment. Memory that is stored to has them already.
    if (Post(first).ok() && current_.extent->Known() >= last_ticket_) AcknowledgePosted();
  }
}

Status LogWriter::Lead() try {
  for (int failures = 1;; ++failures) {
    Status s;
    if (current_.posted.bytes == 0) {
      LogRing::Entry first;
      const uint64_t at = ring_->released();
      if (!ring_->Finished(at, &first)) return s;
      NACRE_RETURN_IF_ERROR(OpenFor(first.bytes));
      if (ring_->released() != at) return s;  // They came with the header.
      s = Post(first);
    }
    if (s.ok()) s = AwaitPosted();
    if (s.ok()) [[likely]]
      return s;
    if (failures == kMaxFailures) return Note(std::move(s));
  }
} catch (...) {
  return Break(StatusOfException());
}

Status LogWriter::Break(Status s) {
  current_ = Current();
  MutexLock lock(&mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kEnded) return status_;
  status_ = s;
  state_.store(State::kEnded, std::memory_order_release);
  return s;
}

Status LogWriter::Post(const LogRing::Entry& first) try {
  Status s = first.large == nullptr ? PostRecords() : PostLarge(first);
  if (!s.ok()) [[unlikely]]
    SealFailed();
  return s;
} catch (...) {
  return Break(StatusOfException());
}

Status LogWriter::PostRecords() {
  const uint64_t room = current_.extent->length() - current_.offset;
  const uint64_t from = ring_->released();
  Group group;
  uint64_t to = from;
  LogRing::Entry entry;
  while (ring_->Finished(to, &entry) && entry.large == nullptr && entry.end - from <= room) {
    ring_->Stamp(to, current_.stamp);
    group.generations.Add(entry.generation);
    group.last = entry;
    to = entry.end;
  }
  for (uint64_t at = from; at < to;) {
    if (failed_bytes_ > 0 && NACRE_PLANTED_BUG("log.rest-of-a-segment-not-sent-again")) break;
    const rdma::LocalBuffer bytes = ring_->Contiguous(at, to);
    NACRE_RETURN_IF_ERROR(Write(current_.offset + (at - from), bytes));
    at += bytes.size;
  }
  group.bytes = to - from;
  current_.posted = group;
  return Status::OK();
}

Status LogWriter::PostLarge(const LogRing::Entry& entry) {
  EncodeFixed32(entry.large->memory.data() + kLogStampAt, current_.stamp);
  NACRE_RETURN_IF_ERROR(Write(current_.offset, entry.large->Bytes()));
  Group group{.bytes = entry.bytes, .generations = {}, .last = entry};
  group.generations.Add(entry.generation);
  current_.posted = group;
  return Status::OK();
}

Status LogWriter::Write(uint64_t offset, const rdma::LocalBuffer& bytes) {
  Add(&writes_posted_, 1);
  return current_.extent->Write(offset, bytes, &last_ticket_);
}

Status LogWriter::AwaitWrites() {
  if (NACRE_PLANTED_BUG("log.acknowledged-before-its-copies-have-it")) return Status::OK();
  pool::MirroredExtent* extent = current_.extent.get();
  // The clock costs as much as a write that has ended at once.
  if (extent->Known() >= last_ticket_) [[likely]]
    return Status::OK();
  return extent->Await(
      last_ticket_, Deadline::After(options_.clock, options_.client->options().operation_timeout));
}

Status LogWriter::AwaitPosted() try {
  if (current_.posted.bytes == 0) return Status::OK();
  Status s = AwaitWrites();
  if (s.ok()) [[likely]] {
    AcknowledgePosted();
  } else {
    if (NACRE_PLANTED_BUG("log.segment-ends-at-what-one-copy-has")) AcknowledgePosted();
    SealFailed();
  }
  return s;
} catch (...) {
  return Break(StatusOfException());
}

void LogWriter::AcknowledgePosted() {
  const Group group = std::exchange(current_.posted, {});
  current_.offset += group.bytes;
  current_.generations.Add(group.generations);
  Add(&bytes_appended_, group.bytes);
  if (group.last.large == nullptr) [[likely]] {
    ring_->Release(group.last.end);
  } else {
    ring_->ReleaseLarge(group.last);
  }
}

Status LogWriter::OpenFor(uint64_t bytes) try {
  if (current_.extent != nullptr) [[likely]] {
    if (bytes <= current_.extent->length() - current_.offset) return Status::OK();
    Seal();
  }
  for (int failures = 1;; ++failures) {
    // The state does not change after this: the thread that ended the log has waited for the leader
    // before.
    if (state_.load(std::memory_order_acquire) == State::kEnded) return status();
    PreparedSegment next;
    if (Status s = supply_->Take(kLogHeaderBytes + std::max(bytes, failed_bytes_), &next);
        !s.ok()) {
      return Note(std::move(s));
    }
    current_.segment = std::move(next.segment);
    current_.extent = std::move(next.extent);
    current_.stamp = LogStamp(options_.database_id, current_.segment.number);
    current_.offset = kLogHeaderBytes;
    current_.generations = {};
    Status s = BeginSegment();
    if (s.ok()) break;
    SealFailed();
    if (failures == kMaxFailures) return Note(std::move(s));
  }
  Add(&segments_, 1);
  if (state_.load(std::memory_order_relaxed) != State::kFailing) return Status::OK();
  MutexLock lock(&mutex_);
  status_ = Status::OK();
  state_.store(State::kWorking, std::memory_order_release);
  return Status::OK();
} catch (...) {
  return Break(StatusOfException());
}

Status LogWriter::BeginSegment() {
  current_.after_unmarked = std::exchange(unmarked_, false);
  if ((current_.after_unmarked || failed_bytes_ > 0) &&
      !NACRE_PLANTED_BUG("log.segment-begun-unannounced")) {
    NACRE_RETURN_IF_ERROR(WriteHeader(/*announced=*/true));
    if (current_.after_unmarked) NACRE_RETURN_IF_ERROR(AwaitWrites());
  }
  if (current_.after_unmarked) options_.clock->SleepFor(kUnmarkedPause);
  NACRE_RETURN_IF_ERROR(PostFailed());
  NACRE_RETURN_IF_ERROR(WriteHeader(/*announced=*/false));
  NACRE_POINT("log.header-posted");
  NACRE_RETURN_IF_ERROR(AwaitWrites());
  NACRE_POINT("log.header-acknowledged");
  failed_bytes_ = 0;
  if (current_.posted.bytes > 0) AcknowledgePosted();
  return Status::OK();
}

Status LogWriter::WriteHeader(bool announced) {
  char* const header = headers_->data() + (announced ? kLogHeaderBytes : 0);
  EncodeLogHeader(
      {.database_id = options_.database_id,
       .number = current_.segment.number,
       .previous_number = previous_number_,
       .previous_bytes = previous_bytes_,
       .complete_through = options_.complete_through == nullptr ? 0 : options_.complete_through(),
       .encrypted_payloads = options_.encrypted,
       .announced = announced},
      header);
  return Write(0, {.data = header, .size = kLogHeaderBytes, .region = headers_.get()});
}

Status LogWriter::PostFailed() {
  LogRing::Entry first;
  if (failed_bytes_ == 0 || !ring_->Finished(ring_->released(), &first)) return Status::OK();
  return first.large == nullptr ? PostRecords() : PostLarge(first);
}

void LogWriter::SealFailed() {
  Log(options_.log, LogLevel::kWarn, "log segment {} ends at {} since a write failed: {}",
      current_.segment.number, current_.offset, current_.extent->failure().ToString());
  Add(&ensemble_changes_, 1);
  failed_bytes_ = std::max(failed_bytes_, current_.posted.bytes);
  Seal();
}

void LogWriter::MarkSealed() {
  Status s;
  if (current_.extent->failure().ok()) {
    s = current_.extent->Write(kLogSealAt, sealer_->Mark(current_.segment), &last_ticket_);
    if (s.ok()) s = AwaitWrites();
    if (s.ok()) return;
  }
  s = sealer_->Seal(current_.segment, current_.extent->failed_nodes());
  if (s.ok()) return;
  unmarked_ = true;
  Log(options_.log, LogLevel::kWarn, "log segment {} is not marked as sealed: {}",
      current_.segment.number, s.ToString());
}

void LogWriter::Seal() try {
  NACRE_POINT("log.seal");
  MarkSealed();
  supply_->GiveLane(current_.extent->TakeLane());
  MutexLock lock(&mutex_);
  // A link to a segment without records would hide what it follows if its header is nowhere.
  if (current_.has_records()) {
    previous_number_ = current_.segment.number;
    previous_bytes_ = current_.offset;
    sealed_.push_back({std::move(current_.segment), current_.offset, current_.generations});
  } else {
    // A follower finds the segment before it open again once the manifest lacks this one.
    unmarked_ = unmarked_ || current_.after_unmarked;
    unused_.push_back(std::move(current_.segment));
  }
  current_ = Current();
} catch (...) {
  Break(StatusOfException()).IgnoreError();
}

Status LogWriter::StartSegment() {
  TakeLead();
  const LeadScope leading(&lead_);
  AwaitPosted().IgnoreError();  // The ring has its records for the next segment.
  if (current_.extent != nullptr) Seal();
  return OpenFor(0);
}

Status LogWriter::StartShortSegment() {
  supply_->StartOver(kShortSegmentBytes);  // Ready before writers are kept waiting.
  return StartSegment();
}

// ---- The database -----------------------------------------------------------------------------

std::vector<WrittenSegment> LogWriter::SegmentsOf(uint64_t first, uint64_t last) {
  std::vector<WrittenSegment> segments;
  TakeLead();
  const LeadScope leading(&lead_);
  {
    MutexLock lock(&mutex_);
    for (const Sealed& sealed : sealed_) {
      if (sealed.generations.Touch(first, last)) segments.push_back({sealed.segment, sealed.bytes});
    }
  }
  if (current_.has_records() && current_.generations.Touch(first, last)) {
    segments.push_back({current_.segment, current_.offset});
  }
  return segments;
}

std::vector<LogSegment> LogWriter::TakeUnneeded(uint64_t flushed, bool close_open) {
  TakeLead();
  {
    const LeadScope leading(&lead_);
    // A failure is that of the writers: the ring has their records, and they write them elsewhere.
    AwaitPosted().IgnoreError();
    const bool full = current_.extent != nullptr && current_.offset > current_.extent->length() / 2;
    if (current_.has_records() && current_.generations.highest <= flushed && (full || close_open)) {
      Seal();
    }
  }
  std::vector<LogSegment> unneeded = supply_->TakeUnused();
  MutexLock lock(&mutex_);
  for (LogSegment& segment : unused_) unneeded.push_back(std::move(segment));
  unused_.clear();
  // A successor is read by what its predecessors are, so none of these goes before them.
  const uint64_t kept = kept_;
  auto needed = std::find_if(sealed_.begin(), sealed_.end(), [=](const Sealed& sealed) {
    return sealed.generations.highest > flushed || sealed.segment.number == kept;
  });
  for (auto it = sealed_.begin(); it != needed; ++it) unneeded.push_back(std::move(it->segment));
  sealed_.erase(sealed_.begin(), needed);
  std::sort(unneeded.begin(), unneeded.end(),
            [](const LogSegment& a, const LogSegment& b) { return a.number < b.number; });
  return unneeded;
}

bool LogWriter::LeaveNodes(const std::function<bool(NodeId)>& leave) {
  const bool unused = supply_->LeaveNodes(leave);
  TakeLead();
  {
    const LeadScope leading(&lead_);
    AwaitPosted().IgnoreError();  // As above.
    if (current_.extent != nullptr && HasCopyOn(current_.segment, leave)) Seal();
  }
  MutexLock lock(&mutex_);
  return unused ||
         std::any_of(unused_.begin(), unused_.end(),
                     [&](const LogSegment& segment) { return HasCopyOn(segment, leave); }) ||
         std::any_of(sealed_.begin(), sealed_.end(),
                     [&](const Sealed& sealed) { return HasCopyOn(sealed.segment, leave); });
}

bool LogWriter::WithSealed(uint64_t number,
                           const std::function<void(const WrittenSegment&)>& body) {
  TakeLead();
  {
    const LeadScope leading(&lead_);
    AwaitPosted().IgnoreError();  // As above.
    if (current_.has_records() && current_.segment.number == number) Seal();
  }
  WrittenSegment written;
  {
    MutexLock lock(&mutex_);
    const auto it = std::find_if(sealed_.begin(), sealed_.end(), [number](const Sealed& sealed) {
      return sealed.segment.number == number;
    });
    if (it == sealed_.end()) return false;
    written = {it->segment, it->bytes};
    kept_ = number;
  }
  Status thrown;
  try {
    body(written);
  } catch (...) {
    thrown = StatusOfException();  // What was not done is the caller's to see.
  }
  MutexLock lock(&mutex_);
  kept_ = 0;
  return thrown.ok();
}

void LogWriter::Close() {
  // First, so that a leader that waits for a segment does not hold this up.
  supply_->Stop();
  TakeLead();
  const LeadScope leading(&lead_);
  AwaitPosted().IgnoreError();  // Its writers hear that the log is closed.
  Note(Status::ShutdownInProgress("the log is closed")).IgnoreError();
  if (current_.extent != nullptr) Seal();
  // The pause also keeps the next owner from acknowledging too soon.
  if (unmarked_ && !status().IsFenced()) options_.clock->SleepFor(kUnmarkedPause);
}

}  // namespace nacre
