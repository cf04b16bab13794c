#include "pool/wire/versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nacre/version.h"

namespace nacre::pool {
namespace {

/// By number.
constexpr const char* kFeatureNames[] = {"root-features"};
static_assert(kKnownFeatures == (FeatureSet{1} << std::size(kFeatureNames)) - 1);

}  // namespace

uint16_t CommonVersion(const ProtocolRange& a, const ProtocolRange& b) {
  const uint16_t version = std::min(a.newest, b.newest);
  return a.Contains(version) && b.Contains(version) ? version : 0;
}

ProtocolRange DecodeRange(uint32_t oldest, uint32_t newest) {
  newest = std::min<uint32_t>(newest, UINT16_MAX);
  return {.oldest = static_cast<uint16_t>(std::min(oldest, newest)),
          .newest = static_cast<uint16_t>(newest)};
}

std::string ToString(const ProtocolRange& range) {
  if (range.oldest == range.newest) return fmt::format("version {}", range.newest);
  return fmt::format("versions {} to {}", range.oldest, range.newest);
}

std::vector<std::string> FeatureNames(FeatureSet features) {
  std::vector<std::string> names;
  for (size_t i = 0; features != 0; ++i, features >>= 1) {
    if ((features & 1) == 0) continue;
    names.push_back(i < std::size(kFeatureNames) ? kFeatureNames[i] : fmt::format("feature {}", i));
  }
  return names;
}

std::string ToString(FeatureSet features) {
  if (features == 0) return "none";
  return fmt::format("{}", fmt::join(FeatureNames(features), ", "));
}

std::string ReleaseText() { return GetNacreVersionAsString(/*with_commit=*/true); }

}  // namespace nacre::pool
