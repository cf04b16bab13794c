// Range tombstones: any bytes are decoded without reading beyond them, and what decodes is in order
// and is what its encoding decodes as.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "table/ranges/range_tombstones.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<const RangeTombstones> decoded;
  if (!RangeTombstones::Decode(bytes, BytewiseComparator(), &decoded).ok()) return 0;
  std::string again;
  RangeTombstones::Encode(decoded->Listed(), &again);
  std::unique_ptr<const RangeTombstones> parsed;
  if (!RangeTombstones::Decode(again, BytewiseComparator(), &parsed).ok()) std::abort();
  if (parsed->fragments().size() != decoded->fragments().size()) std::abort();
  for (const auto& fragment : decoded->Listed()) {
    const SequenceNumber newest = fragment.sequences.front();
    if (decoded->Covering(fragment.begin, kMaxSequenceNumber) != newest) std::abort();
    if (decoded->Covering(fragment.begin, newest - 1) >= newest) std::abort();
  }
  return 0;
}
