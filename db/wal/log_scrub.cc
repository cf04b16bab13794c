#include "db/wal/log_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "pool/store/mirrored_extent.h"
#include "table/format/log_format.h"
#include "util/clock.h"
#include "util/codes/crc32c.h"

namespace nacre {
namespace {

constexpr uint64_t kScrubPieceBytes = 256 << 10;

/// Compares a segment's bytes, which come piece by piece, with their checksums.
class SegmentCheck {
 public:
  SegmentCheck(uint64_t database_id, uint64_t number, uint64_t bytes)
      : database_id_(database_id),
        number_(number),
        stamp_(LogStamp(database_id, number)),
        ahead_(bytes) {
    Expect(Part::kHeader, kLogHeaderBytes);
  }

  /// False from the first damage on.
  bool Add(Slice bytes) {
    while (whole_ && !bytes.empty()) {
      const size_t n = std::min<uint64_t>(bytes.size(), left_);
      if (part_ == Part::kPayload) {
        crc_ = Crc32c(bytes.data(), n, crc_);
      } else if (part_ != Part::kPadding) {
        head_.append(bytes.data(), n);
      }
      left_ -= n;
      ahead_ -= n;
      bytes.remove_prefix(n);
      while (whole_ && left_ == 0 && ahead_ > 0) EndPart();
      if (left_ == 0 && ahead_ == 0) EndPart();
    }
    return whole_;
  }
  /// Once all bytes were added.
  bool whole() const { return whole_; }

 private:
  enum class Part : char { kHeader, kHead, kPayload, kPadding };

  void Expect(Part part, uint64_t bytes) {
    part_ = part;
    left_ = bytes;
  }

  void EndPart() {
    switch (part_) {
      case Part::kHeader: {
        LogSegmentHeader header;
        whole_ = DecodeLogHeader(head_, database_id_, number_, &header).ok();
        BeginRecord();
        return;
      }
      case Part::kHead:
        BeginPayload();
        return;
      case Part::kPayload:
        whole_ = crc_ == DecodeFixed32(head_.data() + kLogCrcAt);
        Expect(Part::kPadding, padding_);
        return;
      case Part::kPadding:
        BeginRecord();
        return;
    }
  }

  void BeginRecord() {
    head_.clear();
    Expect(Part::kHead, kLogRecordHead);
    // The acknowledged bytes end with a record.
    if (ahead_ > 0 && ahead_ < kMinLogRecordBytes) whole_ = false;
  }

  void BeginPayload() {
    const uint64_t length = DecodeFixed32(head_.data() + kLogLengthAt);
    const uint64_t rest = LogRecordBytes(length) - kLogRecordHead;
    if (DecodeFixed32(head_.data() + kLogStampAt) != stamp_ || rest > ahead_) {
      whole_ = false;
      return;
    }
    constexpr size_t kCoveredFrom = kLogCrcAt + 4;
    crc_ = Crc32c(head_.data() + kCoveredFrom, kLogRecordHead - kCoveredFrom);
    padding_ = rest - length;
    Expect(Part::kPayload, length);
  }

  const uint64_t database_id_;
  const uint64_t number_;
  const uint32_t stamp_;
  uint64_t ahead_;  ///< Bytes to come.
  bool whole_ = true;
  Part part_ = Part::kHeader;
  uint64_t left_ = 0;  ///< Bytes left of the part.
  std::string head_;   ///< Head of the segment, or of a record.
  uint32_t crc_ = 0;
  uint64_t padding_ = 0;
};

/// Replaces the bytes of a damaged replica by those of another one.
class Healing {
 public:
  Healing(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
          const WrittenSegment& written, const ExtentAddr& whole, const ExtentAddr& damaged)
      : client_(client),
        reader_(reader),
        database_id_(database_id),
        written_(written),
        whole_(whole),
        damaged_(damaged) {}

  Status Run() {
    NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client_->fabric(), kScrubPieceBytes, &buffer_));
    NACRE_RETURN_IF_ERROR(pool::MirroredExtent::Open(client_->fabric(), {damaged_}, &extent_));
    const auto now = std::make_unique_for_overwrite<char[]>(kScrubPieceBytes);
    SegmentCheck check(database_id_, written_.segment.number, written_.bytes);
    for (uint64_t at = 0; at < written_.bytes;) {
      const uint64_t n = std::min(kScrubPieceBytes, written_.bytes - at);
      NACRE_RETURN_IF_ERROR(reader_->Read(whole_, at, n, buffer_->data()));
      NACRE_RETURN_IF_ERROR(reader_->Read(damaged_, at, n, now.get()));
      if (!check.Add(Slice(buffer_->data(), n))) {
        return Status::Corruption(
            fmt::format("log segment {}: the copy to heal another one with "
                        "is damaged, too",
                        written_.segment.number));
      }
      if (at == 0) MakeHeader(now.get());
      if (std::memcmp(buffer_->data(), now.get(), n) != 0) NACRE_RETURN_IF_ERROR(Write(at, n));
      at += n;
    }
    return Status::OK();
  }

 private:
  /// Fills the buffer with the header for the damaged replica, whose header is at `now`: its own,
  /// which may have the mark that the other one lacks, or the other one's with the mark, as the
  /// segment is sealed.
  void MakeHeader(const char* now) {
    LogSegmentHeader header;
    const uint64_t number = written_.segment.number;
    if (DecodeLogHeader(Slice(now, kLogHeaderBytes), database_id_, number, &header).ok()) {
      std::memcpy(buffer_->data(), now, kLogHeaderBytes);
    } else {
      EncodeLogSeal(database_id_, number, buffer_->data() + kLogSealAt);
    }
  }

  Status Write(uint64_t at, uint64_t n) {
    uint64_t ticket = 0;
    NACRE_RETURN_IF_ERROR(extent_->Write(
        at, {.data = buffer_->data(), .size = static_cast<uint32_t>(n), .region = buffer_.get()},
        &ticket));
    return extent_->Await(ticket,
                          Deadline::After(client_->clock(), client_->options().operation_timeout));
  }

  pool::PoolClient* const client_;
  pool::PoolReader* const reader_;
  const uint64_t database_id_;
  const WrittenSegment& written_;
  const ExtentAddr whole_;
  const ExtentAddr damaged_;
  std::unique_ptr<rdma::MemoryRegion> buffer_;  ///< Outlives the writes of extent_.
  std::unique_ptr<pool::MirroredExtent> extent_;
};

}  // namespace

Status CheckLogCopies(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                      const WrittenSegment& written, const PassBytes& pass,
                      LogSegmentReplicas* copies) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kScrubPieceBytes);
  for (const ExtentAddr& copy : written.segment.copies) {
    if (!client->alive(copy.start.node)) continue;
    SegmentCheck check(database_id, written.segment.number, written.bytes);
    bool readable = true;
    for (uint64_t at = 0; at < written.bytes && readable && check.whole(); at += kScrubPieceBytes) {
      const uint64_t n = std::min(kScrubPieceBytes, written.bytes - at);
      readable = reader->Read(copy, at, n, buffer.get()).ok();
      if (readable) check.Add(Slice(buffer.get(), n));
      NACRE_RETURN_IF_ERROR(pass(n));
    }
    if (readable) (check.whole() ? copies->whole : copies->damaged).push_back(copy);
  }
  return Status::OK();
}

Status HealLogCopy(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                   const WrittenSegment& written, const ExtentAddr& whole,
                   const ExtentAddr& damaged) {
  return Healing(client, reader, database_id, written, whole, damaged).Run();
}

}  // namespace nacre
