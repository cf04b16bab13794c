// The manifest decoder on arbitrary bytes, once as they are and once with a valid frame around them
// (a checksum cannot be guessed). What it accepts must encode to a manifest that means the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "db/manifest.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace {

void Decode(const std::string& bytes) {
  nacre::ManifestImage image;
  if (!nacre::DecodeManifest(bytes, &image).ok()) return;
  const std::string encoded = nacre::EncodeManifest(image);
  nacre::ManifestImage again;
  if (!nacre::DecodeManifest(encoded, &again).ok()) abort();
  if (nacre::EncodeManifest(again) != encoded) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Decode(bytes);
  std::string framed = nacre::EncodeManifest(nacre::ManifestImage()).substr(0, 8) + bytes;
  nacre::PutFixed32(&framed, nacre::Crc32c(framed.data(), framed.size()));
  Decode(framed);
  return 0;
}
