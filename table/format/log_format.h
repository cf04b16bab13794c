#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {

// The bytes of a log segment: a header, then records, then whatever the memory held before.
//
// Memory is not cleared for a log. That its old bytes are never taken for records is due to the
// stamp, a checksum of database id and segment number, which each record begins with: no number is
// used twice.
//
// A segment does not say where its records end, since it may have to end while one of its nodes is
// lost and cannot be written. Its successor's header does. A header that only announces a segment
// does not yet: the writer first puts into the segment what it had under way in the one before, as
// followers may have shown that. Nothing is acknowledged in a segment that is announced.
//
// Before there is a record in its successor, a segment is marked as sealed in all replicas that can
// be reached. So a reader that reads the end of a replica and then, in this order, a header without
// the mark knows that the segment was open until then, and its memory not reused. The mark is four
// bytes at a multiple of four, so it is there as a whole or not at all, and the header's checksum
// takes it for zero.
//
//     header                                  record
//     0   fixed64  magic                      0   fixed32  stamp of the segment
//     8   fixed64  database id                4   fixed32  CRC32C of all that follows but padding
//     16  fixed64  number                     8   fixed32  bytes of the payload
//     24  fixed64  number of the predecessor  12  fixed32  number of updates, at least 1
//     32  fixed64  its valid bytes            16  fixed64  first sequence
//     40  fixed32  format version             24  payload  updates as in a WriteBatch
//     44  fixed32  1: announced                         zeros to a multiple of 8, 32 bytes at least
//     48  fixed64  complete through: sequence
//     56  fixed32  0; sealed: the stamp, or 1
//     60  fixed32  CRC32C of 60 bytes

inline constexpr size_t kLogHeaderBytes = 64;
inline constexpr uint64_t kLogMagic = 0x474553474f4c434eULL;  ///< "NCLOGSEG"
/// 1 had neither the sequence it is complete through nor a mark, 2 announced nothing.
inline constexpr uint32_t kLogFormatVersion = 3;
/// The same with payloads that are encrypted (db/wal/log_encryption.h).
inline constexpr uint32_t kEncryptedLogFormatVersion = 4;

inline constexpr size_t kLogSealAt = 56;
inline constexpr size_t kLogSealBytes = 4;

inline constexpr size_t kLogRecordHead = 24;
inline constexpr size_t kLogAlignment = 8;
/// The least size ensures that two records never begin within the same aligned 32 bytes (see
/// LogRing).
inline constexpr size_t kMinLogRecordBytes = 32;
inline constexpr uint64_t kMaxLogPayload = UINT32_MAX - 64;

// Offsets in the head of a record.
inline constexpr size_t kLogStampAt = 0;
inline constexpr size_t kLogCrcAt = 4;
inline constexpr size_t kLogLengthAt = 8;
inline constexpr size_t kLogCountAt = 12;
inline constexpr size_t kLogSequenceAt = 16;
static_assert(kLogSequenceAt + 8 == kLogRecordHead);

struct LogSegmentHeader {
  uint64_t database_id = 0;
  uint64_t number = 0;
  uint64_t previous_number = 0;  ///< 0: a log begins here.
  uint64_t previous_bytes = 0;   ///< Header and records of the predecessor; what follows is void.
  /// Whatever up to this sequence is not in tables nor in the segments before is in no log, and
  /// will not be.
  SequenceNumber complete_through = 0;
  bool encrypted_payloads = false;
  /// The segment is not in use yet, so the one before has not ended.
  bool announced = false;
  /// Nothing is acknowledged here any more, or the format version does not tell. Not encoded: see
  /// EncodeLogSeal.
  bool sealed = false;
};

/// Writes `kLogHeaderBytes` bytes.
void EncodeLogHeader(const LogSegmentHeader& header, char* to);
/// The mark of a sealed segment, to `kLogSealBytes` bytes: what is written at kLogSealAt.
void EncodeLogSeal(uint64_t database_id, uint64_t number, char* to);
/// `Corruption` if the bytes are no header, or that of another segment than `database_id` and
/// `number`; `NotSupported` for a newer format.
Status DecodeLogHeader(const Slice& bytes, uint64_t database_id, uint64_t number,
                       LogSegmentHeader* header);

/// The same of any segment of the database.
Status DecodeAnyLogHeader(const Slice& bytes, uint64_t database_id, LogSegmentHeader* header);

uint32_t LogStamp(uint64_t database_id, uint64_t number);

/// Bytes of a record in a segment.
constexpr uint64_t LogRecordBytes(uint64_t payload_bytes) {
  const uint64_t whole = kLogRecordHead + payload_bytes + kLogAlignment - 1;
  return std::max<uint64_t>(kMinLogRecordBytes, whole / kLogAlignment * kLogAlignment);
}

/// All of the head but stamp and checksum.
inline void EncodeLogRecordHead(char* to, uint32_t payload_bytes, uint32_t count,
                                SequenceNumber first) {
  EncodeFixed32(to + kLogLengthAt, payload_bytes);
  EncodeFixed32(to + kLogCountAt, count);
  EncodeFixed64(to + kLogSequenceAt, first);
}

/// All of a record but its stamp, to LogRecordBytes(payload) bytes. `payload`: the bytes of
/// `parts`.
void EncodeLogRecord(char* to, SequenceNumber first, uint32_t count, std::span<const Slice> parts,
                     uint64_t payload);

struct LogRecord {
  SequenceNumber first = 0;
  uint32_t count = 0;
  Slice payload;
  uint64_t bytes = 0;  ///< Its size in the segment.
};

/// Whether `bytes` begin with a whole record of the segment with this stamp. It reads nothing
/// beyond them.
bool ParseLogRecord(const Slice& bytes, uint32_t stamp, LogRecord* record);

/// Whether `bytes`, which are no record, may have been meant as one, after one whose last sequence
/// was `last`: the beginning of a write that was not finished, or a record that was damaged. That
/// is so if at most one byte of the stamp differs, or if there is a nearby sequence in a plausible
/// head, save in whole records: these were left there by earlier segments.
bool ResemblesLogRecord(const Slice& bytes, uint32_t stamp, SequenceNumber last);

}  // namespace nacre
