#include "db/wal/log_tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "pool/read/pool_reader.h"
#include "pool/store/mirrored_extent.h"
#include "table/format/log_format.h"
#include "util/clock.h"

namespace nacre {
namespace {

/// Size of one write.
constexpr uint64_t kTailPieceBytes = 1 << 20;

class Tail {
 public:
  Tail(pool::PoolClient* client, uint64_t database_id, const LogSegment& segment, uint64_t begin,
       uint64_t end, std::vector<std::string>* notes)
      : client_(client),
        segment_(segment),
        stamp_(LogStamp(database_id, segment.number)),
        begin_(begin),
        bytes_(end - begin),
        notes_(notes) {}

  Status Complete() {
    NACRE_RETURN_IF_ERROR(Read());
    bool alike = true;
    for (const Copy& copy : copies_) alike = alike && Same(copy, copies_.front().bytes.get());
    if (alike) return Status::OK();
    std::unique_ptr<rdma::MemoryRegion> whole;
    NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client_->fabric(), bytes_, &whole));
    NACRE_RETURN_IF_ERROR(Merge(whole->data()));
    for (const Copy& copy : copies_) {
      if (!Same(copy, whole->data())) NACRE_RETURN_IF_ERROR(Write(copy.extent, whole.get()));
    }
    return Status::OK();
  }

 private:
  struct Copy {
    ExtentAddr extent;
    std::unique_ptr<char[]> bytes;
  };

  bool Alive(const ExtentAddr& extent) const {
    return client_->alive(static_cast<NodeId>(extent.start.node));
  }
  bool Same(const Copy& copy, const char* other) const {
    return std::memcmp(copy.bytes.get(), other, bytes_) == 0;
  }
  /// A failure, unless it is the node's end.
  Status Judge(const ExtentAddr& extent, const Status& status) {
    if (status.ok() || Alive(extent)) return status;
    notes_->push_back(
        fmt::format("the end of log segment {}: {}", segment_.number, status.ToString()));
    return Status::OK();
  }

  Status Read() {
    std::unique_ptr<pool::PoolReader> reader;
    NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client_->fabric(), &reader));
    for (const ExtentAddr& extent : segment_.copies) {
      if (!Alive(extent)) continue;
      auto bytes = std::make_unique_for_overwrite<char[]>(bytes_);
      const Status status = reader->Read(extent, begin_, bytes_, bytes.get());
      NACRE_RETURN_IF_ERROR(Judge(extent, status));
      if (status.ok()) copies_.push_back({.extent = extent, .bytes = std::move(bytes)});
    }
    return Status::OK();
  }

  /// Each record from a replica that has it.
  Status Merge(char* whole) const {
    for (uint64_t at = 0; at < bytes_;) {
      LogRecord record;
      for (const Copy& copy : copies_) {
        const char* const from = copy.bytes.get() + at;
        if (!ParseLogRecord(Slice(from, bytes_ - at), stamp_, &record)) continue;
        std::memcpy(whole + at, from, record.bytes);
        break;
      }
      if (record.bytes == 0) {
        return Status::Unavailable(
            fmt::format("log segment {}: no copy that can be reached has the record at {} any more",
                        segment_.number, begin_ + at));
      }
      at += record.bytes;
    }
    return Status::OK();
  }

  /// A node that becomes slow meanwhile is waited for: its replica is to have the records, too.
  Status Write(const ExtentAddr& extent, rdma::MemoryRegion* whole) {
    const auto node = static_cast<NodeId>(extent.start.node);
    const Deadline deadline =
        Deadline::After(client_->clock(), client_->options().operation_timeout);
    Status status;
    do {
      status = TryWrite(extent, whole, deadline);
    } while (status.IsUnavailable() && Alive(extent) && !client_->prompt(node) &&
             !deadline.Expired());
    return Judge(extent, status);
  }

  Status TryWrite(const ExtentAddr& extent, rdma::MemoryRegion* whole, Deadline deadline) {
    std::unique_ptr<pool::MirroredExtent> copy;
    Status status = pool::MirroredExtent::Open(client_->fabric(), {extent}, &copy);
    uint64_t ticket = 0;
    for (uint64_t at = 0; at < bytes_ && status.ok(); at += kTailPieceBytes) {
      const auto size = static_cast<uint32_t>(std::min(kTailPieceBytes, bytes_ - at));
      status = copy->Write(begin_ + at, {.data = whole->data() + at, .size = size, .region = whole},
                           &ticket);
    }
    return status.ok() ? copy->Await(ticket, deadline) : status;
  }

  pool::PoolClient* const client_;
  const LogSegment& segment_;
  const uint32_t stamp_;
  const uint64_t begin_;
  const uint64_t bytes_;
  std::vector<std::string>* const notes_;
  std::vector<Copy> copies_;  ///< Those that can be read.
};

}  // namespace

Status CompleteLogTail(pool::PoolClient* client, uint64_t database_id, const LogSegment& segment,
                       uint64_t begin, uint64_t end, std::vector<std::string>* notes) {
  return Tail(client, database_id, segment, begin, end, notes).Complete();
}

}  // namespace nacre
