#include "db/wal/log_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/wal/log_reader.h"
#include "util/planted_bug.h"

namespace nacre {

LogScan::LogScan(pool::PoolClient* client, uint64_t database_id, WALRecoveryMode mode,
                 const LogLink* link, ConcurrentArena* kept)
    : client_(client),
      mode_(mode),
      link_(link),
      stamp_(LogStamp(database_id, link->segment->number)),
      end_(link->end == 0 ? link->segment->copies.front().length : link->end),
      open_ended_(link->end == 0),
      replicas_(client, kept) {}

void LogScan::Run(pool::PoolReader* reader, const Visitor& visit) {
  const bool goes_on = mode_ == WALRecoveryMode::kSkipAnyCorruptedRecords;
  if (offset_ >= end_ || (!link_->damage_before.empty() && !goes_on)) return;
  replicas_.Start(reader, link_->segment, offset_, end_);
  failure_ = Scan(visit);
}

Status LogScan::Scan(const Visitor& visit) {
  NACRE_RETURN_IF_ERROR(replicas_.CheckReadable());
  Span* span = &spans_.emplace_back();
  // Beginnings of records that are kLogRingBytes apart at least; the later one is not behind that
  // of the last record.
  uint64_t marks[2] = {offset_, offset_};
  bool passed_over = false;
  while (offset_ < end_) {
    LogRecord record;
    bool lacking = false;
    if (!FindRecord(&record, &lacking)) {
      NACRE_RETURN_IF_ERROR(replicas_.CheckReadable());
      span->damaged = true;
      span->at = offset_;
      span->next = offset_ = FindNext();
      if (offset_ == end_ || mode_ != WALRecoveryMode::kSkipAnyCorruptedRecords) break;
      span = &spans_.emplace_back();
      marks[0] = marks[1] = offset_;
      continue;
    }
    // Replicas differ at the end of the log without damage.
    if (passed_over && !lacking) span->healed = true;
    passed_over = lacking;
    NACRE_RETURN_IF_ERROR(visit(record.first, record.count, record.payload));
    if (offset_ - marks[1] >= kLogRingBytes) marks[0] = std::exchange(marks[1], offset_);
    span->tail = marks[0];
    offset_ += record.bytes;
    ++span->records;
    span->bytes += record.bytes;
    span->last_sequence = std::max(span->last_sequence, record.first + record.count - 1);
    span->end = offset_;
  }
  healed_at_end_ = passed_over && !open_ended_;
  return Status::OK();
}

bool LogScan::FindRecord(LogRecord* record, bool* lacking) {
  *lacking = false;
  for (size_t replica = 0; replica < replicas_.count(); ++replica) {
    if (RecordAt(replica, offset_, record)) return true;
    if (NACRE_PLANTED_BUG("log.one-copy-read")) return false;
    *lacking = *lacking || !replicas_.From(replica, offset_, 0).empty();
  }
  return false;
}

bool LogScan::RecordAt(size_t replica, uint64_t offset, LogRecord* record) {
  const Slice head = replicas_.From(replica, offset, kMinLogRecordBytes);
  if (head.size() < kMinLogRecordBytes) return false;
  if (DecodeFixed32(head.data() + kLogStampAt) != stamp_ &&
      !NACRE_PLANTED_BUG("log.recycled-segment-read-as-new")) {
    return false;
  }
  const uint32_t payload = DecodeFixed32(head.data() + kLogLengthAt);
  return ParseLogRecord(replicas_.From(replica, offset, LogRecordBytes(payload)), stamp_, record);
}

uint64_t LogScan::FindNext() {
  uint64_t next = end_;
  for (size_t replica = 0; replica < replicas_.count(); ++replica) {
    // As a rule this is the end of the log, and there is none.
    if (!replicas_.MayHoldRecord(replica, offset_ + kLogAlignment, stamp_)) continue;
    LogRecord record;
    for (uint64_t at = offset_ + kLogAlignment; at < next; at += kLogAlignment) {
      if (RecordAt(replica, at, &record)) next = at;
    }
  }
  return next;
}

bool LogScan::AnyResembles(uint64_t offset, SequenceNumber last) {
  bool any = false;
  for (size_t replica = 0; replica < replicas_.count(); ++replica) {
    const Slice head = replicas_.From(replica, offset, kMinLogRecordBytes);
    if (head.size() < kMinLogRecordBytes) continue;
    const uint32_t payload = DecodeFixed32(head.data() + kLogLengthAt);
    const Slice bytes = replicas_.From(replica, offset, LogRecordBytes(payload));
    any = any || ResemblesLogRecord(bytes, stamp_, last);
  }
  return any;
}

Status LogScan::Conclude(LogReadResult* result, bool* stop) {
  const auto stops = [this] { return mode_ == WALRecoveryMode::kPointInTimeRecovery; };
  *stop = false;
  if (!link_->damage_before.empty()) {
    NACRE_RETURN_IF_ERROR(Damaged(link_->damage_before, /*at_tail=*/false, result));
    *stop = stops();
    if (*stop) return Status::OK();
  }
  for (const Span& span : spans_) {
    result->healed = result->healed || span.healed;
    if (span.records > 0) {
      result->records += span.records;
      result->bytes += span.bytes;
      result->last_sequence = std::max(result->last_sequence, span.last_sequence);
      result->end_number = link_->segment->number;
      result->end_bytes = span.end;
      result->tail_begin = open_ended_ ? span.tail : 0;
    }
    if (!span.damaged) continue;
    const bool at_tail = open_ended_ && span.next == end_;
    if (at_tail && !AnyResembles(span.at, result->last_sequence)) continue;
    NACRE_RETURN_IF_ERROR(
        Damaged(fmt::format("no copy has the record at {}", span.at), at_tail, result));
    *stop = stops();
  }
  result->healed = result->healed || healed_at_end_;
  const auto& notes = replicas_.notes();
  result->notes.insert(result->notes.end(), notes.begin(), notes.end());
  return failure_;
}

Status LogScan::Damaged(const std::string& what, bool at_tail, LogReadResult* result) const {
  const std::string message = fmt::format("log segment {} on {}: {}", link_->segment->number,
                                          LogSegmentNodes(client_, *link_->segment), what);
  const bool fatal = mode_ == WALRecoveryMode::kAbsoluteConsistency ||
                     (mode_ == WALRecoveryMode::kTolerateCorruptedTailRecords && !at_tail);
  if (fatal) return Status::Corruption(message);
  result->notes.push_back(message);
  return Status::OK();
}

}  // namespace nacre
