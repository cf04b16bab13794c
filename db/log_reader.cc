#include "db/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/log_copies.h"
#include "db/log_format.h"

namespace nacre {
namespace {

/// A segment that belongs to the log.
struct Link {
  const LogSegment* segment = nullptr;
  LogSegmentHead head;
  uint64_t end = 0;           ///< Of its records, as its successor says; 0: unknown.
  std::string damage_before;  ///< Why it may be that something is missing before its records.
};

/// Finds out which segments the log consists of, from the headers.
class Chain {
 public:
  Chain(memnode::PoolClient* client, uint64_t database_id, LogReadResult* result)
      : client_(client), database_id_(database_id), result_(result) {}

  /// `segments` in the order of their numbers, which stay where they are.
  Status Find(const std::vector<LogSegment>& segments, std::vector<Link>* chain) {
    for (const LogSegment& segment : segments) {
      Link link;
      link.segment = &segment;
      NACRE_RETURN_IF_ERROR(
          ReadLogSegmentHead(client_, database_id_, segment, &link.head, &result_->notes));
      if (link.head.kind == LogSegmentHead::Kind::kUnused) continue;
      result_->healed = result_->healed || link.head.healed;
      used_.push_back(std::move(link));
    }
    if (used_.empty()) return Status::OK();
    for (size_t i = used_.size(); i-- > 0;) {
      const uint64_t previous = Previous(segments.front().number, &used_[i]);
      chain->push_back(std::move(used_[i]));
      // What lies between was given up before a record there was acknowledged.
      while (i > 0 && used_[i - 1].segment->number > previous) --i;
      if (previous == 0) break;
      if (i > 0 && used_[i - 1].segment->number == previous) {
        used_[i - 1].end = chain->back().head.header.previous_bytes;
        if (used_[i - 1].end > used_[i - 1].segment->copies.front().length) {
          chain->back().damage_before = "its header tells of a longer predecessor";
          used_[i - 1].end = 0;
        }
      }
    }
    std::reverse(chain->begin(), chain->end());
    return Status::OK();
  }

 private:
  /// The highest number that the predecessor can have; 0: there is none.
  uint64_t Previous(uint64_t lowest, Link* link) const {
    const uint64_t number = link->segment->number;
    if (link->head.kind == LogSegmentHead::Kind::kDamaged) {
      link->damage_before = "no copy has its header";
      return number - 1;
    }
    const uint64_t previous = link->head.header.previous_number;
    // Segments are dropped from the beginning of the log on.
    if (previous < lowest) return 0;
    const bool there = std::any_of(used_.begin(), used_.end(), [=](const Link& other) {
      return other.segment->number == previous;
    });
    if (!there) {
      link->damage_before = fmt::format("segment {} before it is missing or damaged", previous);
    }
    return previous;
  }

  memnode::PoolClient* const client_;
  const uint64_t database_id_;
  LogReadResult* const result_;
  std::vector<Link> used_;
};

class Replay {
 public:
  Replay(memnode::PoolClient* client, uint64_t database_id, WALRecoveryMode mode,
         const LogVisitor& visit, LogReadResult* result, ConcurrentArena* kept)
      : client_(client),
        database_id_(database_id),
        mode_(mode),
        visit_(visit),
        result_(result),
        copies_(client, kept) {}

  Status Run(const std::vector<Link>& chain) {
    for (const Link& link : chain) {
      bool stop = false;
      NACRE_RETURN_IF_ERROR(ReadSegment(link, &stop));
      if (stop) break;
    }
    return Status::OK();
  }

 private:
  Status ReadSegment(const Link& link, bool* stop) {
    segment_ = link.segment;
    stamp_ = LogStamp(database_id_, segment_->number);
    offset_ = kLogHeaderBytes;
    open_ended_ = link.end == 0;
    end_ = open_ended_ ? segment_->copies.front().length : link.end;
    if (!link.damage_before.empty()) {
      NACRE_RETURN_IF_ERROR(Damaged(link.damage_before, /*at_tail=*/false));
      *stop = mode_ == WALRecoveryMode::kPointInTimeRecovery;
      if (*stop) return Status::OK();
    }
    if (offset_ >= end_) return Status::OK();
    NACRE_RETURN_IF_ERROR(copies_.Start(segment_, offset_, end_, &result_->notes));
    bool passed_over = false;
    while (offset_ < end_) {
      LogRecord record;
      bool lacking = false;
      if (!FindRecord(&record, &lacking)) {
        bool at_end = false;
        NACRE_RETURN_IF_ERROR(PassDamage(&at_end, stop));
        if (at_end || *stop) break;
        continue;
      }
      // At the end of the log copies differ without damage.
      if (passed_over && !lacking) result_->healed = true;
      passed_over = lacking;
      NACRE_RETURN_IF_ERROR(visit_(record.first, record.count, record.payload));
      Count(record);
    }
    if (passed_over && !open_ended_) result_->healed = true;
    return Status::OK();
  }

