#include "db/salvage/log_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "db/wal/log_reader.h"
#include "pool/read/pool_reader.h"
#include "pool/store/mirrored_extent.h"
#include "table/format/log_format.h"

namespace nacre {
namespace {

constexpr uint64_t kLogPageBytes = 4096;
/// No segment is longer, unless it was made for one large record, which is its first.
constexpr uint64_t kUsualBytesMax = 16 << 20;

/// A segment, and what its copies say of its records.
struct Segment {
  LogSegmentHeader header;
  std::vector<RemoteAddr> copies;
  uint64_t room = UINT64_MAX;  ///< The most bytes that it may have.
  uint64_t end = 0;            ///< End of its records.
  SequenceNumber last_sequence = 0;
};

class Search {
 public:
  Search(pool::PoolClient* client, uint64_t database_id, FoundLog* log)
      : client_(client), database_id_(database_id), log_(log) {}

  Status Run(const std::vector<FoundLogHead>& heads, SequenceNumber flushed,
             const std::map<NodeId, Stretches>& rooms,
             const std::map<NodeId, Stretches>& occupied) {
    NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client_->fabric(), &reader_));
    Group(heads, occupied);
    Follow();
    for (Segment& segment : chain_) FindRoom(rooms, occupied, &segment);
    for (size_t i = 0; i < chain_.size(); ++i) {
      if (i + 1 < chain_.size()) chain_[i].end = chain_[i + 1].header.previous_bytes;
      Measure(&chain_[i]);
    }
    const auto needed = std::find_if(chain_.begin(), chain_.end(), [&](const Segment& segment) {
      return segment.last_sequence > flushed;
    });
    for (auto it = needed; it != chain_.end(); ++it) Take(*it);
    return Count(flushed);
  }

 private:
  /// Copies of one segment are on different nodes. What begins inside of something else is a value
  /// that looks like a header.
  void Group(const std::vector<FoundLogHead>& heads, const std::map<NodeId, Stretches>& occupied) {
    for (const FoundLogHead& head : heads) {
      log_->last_number = std::max(log_->last_number, head.header.number);
      if (const auto node = occupied.find(static_cast<NodeId>(head.at.node));
          node != occupied.end()) {
        auto stretch = node->second.upper_bound(head.at.offset);
        if (stretch != node->second.begin() && (--stretch)->second > head.at.offset) continue;
      }
      Segment& segment = segments_[head.header.number];
      segment.header = head.header;
      const bool known =
          std::any_of(segment.copies.begin(), segment.copies.end(),
                      [&](const RemoteAddr& copy) { return copy.node == head.at.node; });
      if (!known) segment.copies.push_back(head.at);
    }
  }

  void Follow() {
    if (segments_.empty()) return;
    for (auto it = std::prev(segments_.end());;) {
      chain_.push_back(it->second);
      const uint64_t previous = it->second.header.previous_number;
      it = segments_.find(previous);
      if (previous == 0 || it == segments_.end()) break;
    }
    std::reverse(chain_.begin(), chain_.end());
  }

  void FindRoom(const std::map<NodeId, Stretches>& rooms,
                const std::map<NodeId, Stretches>& occupied, Segment* segment) const {
    for (const RemoteAddr& copy : segment->copies) {
      const auto node = static_cast<NodeId>(copy.node);
      const uint64_t start = copy.offset;
      uint64_t end = start;
      if (const auto it = rooms.find(node); it != rooms.end()) {
        auto room = it->second.upper_bound(start);
        if (room != it->second.begin()) end = std::max(end, std::prev(room)->second);
      }
      if (const auto it = occupied.find(node); it != occupied.end()) {
        const auto next = it->second.upper_bound(start);
        if (next != it->second.end()) end = std::min(end, next->first);
      }
      for (const Segment& other : chain_) {
        for (const RemoteAddr& place : other.copies) {
          if (place.node == copy.node && place.offset > start) {
            end = std::min<uint64_t>(end, place.offset);
          }
        }
      }
      segment->room = std::min(segment->room, end - start);
    }
  }

