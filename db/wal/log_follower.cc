#include "db/wal/log_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "db/wal/log_replicas.h"
#include "pool/read/point_reader.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// As a rule little is new; where much is, windows grow.
constexpr uint64_t kFirstWindow = 4 << 10;
constexpr uint64_t kUsualWindow = 256 << 10;
/// A write under way is in all replicas within microseconds of each other; one that is not after so
/// long has failed, or a replica is damaged.
constexpr uint64_t kDoubtNanos = 20'000'000;
constexpr int kTriesAtOnce = 16;
constexpr std::chrono::milliseconds kDoubtPause{1};

/// The record at `offset` of one replica, whose bytes are `window`. `*needed`: what a window must
/// have for it, if that is more.
bool RecordAt(const Slice& window, uint64_t offset, uint32_t stamp, LogRecord* record,
              uint64_t* needed) {
  if (window.size() - offset < kMinLogRecordBytes) return false;
  const Slice rest(window.data() + offset, window.size() - offset);
  if (DecodeFixed32(rest.data() + kLogStampAt) != stamp) return false;
  const uint64_t bytes = LogRecordBytes(DecodeFixed32(rest.data() + kLogLengthAt));
  if (bytes > rest.size()) {
    *needed = std::max(*needed, bytes);
    return false;
  }
  return ParseLogRecord(rest, stamp, record);
}

}  // namespace

void LogFollower::SetSegments(std::map<uint64_t, LogSegment> segments) {
  segments_ = std::move(segments);
  if (!segments_.contains(at_.number)) at_ = Position();
}

bool LogFollower::Readable(const ExtentAddr& copy) const {
  return copy.start.valid() && copy.length >= kLogHeaderBytes &&
         client_->alive(static_cast<NodeId>(copy.start.node));
}

Status LogFollower::Advance(Look look, const Visitor& visit,
                            const CompleteThrough& complete_through, End* end) {
  *end = End::kUnknown;
  heads_ = Heads();
  for (;;) {
    if (at_.number != 0) {
      Seen seen = Seen::kMore;
      NACRE_RETURN_IF_ERROR(ReadOpen(look, visit, &seen));
      const bool trusted = look != Look::kHeads ||
                           NACRE_PLANTED_BUG("follower.segment-without-a-mark-taken-for-the-last");
      if (seen == Seen::kOpen && trusted) {
        *end = End::kReached;
        return Status::OK();
      }
    }
    Next next = Next::kNone;
    NACRE_RETURN_IF_ERROR(FindNext(look, complete_through, &next));
    if (next == Next::kForeign) *end = End::kForeign;
    if (next != Next::kFound) return Status::OK();
  }
}

Status LogFollower::ReadOpen(Look look, const Visitor& visit, Seen* seen) {
  bool doubted = false;
  uint64_t at = 0;
  for (int tries = 0;; ++tries) {
    const uint64_t stayed = stayed_;
    heads_ = Heads();
    do {
      NACRE_RETURN_IF_ERROR(ReadOn(look, visit, seen));
    } while (*seen == Seen::kMore);
    if (look == Look::kSeals || !doubt_.stands) return Status::OK();
    // If the record that was in doubt has arrived, nothing behind it was acknowledged before.
    if (doubted && doubt_.offset != at && stayed_ == stayed) return Status::OK();
    if (!doubted || doubt_.offset != at) tries = 0;
    doubted = true;
    at = doubt_.offset;
    if (tries >= kTriesAtOnce) client_->clock()->SleepFor(kDoubtPause);
  }
}

bool LogFollower::Stays(const Slice& window, uint64_t offset) {
  const uint64_t now = client_->clock()->NowNanos();
  const bool known =
      doubt_.number == at_.number && doubt_.offset <= at_.offset && at_.offset < doubt_.through;
  if (!known) {
    // In memory that was given back, one replica may lack all of them.
    uint64_t end = offset;
    uint64_t needed = 0;
    LogRecord record;
    while (RecordAt(window, end, LogStamp(database_id_, at_.number), &record, &needed)) {
      end += record.bytes;
    }
    doubt_ = {.number = at_.number,
              .offset = at_.offset,
              .through = at_.offset + (end - offset),
              .since_nanos = now};
  }
  doubt_.stands = now - doubt_.since_nanos < kDoubtNanos;
  if (!doubt_.stands) ++stayed_;
  return !doubt_.stands;
}

