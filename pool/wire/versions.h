#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre::pool {

// What releases of Nacre have to agree on where several of them meet in one pool
// (docs/operations.md, "6.8 Upgrade without a stop").
//
// A protocol version is agreed on by the two ends of each connection: the highest that both speak.
// A feature is agreed on by a whole pool. It is off until an operator turns it on, which nodes and
// clients refuse as long as one of them does not know it; from then on all that do not know it are
// refused. So what is stored can be read by every release that is there, and an upgrade can be
// taken back until that order.

/// Protocol versions that a program speaks, both ends included.
struct ProtocolRange {
  uint16_t oldest = 0;
  uint16_t newest = 0;

  bool Contains(uint16_t version) const { return version >= oldest && version <= newest; }
  bool operator==(const ProtocolRange&) const = default;
};

/// The last version whose hello has one version instead of a range, and no features.
inline constexpr uint16_t kVersionBeforeRanges = 8;
/// What this release speaks. A release speaks what the one before spoke, so that nodes, owners and
/// followers can be upgraded one after the other.
inline constexpr ProtocolRange kProtocols = {.oldest = kVersionBeforeRanges, .newest = 9};

/// The highest version that both ranges have; 0: there is none.
uint16_t CommonVersion(const ProtocolRange& a, const ProtocolRange& b);
/// The range of numbers that another program has told, which may make no sense.
ProtocolRange DecodeRange(uint32_t oldest, uint32_t newest);
/// "version 8", "versions 8 to 9".
std::string ToString(const ProtocolRange& range);

/// Bit i is feature i.
using FeatureSet = uint64_t;

/// What changes stored bytes or requests in a way that a release without it would misread. Numbers
/// and names are frozen.
enum class Feature : uint8_t {
  kRootFeatures = 0,  ///< The root of a database tells which features the database may use.
};

constexpr FeatureSet SetOf(Feature feature) {
  return FeatureSet{1} << static_cast<uint8_t>(feature);
}

/// What this release knows.
inline constexpr FeatureSet kKnownFeatures = SetOf(Feature::kRootFeatures);
static_assert(kKnownFeatures <= UINT32_MAX, "A hello has room for 32 features.");

/// The names of the features in the set, in the order of their numbers: "root-features"; "feature
/// 7" for one that this release does not know.
std::vector<std::string> FeatureNames(FeatureSet features);
/// The same as one text, with ", " between them; "none" for an empty set.
std::string ToString(FeatureSet features);

/// What a program speaks and knows. Tests give other values to play releases before and after this
/// one; one that speaks nothing above kVersionBeforeRanges behaves as a release of that time.
struct ProtocolSupport {
  ProtocolRange range = kProtocols;
  FeatureSet features = kKnownFeatures;
};

/// The release that a program was built from, as it tells others: "0.2.0 (commit 1a2b3c4d5e,
/// release)".
std::string ReleaseText();

}  // namespace nacre::pool
