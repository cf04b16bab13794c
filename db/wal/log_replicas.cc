#include "db/wal/log_replicas.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre {
namespace {

/// The header and the head of the first record.
constexpr size_t kHeadBytes = kLogHeaderBytes + kLogRecordHead;
/// What is only looked through is read in pieces that stay in the cache.
constexpr size_t kScratchBytes = 256 << 10;
static_assert(kScratchBytes % kLogAlignment == 0);

Status NoneReadable(pool::PoolClient* client, const LogSegment& segment, const Status& why) {
  return Status::Unavailable(fmt::format("log segment {}: no copy of it can be read ({}): {}",
                                         segment.number, LogSegmentNodes(client, segment),
                                         why.message()));
}

/// Whether `stamp` begins at some multiple of the alignment.
bool HoldsStamp(const Slice& bytes, uint32_t stamp) {
  for (size_t at = 0; at + sizeof(stamp) <= bytes.size(); at += kLogAlignment) {
    if (DecodeFixed32(bytes.data() + at) == stamp) return true;
  }
  return false;
}

}  // namespace

std::string LogSegmentNodes(pool::PoolClient* client, const LogSegment& segment) {
  std::string nodes;
  for (const ExtentAddr& replica : segment.copies) {
    if (!nodes.empty()) nodes += ", ";
    nodes += replica.start.node < client->node_count() ? client->node_address(replica.start.node)
                                                       : "a lost node";
  }
  return nodes;
}

Status ReadLogSegmentHead(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                          const LogSegment& segment, LogSegmentHead* head,
                          std::vector<std::string>* notes) {
  const uint32_t stamp = LogStamp(database_id, segment.number);
  *head = LogSegmentHead();
  int readable = 0;
  bool records = false;
  bool announced = false;
  Status failure = Status::Unavailable("it has none");
  for (const ExtentAddr& replica : segment.copies) {
    char bytes[kHeadBytes];
    Status s = replica.length < kHeadBytes
                   ? Status::Corruption("shorter than a header and a record")
                   : reader->Read(replica, 0, kHeadBytes, bytes);
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
    if (s.ok() && header.announced) {
      announced = true;
    } else if (s.ok()) {
      head->kind = LogSegmentHead::Kind::kUsed;
      head->header = header;
    } else if (has_records) {
      head->healed = true;
    }
  }
  if (readable == 0) return NoneReadable(client, segment, failure);
  if (head->kind == LogSegmentHead::Kind::kUnused && records && !announced) {
    head->kind = LogSegmentHead::Kind::kDamaged;
    head->healed = false;
  }
  return Status::OK();
}

void LogReplicas::Start(pool::PoolReader* reader, const LogSegment* segment, uint64_t from,
                        uint64_t end) {
  reader_ = reader;
  segment_ = segment;
  end_ = end;
  replicas_ = std::vector<Replica>(segment->copies.size());
  for (size_t i = 0; i < count(); ++i) {
    if (Begin(i, from).ok()) return;
  }
}

Status LogReplicas::Begin(size_t number, uint64_t from) {
  Replica& replica = replicas_[number];
  const size_t bytes = end_ - from;
  if (kept_ != nullptr) {
    bool new_chunk = false;
    replica.bytes = kept_->Allocate(bytes, &new_chunk);
  } else {
    replica.own = std::make_unique_for_overwrite<char[]>(bytes);
    replica.bytes = replica.own.get();
  }
  replica.from = from;
  replica.state = Replica::State::kRead;
  replica.read = std::make_unique<pool::ReplicaRead>();
  Status s = replica.read->Start(reader_, segment_->copies[number], from, bytes, replica.bytes);
  if (!s.ok()) Lose(number, s);
  return s;
}

void LogReplicas::Lose(size_t number, const Status& why) {
  replicas_[number].state = Replica::State::kLost;
  notes_.push_back(fmt::format("log segment {}: {}", segment_->number, why.ToString()));
  failure_ = why;
}

Slice LogReplicas::Fetch(size_t number, uint64_t offset, size_t n) {
  Replica& replica = replicas_[number];
  if (replica.state == Replica::State::kUnread) Begin(number, offset).IgnoreError();
  if (replica.state == Replica::State::kLost) return Slice();
  const size_t wanted = std::min<uint64_t>(offset - replica.from + n, end_ - replica.from);
  if (Status s = replica.read->AwaitFirst(wanted); !s.ok()) {
    Lose(number, s);
    return Slice();
  }
  return Slice(replica.bytes + (offset - replica.from), end_ - offset);
}

bool LogReplicas::MayHoldRecord(size_t number, uint64_t offset, uint32_t stamp) {
  Replica& replica = replicas_[number];
  if (replica.state == Replica::State::kLost) return false;
  if (replica.state == Replica::State::kRead) {
    // The reader of this replica meets the failure.
    if (!replica.read->AwaitPosted().ok()) return true;
    const uint64_t arrived = replica.from + replica.read->arrived();
    if (arrived > offset) {
      if (HoldsStamp(Slice(replica.bytes + (offset - replica.from), arrived - offset), stamp))
        return true;
      // A stamp that has not arrived as a whole begins here at the earliest.
      offset += (arrived - offset) / kLogAlignment * kLogAlignment;
    }
  }
  const auto scratch = std::make_unique_for_overwrite<char[]>(kScratchBytes);
  while (offset < end_) {
    const size_t bytes = std::min<uint64_t>(kScratchBytes, end_ - offset);
    if (Status s = reader_->Read(segment_->copies[number], offset, bytes, scratch.get()); !s.ok()) {
      Lose(number, s);
      return false;
    }
    if (HoldsStamp(Slice(scratch.get(), bytes), stamp)) return true;
    offset += bytes;
  }
  return false;
}

Status LogReplicas::CheckReadable() const {
  const bool any = std::any_of(replicas_.begin(), replicas_.end(), [](const Replica& replica) {
    return replica.state != Replica::State::kLost;
  });
  return any ? Status::OK() : NoneReadable(client_, *segment_, failure_);
}

}  // namespace nacre