  void Count(const LogRecord& record) {
    offset_ += record.bytes;
    ++result_->records;
    result_->bytes += record.bytes;
    result_->last_sequence = std::max(result_->last_sequence, record.first + record.count - 1);
    result_->end_number = segment_->number;
    result_->end_bytes = offset_;
  }

  /// The record at offset_; `*lacking`: a copy that can be read has it not.
  bool FindRecord(LogRecord* record, bool* lacking) {
    *lacking = false;
    for (size_t copy = 0; copy < copies_.count(); ++copy) {
      const Slice bytes = copies_.From(copy, offset_);
      if (ParseLogRecord(bytes, stamp_, record)) return true;
      *lacking = *lacking || !bytes.empty();
    }
    return false;
  }

  /// No copy has a record at offset_: goes on to the next one, if the mode has it so.
  Status PassDamage(bool* at_end, bool* stop) {
    const uint64_t next = FindNext();
    const bool at_tail = open_ended_ && next == end_;
    *at_end = next == end_;
    if (at_tail && !AnyResembles()) return Status::OK();
    NACRE_RETURN_IF_ERROR(Damaged(fmt::format("no copy has the record at {}", offset_), at_tail));
    *stop = mode_ == WALRecoveryMode::kPointInTimeRecovery;
    offset_ = next;
    return Status::OK();
  }

  /// Where the next record begins that any copy has; end_ if there is none.
  uint64_t FindNext() {
    uint64_t next = end_;
    for (size_t copy = 0; copy < copies_.count(); ++copy) {
      const Slice bytes = copies_.From(copy, offset_);
      LogRecord record;
      for (uint64_t at = kLogAlignment; at < bytes.size() && offset_ + at < next;
           at += kLogAlignment) {
        if (ParseLogRecord(Slice(bytes.data() + at, bytes.size() - at), stamp_, &record)) {
          next = offset_ + at;
        }
      }
    }
    return next;
  }

  bool AnyResembles() {
    for (size_t copy = 0; copy < copies_.count(); ++copy) {
      const Slice bytes = copies_.From(copy, offset_);
      if (ResemblesLogRecord(bytes, stamp_, result_->last_sequence)) return true;
    }
    return false;
  }

  /// What the mode makes of it.
  Status Damaged(const std::string& what, bool at_tail) {
    const std::string message = fmt::format("log segment {} on {}: {}", segment_->number,
                                            LogSegmentNodes(client_, *segment_), what);
    const bool fatal = mode_ == WALRecoveryMode::kAbsoluteConsistency ||
                       (mode_ == WALRecoveryMode::kTolerateCorruptedTailRecords && !at_tail);
    if (fatal) return Status::Corruption(message);
    result_->notes.push_back(message);
    return Status::OK();
  }

  memnode::PoolClient* const client_;
  const uint64_t database_id_;
  const WALRecoveryMode mode_;
  const LogVisitor& visit_;
  LogReadResult* const result_;
  LogCopies copies_;

  // Of the segment that is being read.
  const LogSegment* segment_ = nullptr;
  uint32_t stamp_ = 0;
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  bool open_ended_ = false;
};

}  // namespace

Status ReadLog(memnode::PoolClient* client, uint64_t database_id,
               const std::vector<LogSegment>& segments, WALRecoveryMode mode,
               const LogVisitor& visit, LogReadResult* result, ConcurrentArena* kept) {
  *result = LogReadResult();
  std::vector<LogSegment> ordered = segments;
  std::sort(ordered.begin(), ordered.end(),
            [](const LogSegment& a, const LogSegment& b) { return a.number < b.number; });
  std::vector<Link> chain;
  NACRE_RETURN_IF_ERROR(Chain(client, database_id, result).Find(ordered, &chain));
  return Replay(client, database_id, mode, visit, result, kept).Run(chain);
}

}  // namespace nacre
