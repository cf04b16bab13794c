// Logs: any bytes are parsed as header and records without reading beyond them, whatever parses is
// what its encoding parses as. No payload is taken for an encrypted one that is none.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "db/wal/log_encryption.h"
#include "table/format/log_format.h"
#include "util/crypto/key_ring.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kDatabase = 1;
  constexpr uint64_t kNumber = 2;
  const uint32_t stamp = LogStamp(kDatabase, kNumber);
  LogSegmentHeader header;
  if (DecodeLogHeader(bytes, kDatabase, kNumber, &header).ok()) {
    std::string again(kLogHeaderBytes, '\0');
    EncodeLogHeader(header, again.data());
    LogSegmentHeader parsed;
    if (!DecodeLogHeader(again, kDatabase, kNumber, &parsed).ok()) std::abort();
    if (parsed.previous_bytes != header.previous_bytes) std::abort();
  }
  ResemblesLogRecord(bytes, stamp, 0);
  LogRecord record;
  // Bytes seldom have the checksums: those that could be a record get them.
  if (size < kMinLogRecordBytes) {
    if (ParseLogRecord(bytes, stamp, &record)) std::abort();
    return 0;
  }
  const uint64_t length = DecodeFixed32(bytes.data() + kLogLengthAt);
  if (LogRecordBytes(length) <= size) {
    const size_t covered = kLogRecordHead - kLogLengthAt + length;
    EncodeFixed32(bytes.data() + kLogStampAt, stamp);
    EncodeFixed32(bytes.data() + kLogCrcAt, Crc32c(bytes.data() + kLogLengthAt, covered));
  }
  if (!ParseLogRecord(bytes, stamp, &record)) return 0;
  if (record.bytes > size || record.payload.size() != length || record.count == 0) std::abort();
  auto ring = std::make_shared<KeyRing>();
  if (!KeyRing::Parse("one " + std::string(64, '0') + "\n", ring.get()).ok()) std::abort();
  std::string decrypted(record.payload.size(), '\0');
  Slice updates;
  if (LogDecryptor(ring, kDatabase)
          .Decrypt(record.first, record.count, record.payload, decrypted.data(), &updates)
          .ok() &&
      updates != record.payload) {
    std::abort();
  }
  std::string again(record.bytes, '\0');
  EncodeLogRecord(again.data(), record.first, record.count, {&record.payload, 1}, length);
  EncodeFixed32(again.data() + kLogStampAt, stamp);
  LogRecord parsed;
  if (!ParseLogRecord(again, stamp, &parsed)) std::abort();
  if (parsed.first != record.first || parsed.count != record.count ||
      parsed.payload != record.payload) {
    std::abort();
  }
  return 0;
}
