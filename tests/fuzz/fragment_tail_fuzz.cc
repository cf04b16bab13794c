// Tails of fragments: any bytes decode to a Status or to checksums that encode to the same bytes.
// The checksum is put right first, or nothing behind it would ever be reached.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "table/format/fragment_checksums.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  FragmentChecksums sums;
  DecodeFragmentTail(bytes, {.table_id = 1, .fragment = 0, .bytes = 0}, &sums).IgnoreError();
  if (size < 36) return 0;
  // The magic number and the version.
  std::string start;
  EncodeFragmentTail({.chunk_size = 1}, &start);
  bytes.replace(0, 6, start, 0, 6);
  EncodeFixed32(bytes.data() + size - 4, Crc32c(bytes.data(), size - 4));
  const FragmentIdentity identity{.table_id = DecodeFixed64(bytes.data() + 8),
                                  .fragment = DecodeFixed16(bytes.data() + 6),
                                  .bytes = DecodeFixed64(bytes.data() + 16)};
  if (!DecodeFragmentTail(bytes, identity, &sums).ok()) return 0;
  std::string again;
  EncodeFragmentTail(sums, &again);
  if (bytes.compare(0, again.size(), again) != 0) std::abort();
  return 0;
}
