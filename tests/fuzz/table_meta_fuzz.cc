// Table metas: any bytes decode to a Status or to a meta that encodes and decodes to itself. The
// checksum is put right first, or nothing behind it would ever be reached.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "table/format/table_meta.h"
#include "tests/support/table/memory_extent.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  {
    Slice raw = bytes;
    TableMeta meta;
    DecodeTableMeta(&raw, &meta).IgnoreError();
    DecodeFragmentHead(bytes, &meta).IgnoreError();
    MemoryExtent extent(bytes);
    ReadFooter(&extent, &meta).IgnoreError();
  }
  if (size < 16) return 0;
  // The magic number, one of the two versions, and the length.
  std::string start;
  EncodeTableMeta(TableMeta(), &start);
  bytes.replace(0, 6, start, 0, 6);
  bytes[4] = static_cast<char>(bytes[4] + data[4] % 2);
  EncodeFixed32(bytes.data() + 8, static_cast<uint32_t>(size));
  EncodeFixed32(bytes.data() + size - 4, Crc32c(bytes.data(), size - 4));
  Slice input = bytes;
  TableMeta meta;
  if (!DecodeTableMeta(&input, &meta).ok()) return 0;
  std::string once;
  EncodeTableMeta(meta, &once);
  Slice again = once;
  TableMeta decoded;
  if (!DecodeTableMeta(&again, &decoded).ok() || !again.empty()) std::abort();
  std::string twice;
  EncodeTableMeta(decoded, &twice);
  if (once != twice) std::abort();
  return 0;
}
