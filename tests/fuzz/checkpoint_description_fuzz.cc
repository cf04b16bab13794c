// Descriptions of checkpoints: any bytes decode to a Status or to a description that survives a
// round trip. Length and checksum are made right, or nothing behind them would ever be reached.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "db/checkpoint/checkpoint_description.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckpointDescription description;
  DecodeCheckpointDescription(bytes, &description).IgnoreError();
  constexpr size_t kBytesAt = 16;
  if (size < kBytesAt + sizeof(uint64_t) + kCrcBytes) return 0;
  EncodeFixed64(bytes.data() + kBytesAt, size);
  EncodeFixed32(bytes.data() + size - kCrcBytes, Crc32c(bytes.data(), size - kCrcBytes));
  if (!DecodeCheckpointDescription(bytes, &description).ok()) return 0;
  CheckpointDescription again;
  const std::string encoded = EncodeCheckpointDescription(description);
  if (!DecodeCheckpointDescription(encoded, &again).ok()) std::abort();
  if (EncodeCheckpointDescription(again) != encoded) std::abort();
  return 0;
}
