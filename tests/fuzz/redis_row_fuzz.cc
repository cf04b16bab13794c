// Rows of nacre-server's keys, as they lie in a database: any bytes are read without reading beyond
// them, and what was read is written as it was.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/store/encoding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using nacre::Slice;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  nacre::server::Meta meta;
  if (nacre::server::DecodeMeta(bytes, &meta)) {
    nacre::server::Meta again;
    const std::string written = nacre::server::EncodeMeta(meta);
    // Varints may be longer than they need be.
    if (written.size() > size || !nacre::server::DecodeMeta(written, &again)) std::abort();
    if (nacre::server::EncodeMeta(again) != written) std::abort();
  }
  uint64_t number = 0;
  Slice part;
  if (nacre::server::DecodeStringMeta(bytes, &number, &part) && part.size() > size) std::abort();
  if (nacre::server::DecodeExpiryRow(bytes, &number, &part) &&
      nacre::server::ExpiryRow(number, part.ToStringView()) != bytes) {
    std::abort();
  }
  if (nacre::server::DecodeGarbageRow(bytes, &part, &number) &&
      nacre::server::GarbageRow(part.ToStringView(), number).size() > size) {
    std::abort();
  }
  double score = 0;
  if (nacre::server::DecodeScoreSubKey(bytes, &score, &part)) {
    const std::string written = nacre::server::ScoreSubKey(score, part.ToStringView());
    if (score != 0 && written != bytes) std::abort();
  }
  if (nacre::server::DecodeFieldSubKey(bytes, &part) &&
      nacre::server::FieldSubKey(part.ToStringView()) != bytes) {
    std::abort();
  }
  return 0;
}
