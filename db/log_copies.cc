#include "db/log_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "memnode/mirrored_extent.h"

namespace nacre {
namespace {

/// The header and the head of the first record.
constexpr size_t kHeadBytes = kLogHeaderBytes + kLogRecordHead;

Status NoneReadable(memnode::PoolClient* client, const LogSegment& segment, const Status& why) {
  return Status::Unavailable(fmt::format("log segment {}: no copy of it can be read ({}): {}",
                                         segment.number, LogSegmentNodes(client, segment),
                                         why.message()));
}

}  // namespace

std::string LogSegmentNodes(memnode::PoolClient* client, const LogSegment& segment) {
  std::string nodes;
  for (const ExtentAddr& copy : segment.copies) {
    if (!nodes.empty()) nodes += ", ";
    nodes += copy.start.node < client->node_count() ? client->node_address(copy.start.node)
                                                    : "a lost node";
  }
  return nodes;
}

Status ReadLogSegmentHead(memnode::PoolClient* client, uint64_t database_id,
                          const LogSegment& segment, LogSegmentHead* head,
                          std::vector<std::string>* notes) {
  const uint32_t stamp = LogStamp(database_id, segment.number);
  *head = LogSegmentHead();
  int readable = 0;
  bool records = false;
  Status failure = Status::Unavailable("it has none");
  for (const ExtentAddr& copy : segment.copies) {
    char bytes[kHeadBytes];
    Status s = copy.length < kHeadBytes ? Status::Corruption("shorter than a header and a record")
                                        : memnode::ReadCopy(client, copy, 0, kHeadBytes, bytes);
    if (!s.ok()) {
      failure = s;
      notes->push_back(fmt::format("log segment {}: {}", segment.number, s.ToString()));
      continue;
    }
    ++readable;
    const bool has_records = DecodeFixed32(bytes + kLogHeaderBytes + kLogStampAt) == stamp;
    records = records || has_records;
    LogSegmentHeader header;
    s = DecodeLogHeader(Slice(bytes, kLogHeaderBytes), database_id, segment.number, &header);
    if (s.IsNotSupported()) return s;
    if (s.ok()) {
      head->kind = LogSegmentHead::Kind::kUsed;
      head->header = header;
    } else if (has_records) {
      head->healed = true;
    }
  }
  if (readable == 0) return NoneReadable(client, segment, failure);
  if (head->kind == LogSegmentHead::Kind::kUnused && records) {
    head->kind = LogSegmentHead::Kind::kDamaged;
    head->healed = false;
  }
  return Status::OK();
}

Status LogCopies::Start(const LogSegment* segment, uint64_t from, uint64_t end,
                        std::vector<std::string>* notes) {
  segment_ = segment;
  end_ = end;
  notes_ = notes;
  copies_.resize(std::max(copies_.size(), segment->copies.size()));
  for (Copy& copy : copies_) copy.state = Copy::State::kUnread;
  Status s = Status::Unavailable("it has none");
  for (size_t i = 0; i < count(); ++i) {
    s = Read(i, from);
    if (s.ok()) return s;
  }
  return NoneReadable(client_, *segment, s);
}

Slice LogCopies::From(size_t number, uint64_t offset) {
  Copy& copy = copies_[number];
  if (copy.state == Copy::State::kUnread) {
    // Told of in the notes; the other copies do as well.
    Read(number, offset).IgnoreError();
  }
  if (copy.state == Copy::State::kLost) return Slice();
  return Slice(copy.bytes + (offset - copy.from), end_ - offset);
}

Status LogCopies::Read(size_t number, uint64_t from) {
  Copy& copy = copies_[number];
  const uint64_t bytes = end_ - from;
  if (kept_ != nullptr) {
    bool new_chunk = false;
    copy.bytes = kept_->Allocate(bytes, &new_chunk);
  } else if (copy.capacity < bytes) {
    copy.own.reset(new char[bytes]);  // Uninitialized: all of it is read.
    copy.bytes = copy.own.get();
    copy.capacity = bytes;
  }
  copy.from = from;
  Status s = memnode::ReadCopy(client_, segment_->copies[number], from, bytes, copy.bytes);
  copy.state = s.ok() ? Copy::State::kRead : Copy::State::kLost;
  if (!s.ok()) {
    notes_->push_back(fmt::format("log segment {}: {}", segment_->number, s.ToString()));
  }
  return s;
}

}  // namespace nacre
