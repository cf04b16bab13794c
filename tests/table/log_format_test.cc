// Goal: the bytes of the log's format are those of docs/formats.md; parts and flipped bits are not
// taken for the whole. Method: bytes written out by hand, and every cut and flip of them.

#include "table/format/log_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/status_assert.h"
#include "tests/support/table/guarded_bytes.h"

namespace nacre {
namespace {

constexpr uint64_t kDatabase = 0x1122334455667788;
constexpr uint64_t kNumber = 9;

std::string EncodedRecord(const Slice& payload) {
  std::string bytes(LogRecordBytes(payload.size()), 'x');
  EncodeLogRecord(bytes.data(), /*first=*/0x010203, /*count=*/2, {&payload, 1}, payload.size());
  EncodeFixed32(bytes.data(), LogStamp(kDatabase, kNumber));
  return bytes;
}

TEST(LogFormatTest, ARecordIsTheseBytes) {
  const std::string record = EncodedRecord("payload");
  ASSERT_EQ(record.size(), 32u);
  char stamped[16];
  EncodeFixed64(stamped, kDatabase);
  EncodeFixed64(stamped + 8, kNumber);
  EXPECT_EQ(DecodeFixed32(record.data()), Crc32c(stamped, 16));
  EXPECT_EQ(DecodeFixed32(record.data() + 4), Crc32c(record.data() + 8, 16 + 7));
  EXPECT_EQ(record.substr(8, 16), std::string("\7\0\0\0\2\0\0\0\3\2\1\0\0\0\0\0", 16));
  EXPECT_EQ(record.substr(24), std::string("payload\0", 8));
  EXPECT_EQ(LogRecordBytes(2), 32u);
  EXPECT_EQ(LogRecordBytes(8), 32u);
  EXPECT_EQ(LogRecordBytes(9), 40u);
}

TEST(LogFormatTest, PartsOfARecordAndFlipsAreNone) {
  const std::string record = EncodedRecord("a payload of some bytes");
  const uint32_t stamp = LogStamp(kDatabase, kNumber);
  const size_t covered = kLogRecordHead + 23;
  LogRecord parsed;
  ASSERT_TRUE(ParseLogRecord(record, stamp, &parsed));
  EXPECT_EQ(parsed.payload, Slice("a payload of some bytes"));
  EXPECT_EQ(parsed.count, 2u);
  EXPECT_EQ(parsed.first, 0x010203u);
  const GuardedBytes guarded;
  for (size_t size = 0; size < record.size(); ++size) {
    const Slice cut(guarded.EndingAtGuard(size), size);
    std::memcpy(guarded.EndingAtGuard(size), record.data(), size);
    EXPECT_FALSE(ParseLogRecord(cut, stamp, &parsed)) << size;
    EXPECT_EQ(ResemblesLogRecord(cut, stamp, 0), size >= kMinLogRecordBytes);
  }
  for (size_t bit = 0; bit < covered * 8; ++bit) {
    std::string flipped = record;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(ParseLogRecord(flipped, stamp, &parsed)) << "bit " << bit;
    EXPECT_TRUE(ResemblesLogRecord(flipped, stamp, 0x010202)) << "bit " << bit;
  }
}

TEST(LogFormatTest, RecordsOfOtherSegmentsAreNone) {
  const std::string record = EncodedRecord("payload");
  LogRecord parsed;
  for (const uint32_t other : {LogStamp(kDatabase, kNumber + 1), LogStamp(kDatabase + 1, kNumber),
                               LogStamp(kDatabase, kNumber - 1)}) {
    EXPECT_FALSE(ParseLogRecord(record, other, &parsed));
    EXPECT_FALSE(ResemblesLogRecord(record, other, 0x010202));
  }
  EXPECT_FALSE(ResemblesLogRecord(std::string(64, '\0'), LogStamp(kDatabase, kNumber), 0));
}

TEST(LogFormatTest, AHeaderIsThatOfItsSegment) {
  std::string bytes(kLogHeaderBytes, 'x');
  EncodeLogHeader(
      {.database_id = kDatabase, .number = kNumber, .previous_number = 7, .previous_bytes = 0x1234},
      bytes.data());
  EXPECT_EQ(bytes.substr(0, 8), "NCLOGSEG");
  EXPECT_EQ(bytes.substr(24, 16), std::string("\7\0\0\0\0\0\0\0\x34\x12\0\0\0\0\0\0", 16));
  LogSegmentHeader header;
  ASSERT_TRUE(IsOk(DecodeLogHeader(bytes, kDatabase, kNumber, &header)));
  EXPECT_EQ(header.previous_number, 7u);
  EXPECT_EQ(header.previous_bytes, 0x1234u);
  EXPECT_TRUE(DecodeLogHeader(bytes, kDatabase, kNumber + 1, &header).IsCorruption());
  EXPECT_TRUE(DecodeLogHeader(bytes, kDatabase + 1, kNumber, &header).IsCorruption());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_TRUE(IsFailure(DecodeLogHeader(flipped, kDatabase, kNumber, &header),
                          Status::Code::kCorruption, "log segment 9"));
  }
  EncodeFixed32(bytes.data() + 40, kEncryptedLogFormatVersion + 1);
  EncodeFixed32(bytes.data() + 60, Crc32c(bytes.data(), 60));
  EXPECT_TRUE(DecodeLogHeader(bytes, kDatabase, kNumber, &header).IsNotSupported());
}

TEST(LogFormatTest, ASealedHeaderSaysSoAndIsOtherwiseTheSame) {
  std::string bytes(kLogHeaderBytes, 'x');
  EncodeLogHeader({.database_id = kDatabase,
                   .number = kNumber,
                   .previous_number = 7,
                   .complete_through = 0x1234567},
                  bytes.data());
  LogSegmentHeader header;
  ASSERT_TRUE(IsOk(DecodeLogHeader(bytes, kDatabase, kNumber, &header)));
  EXPECT_FALSE(header.sealed);
  EXPECT_EQ(header.complete_through, 0x1234567u);
  EncodeLogSeal(kDatabase, kNumber, bytes.data() + kLogSealAt);
  ASSERT_TRUE(IsOk(DecodeLogHeader(bytes, kDatabase, kNumber, &header)));
  EXPECT_TRUE(header.sealed);
  EXPECT_EQ(header.complete_through, 0x1234567u);
  EncodeLogSeal(kDatabase, kNumber + 1, bytes.data() + kLogSealAt);
  EXPECT_TRUE(DecodeLogHeader(bytes, kDatabase, kNumber, &header).IsCorruption());
}

TEST(LogFormatTest, AHeaderMayAnnounceItsSegment) {
  std::string bytes(kLogHeaderBytes, 'x');
  LogSegmentHeader header;
  for (const bool announced : {true, false}) {
    EncodeLogHeader({.database_id = kDatabase, .number = kNumber, .announced = announced},
                    bytes.data());
    ASSERT_TRUE(IsOk(DecodeLogHeader(bytes, kDatabase, kNumber, &header)));
    EXPECT_EQ(header.announced, announced);
  }
}

TEST(LogFormatTest, AHeaderOfVersion1IsRead) {
  std::string bytes(kLogHeaderBytes, '\0');
  EncodeLogHeader({.database_id = kDatabase, .number = kNumber, .previous_number = 7},
                  bytes.data());
  EncodeFixed32(bytes.data() + 40, 1);
  EncodeFixed32(bytes.data() + 60, Crc32c(bytes.data(), 60));
  LogSegmentHeader header;
  ASSERT_TRUE(IsOk(DecodeLogHeader(bytes, kDatabase, kNumber, &header)));
  EXPECT_EQ(header.previous_number, 7u);
  EXPECT_EQ(header.complete_through, 0u);
  EXPECT_TRUE(header.sealed);  // Its writer would not have said so.
}

}  // namespace
}  // namespace nacre
