#include "table/format/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr size_t kLogMagicAt = 0;
constexpr size_t kDatabaseAt = 8;
constexpr size_t kNumberAt = 16;
constexpr size_t kPreviousNumberAt = 24;
constexpr size_t kPreviousBytesAt = 32;
constexpr size_t kLogVersionAt = 40;
/// Segments of earlier versions were not marked when they ended.
constexpr uint32_t kFirstMarkedVersion = 2;
/// Earlier versions had zeros there.
constexpr size_t kAnnouncedAt = 44;
constexpr size_t kCompleteThroughAt = 48;
constexpr size_t kHeaderCrcAt = 60;
static_assert(kCompleteThroughAt + 8 == kLogSealAt && kLogSealAt + kLogSealBytes == kHeaderCrcAt);
static_assert(kHeaderCrcAt + 4 == kLogHeaderBytes);

/// What the checksum of a record covers starts here.
constexpr size_t kCoveredFrom = kLogCrcAt + 4;

/// An update is a type and at least one length.
constexpr uint32_t kMinUpdateBytes = 2;
/// Records of different writers are not quite in the order of their sequences.
constexpr SequenceNumber kNearby = 1 << 20;

/// As if the segment were not sealed.
uint32_t HeaderCrc(const char* header) {
  const char unsealed[kLogSealBytes] = {};
  return Crc32c(unsealed, kLogSealBytes, Crc32c(header, kLogSealAt));
}

/// False if no record can have this head.
bool DecodeHead(const Slice& bytes, LogRecord* record) {
  if (bytes.size() < kMinLogRecordBytes) return false;
  const uint32_t length = DecodeFixed32(bytes.data() + kLogLengthAt);
  record->count = DecodeFixed32(bytes.data() + kLogCountAt);
  record->first = DecodeFixed64(bytes.data() + kLogSequenceAt);
  record->bytes = LogRecordBytes(length);
  if (record->bytes > bytes.size() || record->count == 0) return false;
  if (record->count > length / kMinUpdateBytes) return false;
  if (record->first > kMaxSequenceNumber ||
      record->count - 1 > kMaxSequenceNumber - record->first) {
    return false;
  }
  record->payload = Slice(bytes.data() + kLogRecordHead, length);
  return true;
}

bool HasChecksum(const Slice& bytes, const LogRecord& record) {
  const size_t covered = kLogRecordHead - kCoveredFrom + record.payload.size();
  return DecodeFixed32(bytes.data() + kLogCrcAt) == Crc32c(bytes.data() + kCoveredFrom, covered);
}

}  // namespace

void EncodeLogHeader(const LogSegmentHeader& header, char* to) {
  std::memset(to, 0, kLogHeaderBytes);
  EncodeFixed64(to + kLogMagicAt, kLogMagic);
  EncodeFixed64(to + kDatabaseAt, header.database_id);
  EncodeFixed64(to + kNumberAt, header.number);
  EncodeFixed64(to + kPreviousNumberAt, header.previous_number);
  EncodeFixed64(to + kPreviousBytesAt, header.previous_bytes);
  EncodeFixed32(to + kLogVersionAt,
                header.encrypted_payloads ? kEncryptedLogFormatVersion : kLogFormatVersion);
  EncodeFixed32(to + kAnnouncedAt, header.announced ? 1 : 0);
  EncodeFixed64(to + kCompleteThroughAt, header.complete_through);
  EncodeFixed32(to + kHeaderCrcAt, HeaderCrc(to));
}

void EncodeLogSeal(uint64_t database_id, uint64_t number, char* to) {
  EncodeFixed32(to, std::max<uint32_t>(1, LogStamp(database_id, number)));
}