Status LogFollower::ReadOn(Look look, const Visitor& visit, Seen* seen) {
  const LogSegment& segment = segments_.at(at_.number);
  const uint64_t length = at_.end != 0 ? at_.end : segment.copies.front().length;
  *seen = Seen::kSealed;
  if (at_.offset >= length && at_.end != 0) {
    doubt_.stands = false;
    return Status::OK();
  }
  const uint64_t least = at_.end != 0 ? kUsualWindow : kFirstWindow;
  const uint64_t window =
      std::min(std::max(at_.window, least), length - std::min(at_.offset, length));

  // The end of the records is read before the header on each node, since reads of a node take place
  // in the order in which they were posted.
  const bool one = at_.end != 0 && !at_.all_replicas;
  std::vector<pool::PointRead> reads;
  for (const ExtentAddr& copy : segment.copies) {
    if (!Readable(copy)) continue;
    if (one && !reads.empty()) break;
    pool::PointRead& tail = reads.emplace_back();
    tail.from = copy.start;
    if (window > 0) tail.from.offset = copy.start.offset + at_.offset;
    // Something is read even at the end of the segment, where nothing is left.
    tail.length = static_cast<uint32_t>(std::max<uint64_t>(window, kLogAlignment));
    pool::PointRead& header = reads.emplace_back();
    header.from = copy.start;
    header.length = kLogHeaderBytes;
  }
  const size_t of_segment = reads.size();
  std::vector<uint64_t> numbers;
  if (look == Look::kHeads && !heads_.read) AskForHeads(&reads, &numbers);
  pool::PointReader reader(client_->point_sessions());
  reader.ReadAll(reads);
  if (!numbers.empty()) {
    NACRE_RETURN_IF_ERROR(TakeHeads(std::span(reads).subspan(of_segment), numbers));
  }
  if (heads_.read && at_.end == 0 && at_.number <= foreign_through_) {
    NACRE_RETURN_IF_ERROR(CheckHeads());
    if (!heads_.used.empty() && heads_.used.begin()->second.previous_number <= at_.number) {
      LearnEnd(heads_.used.begin()->second);
      *seen = Seen::kMore;
      return Status::OK();
    }
  }

  std::vector<Slice> windows;
  bool open = of_segment == 2 * segment.copies.size();
  Status failure = Status::Unavailable("it has none");
  for (size_t i = 0; i + 1 < of_segment; i += 2) {
    for (const pool::PointRead* read : {&reads[i], &reads[i + 1]}) {
      if (!read->status.ok()) failure = read->status;
      bytes_read_ += read->length;
    }
    if (reads[i].status.ok()) windows.emplace_back(reads[i].data, window);
    LogSegmentHeader header;
    open = open && reads[i].status.ok() && reads[i + 1].status.ok() &&
           DecodeLogHeader(Slice(reads[i + 1].data, kLogHeaderBytes), database_id_, at_.number,
                           &header)
               .ok() &&
           !header.sealed && !header.announced;
  }
  if (windows.empty() && one) {
    at_.all_replicas = true;
    *seen = Seen::kMore;
    return Status::OK();
  }
  if (windows.empty()) {
    return Status::Unavailable(fmt::format("log segment {}: no copy of it can be read ({}): {}",
                                           at_.number, LogSegmentNodes(client_, segment),
                                           failure.message()));
  }
  const uint64_t before = at_.offset;
  uint64_t needed = 0;
  NACRE_RETURN_IF_ERROR(Take(windows, visit, &needed));
  const uint64_t left = length - at_.offset;
  if (needed > 0 && std::min(needed, left) > window - (at_.offset - before)) {
    at_.window = std::min(left, std::max(needed, std::min(2 * window, kUsualWindow)));
    *seen = Seen::kMore;
    return Status::OK();
  }
  // What is in doubt is read again as it was.
  at_.window = doubt_.stands ? window : 0;
  if (at_.end != 0) {
    if (at_.offset == at_.end) return Status::OK();
    if (one) {
      at_.all_replicas = true;
      *seen = Seen::kMore;
      return Status::OK();
    }
    std::string missing = fmt::format("log segment {} on {}: no copy has the record at {}",
                                      at_.number, LogSegmentNodes(client_, segment), at_.offset);
    if (windows.size() == segment.copies.size()) return Status::Corruption(missing);
    return Status::Unavailable(missing + " that can be read");
  }
  *seen = open ? Seen::kOpen : Seen::kSealed;
  return Status::OK();
}

Status LogFollower::Take(const std::vector<Slice>& windows, const Visitor& visit,
                         uint64_t* needed) {
  const uint32_t stamp = LogStamp(database_id_, at_.number);
  const uint64_t size = windows.front().size();
  uint64_t offset = 0;
  doubt_.stands = false;
  for (;;) {
    *needed = 0;
    LogRecord record;
    const char* bytes = nullptr;
    Slice whole;
    for (const Slice& window : windows) {
      if (!RecordAt(window, offset, stamp, &record, needed)) continue;
      bytes = window.data() + offset;
      whole = window;
      break;
    }
    // Only what all replicas have was acknowledged, unless it is known where the records end.
    const bool counts =
        bytes != nullptr &&
        (at_.end != 0 ||
         std::all_of(windows.begin(), windows.end(),
                     [&](const Slice& window) {
                       return std::memcmp(window.data() + offset, bytes, record.bytes) == 0;
                     }) ||
         Stays(whole, offset));
    if (!counts) {
      if (size - offset < kMinLogRecordBytes) *needed = std::max(*needed, kMinLogRecordBytes);
      if (bytes != nullptr) *needed = 0;
      return Status::OK();
    }
    unproven_ = unproven_ || (at_.end == 0 && at_.number <= left_through_);
    NACRE_RETURN_IF_ERROR(visit(record.first, record.count, record.payload));
    offset += record.bytes;
    at_.offset += record.bytes;
  }
}

