// Records: any bytes are parsed without reading beyond them, and whatever parses is what its
// encoding parses as.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "table/format/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  const Slice bytes(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kTableId = 1;
  Record record;
  const uint64_t from_header = RecordBytesFromHeader(bytes);
  for (const bool verify : {true, false}) {
    if (ParseRecord(bytes, kTableId, verify, &record) != RecordParse::kOk) continue;
    if (record.encoded_bytes > size || record.encoded_bytes != from_header) std::abort();
    std::string again(RecordBytes(record.user_key.size(), record.tag, record.value.size()), '\0');
    EncodeRecord(again.data(), kTableId, record.user_key, record.tag, record.value);
    Record parsed;
    if (ParseRecord(again, kTableId, true, &parsed) != RecordParse::kOk) std::abort();
    if (parsed.user_key != record.user_key || parsed.tag != record.tag ||
        parsed.value != record.value) {
      std::abort();
    }
  }
  return 0;
}