Status DecodeLogHeader(const Slice& bytes, uint64_t database_id, uint64_t number,
                       LogSegmentHeader* header) {
  const auto damaged = [&](const char* what) {
    return Status::Corruption(fmt::format("log segment {}: {}", number, what));
  };
  if (bytes.size() < kLogHeaderBytes) return damaged("shorter than its header");
  const char* from = bytes.data();
  if (DecodeFixed64(from + kLogMagicAt) != kLogMagic) return damaged("no header");
  if (DecodeFixed32(from + kHeaderCrcAt) != HeaderCrc(from)) {
    return damaged("header with a wrong checksum");
  }
  header->database_id = DecodeFixed64(from + kDatabaseAt);
  header->number = DecodeFixed64(from + kNumberAt);
  header->previous_number = DecodeFixed64(from + kPreviousNumberAt);
  header->previous_bytes = DecodeFixed64(from + kPreviousBytesAt);
  if ((header->database_id != database_id || header->number != number) &&
      !NACRE_PLANTED_BUG("log.header-of-another-segment-accepted")) {
    return damaged("header of another segment");
  }
  if (header->previous_number >= number) return damaged("header with a wrong predecessor");
  const uint32_t version = DecodeFixed32(from + kLogVersionAt);
  if (version == 0 || version > kEncryptedLogFormatVersion) {
    return Status::NotSupported(fmt::format("log segment {}: format version {}, this is {}", number,
                                            version, kEncryptedLogFormatVersion));
  }
  header->encrypted_payloads = version == kEncryptedLogFormatVersion;
  header->announced = DecodeFixed32(from + kAnnouncedAt) != 0;
  header->complete_through = DecodeFixed64(from + kCompleteThroughAt);
  char seal[kLogSealBytes];
  EncodeLogSeal(database_id, number, seal);
  header->sealed = std::memcmp(from + kLogSealAt, seal, kLogSealBytes) == 0;
  if (!header->sealed && DecodeFixed32(from + kLogSealAt) != 0) {
    return damaged("header with a wrong mark");
  }
  if (version < kFirstMarkedVersion) header->sealed = true;
  return Status::OK();
}

Status DecodeAnyLogHeader(const Slice& bytes, uint64_t database_id, LogSegmentHeader* header) {
  if (bytes.size() < kLogHeaderBytes) return Status::Corruption("shorter than a log header");
  const uint64_t number = DecodeFixed64(bytes.data() + kNumberAt);
  return DecodeLogHeader(bytes, database_id, number, header);
}

uint32_t LogStamp(uint64_t database_id, uint64_t number) {
  char bytes[16];
  EncodeFixed64(bytes, database_id);
  EncodeFixed64(bytes + 8, number);
  return Crc32c(bytes, sizeof(bytes));
}

void EncodeLogRecord(char* to, SequenceNumber first, uint32_t count, std::span<const Slice> parts,
                     uint64_t payload) {
  EncodeLogRecordHead(to, static_cast<uint32_t>(payload), count, first);
  char* at = to + kLogRecordHead;
  for (const Slice& part : parts) {
    // A part of no bytes may point nowhere.
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  const uint64_t covered = kLogRecordHead - kCoveredFrom + payload;
  EncodeFixed32(to + kLogCrcAt, Crc32c(to + kCoveredFrom, covered));
  std::memset(at, 0, static_cast<size_t>(to + LogRecordBytes(payload) - at));
}

bool ParseLogRecord(const Slice& bytes, uint32_t stamp, LogRecord* record) {
  if (bytes.size() < kMinLogRecordBytes) return false;
  if (DecodeFixed32(bytes.data() + kLogStampAt) != stamp &&
      !NACRE_PLANTED_BUG("log.recycled-segment-read-as-new")) {
    return false;
  }
  if (NACRE_PLANTED_BUG("log.torn-record-accepted")) return DecodeHead(bytes, record);
  return DecodeHead(bytes, record) && HasChecksum(bytes, *record);
}

bool ResemblesLogRecord(const Slice& bytes, uint32_t stamp, SequenceNumber last) {
  if (bytes.size() < kMinLogRecordBytes) return false;
  const uint32_t difference = DecodeFixed32(bytes.data() + kLogStampAt) ^ stamp;
  for (int byte = 0; byte < 4; ++byte) {
    if ((difference & ~(uint32_t{0xff} << 8 * byte)) == 0) return true;
  }
  LogRecord record;
  // A whole record with another stamp is one of an earlier segment.
  if (!DecodeHead(bytes, &record) || HasChecksum(bytes, record)) return false;
  return record.first + kNearby > last && record.first < last + kNearby;
}

}  // namespace nacre