void LogFollower::AskForHeads(std::vector<pool::PointRead>* reads,
                              std::vector<uint64_t>* numbers) const {
  for (auto it = segments_.upper_bound(at_.number); it != segments_.end(); ++it) {
    for (const ExtentAddr& copy : it->second.copies) {
      if (!Readable(copy)) continue;
      pool::PointRead& read = reads->emplace_back();
      read.from = copy.start;
      read.length = kLogHeaderBytes;
      numbers->push_back(it->first);
    }
  }
}

Status LogFollower::TakeHeads(std::span<const pool::PointRead> reads,
                              const std::vector<uint64_t>& numbers) {
  heads_ = {.read = true, .unread = {}, .used = {}, .announced = false};
  for (auto it = segments_.upper_bound(at_.number); it != segments_.end(); ++it) {
    heads_.unread.insert(it->first);
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    bytes_read_ += kLogHeaderBytes;
    if (!reads[i].status.ok()) continue;
    heads_.unread.erase(numbers[i]);
    LogSegmentHeader header;
    const Status decoded =
        DecodeLogHeader(Slice(reads[i].data, kLogHeaderBytes), database_id_, numbers[i], &header);
    if (decoded.IsNotSupported()) return decoded;
    if (decoded.ok() && header.announced) heads_.announced = true;
    if (decoded.ok() && !header.announced) heads_.used.emplace(numbers[i], header);
  }
  // What lies between a segment and the one before it was given up, as recovery has it.
  for (auto it = heads_.used.end(); it != heads_.used.begin();) {
    --it;
    heads_.used.erase(heads_.used.upper_bound(it->second.previous_number), it);
  }
  return Status::OK();
}

Status LogFollower::CheckHeads() const {
  if (!heads_.used.empty() || heads_.unread.empty()) return Status::OK();
  const uint64_t unread = *heads_.unread.begin();
  return Status::Unavailable(fmt::format("log segment {}: no copy of its header can be read ({})",
                                         unread, LogSegmentNodes(client_, segments_.at(unread))));
}

void LogFollower::LearnEnd(const LogSegmentHeader& later) {
  if (later.previous_number == at_.number) {
    at_.end = later.previous_bytes;
    if (at_.offset <= at_.end) unproven_ = false;
  } else {
    at_.end = at_.offset;  // It was given up, with all that is in it.
  }
}

Status LogFollower::FindNext(Look look, const CompleteThrough& complete_through, Next* next) {
  *next = Next::kNone;
  if (!heads_.read) {
    std::vector<pool::PointRead> reads;
    std::vector<uint64_t> numbers;
    AskForHeads(&reads, &numbers);
    pool::PointReader reader(client_->point_sessions());
    if (!reads.empty()) reader.ReadAll(reads);
    NACRE_RETURN_IF_ERROR(TakeHeads(reads, numbers));
  }
  if (heads_.used.empty()) {
    return look == Look::kHeads ? CheckHeads() : Status::OK();
  }
  *next = Next::kFound;
  const auto [number, header] = *heads_.used.begin();
  if (header.previous_number == at_.number && at_.number != 0 && at_.end == 0) {
    LearnEnd(header);
    if (at_.offset < at_.end) return Status::OK();  // First what is left of this one.
  }
  if (header.previous_number > at_.number && segments_.contains(header.previous_number)) {
    return Status::Unavailable(fmt::format(
        "log segment {}: no copy has its header, or can be read ({})", header.previous_number,
        LogSegmentNodes(client_, segments_.at(header.previous_number))));
  }
  if (unproven_) {
    *next = Next::kForeign;
    return Status::OK();
  }
  // For one that is far behind, the end is known from the beginning.
  const auto following = std::next(heads_.used.begin());
  const bool ended = following != heads_.used.end() && following->second.previous_number == number;
  return Enter(number, header, ended ? following->second.previous_bytes : 0, complete_through);
}

Status LogFollower::Enter(uint64_t number, const LogSegmentHeader& header, uint64_t end,
                          const CompleteThrough& complete_through) {
  at_ = Position();
  at_.number = number;
  at_.offset = kLogHeaderBytes;
  at_.end = end;
  heads_ = Heads();
  return complete_through(header.complete_through);
}

}  // namespace nacre