  /// Finds where the records of each copy end, also behind damage, and the highest sequence.
  void Measure(Segment* segment) {
    for (const RemoteAddr& copy : segment->copies) {
      uint64_t window = std::min(segment->room, std::max(segment->end, kUsualBytesMax));
      while (!MeasureCopy(copy, segment, &window)) {
      }
    }
  }

  /// False: `*window` has grown since a record reaches beyond it.
  bool MeasureCopy(const RemoteAddr& copy, Segment* segment, uint64_t* window) {
    const uint64_t read = *window;
    if (bytes_capacity_ < read) {
      bytes_.reset(new char[read]);
      bytes_capacity_ = read;
    }
    ExtentAddr extent;
    extent.start = copy;
    extent.length = read;
    if (Status s = reader_->Read(extent, 0, read, bytes_.get()); !s.ok()) {
      log_->notes.push_back(fmt::format("log segment {}: {}", segment->header.number, s.message()));
      return true;
    }
    const uint32_t stamp = LogStamp(database_id_, segment->header.number);
    uint64_t at = kLogHeaderBytes;
    while (at + kMinLogRecordBytes <= read) {
      const Slice rest(bytes_.get() + at, read - at);
      LogRecord record;
      if (ParseLogRecord(rest, stamp, &record)) {
        at += record.bytes;
        segment->end = std::max(segment->end, at);
        segment->last_sequence = std::max(segment->last_sequence, record.first + record.count - 1);
        continue;
      }
      const uint64_t wanted = at + LogRecordBytes(DecodeFixed32(rest.data() + kLogLengthAt));
      if (DecodeFixed32(rest.data() + kLogStampAt) == stamp && wanted > read &&
          wanted <= segment->room) {
        *window = wanted;
        return false;
      }
      at += kLogAlignment;
    }
    return true;
  }

  void Take(const Segment& segment) {
    LogSegment& taken = log_->segments.emplace_back();
    taken.number = segment.header.number;
    // The end shows by what is behind it.
    const uint64_t length = std::min(
        (segment.end + 2 * kLogPageBytes - 1) / kLogPageBytes * kLogPageBytes, segment.room);
    for (const RemoteAddr& copy : segment.copies) {
      ExtentAddr& extent = taken.copies.emplace_back();
      extent.start = copy;
      extent.length = length;
    }
  }

  Status Count(SequenceNumber flushed) {
    if (log_->segments.empty()) return Status::OK();
    SequenceNumber first = kMaxSequenceNumber;
    const auto visit = [&](SequenceNumber sequence, uint32_t count, const Slice& updates) {
      const SequenceNumber last = sequence + count - 1;
      if (last <= flushed) return Status::OK();
      ++log_->records;
      log_->bytes += updates.size();
      log_->last_sequence = std::max(log_->last_sequence, last);
      first = std::min(first, sequence);
      return Status::OK();
    };
    LogReadResult read;
    const Status status = ReadLog(client_, database_id_, log_->segments,
                                  WALRecoveryMode::kTolerateCorruptedTailRecords, visit, &read);
    log_->notes.insert(log_->notes.end(), read.notes.begin(), read.notes.end());
    if (status.IsCorruption()) {
      log_->notes.push_back(fmt::format("the log: {}", status.message()));
    } else {
      NACRE_RETURN_IF_ERROR(status);
    }
    if (log_->records > 0 && first > flushed + 1) {
      log_->notes.push_back(fmt::format(
          "sequences {} to {} are neither in tables nor in the log: written without it, or lost",
          flushed + 1, first - 1));
    }
    return Status::OK();
  }

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  FoundLog* const log_;
  std::map<uint64_t, Segment> segments_;  ///< Keyed by number.
  std::vector<Segment> chain_;
  std::unique_ptr<char[]> bytes_;
  uint64_t bytes_capacity_ = 0;
  std::unique_ptr<pool::PoolReader> reader_;
};

}  // namespace

Status FindLog(pool::PoolClient* client, uint64_t database_id,
               const std::vector<FoundLogHead>& heads, SequenceNumber flushed,
               const std::map<NodeId, Stretches>& rooms,
               const std::map<NodeId, Stretches>& occupied, FoundLog* log) {
  *log = FoundLog();
  return Search(client, database_id, log).Run(heads, flushed, rooms, occupied);
}

}  // namespace nacre
