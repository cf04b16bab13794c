#include "table/record_loader.h"

#include <algorithm>
#include <bit>

#include "util/memory/prefetch.h"

namespace nacre {

RecordParse RecordLoader::LoadLength(const Slice& bytes, RecordSeed seed, size_t* encoded_bytes) {
  char header[kMaxRecordHeaderBytes];
  const size_t n = std::min(bytes.size(), sizeof(header));
  LoadableMemory::Copy(header, bytes.data(), n);
  *encoded_bytes = RecordBytesFromHeader(Slice(header, n));
  if (*encoded_bytes == 0) {
    // A mark, or nothing that begins like a record.
    Record none;
    const RecordParse parse = ParseRecord(Slice(header, n), seed, true, &none);
    return parse == RecordParse::kOk ? RecordParse::kCorrupt : parse;
  }
  return *encoded_bytes <= bytes.size() ? RecordParse::kOk : RecordParse::kTruncated;
}

RecordParse RecordLoader::Load(const LoadableMemory& memory, const Slice& bytes, RecordSeed seed,
                               bool verify_checksum, Record* record) {
  size_t length = 0;
  RecordParse parse = LoadLength(bytes, seed, &length);
  if (parse == RecordParse::kOk) [[likely]] {
    if (length > capacity_) {
      capacity_ = std::bit_ceil(std::max<size_t>(length, 1024));
      copy_ = std::make_unique_for_overwrite<char[]>(capacity_);
    }
    if (bytes.size() > kAheadBytes) {
      const char* const ahead = bytes.data() + kAheadBytes;
      const size_t n = std::min({bytes.size() - kAheadBytes, length, kPrefetchBytesMax});
      PrefetchLines(ahead, n);
    }
    LoadableMemory::Copy(copy_.get(), bytes.data(), length);
    // The lengths are parsed anew, so that whatever the bytes are now, none beyond them is used.
    parse = ParseRecord(Slice(copy_.get(), length), seed, verify_checksum, record);
  }
  return memory.Valid() ? parse : RecordParse::kCorrupt;
}

}  // namespace nacre
