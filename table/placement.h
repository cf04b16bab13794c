#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// Position of a node in its pool's URI.
using NodeId = uint16_t;
inline constexpr NodeId kNoNode = UINT16_MAX;

/// A byte of the pool. 48 bits of offset into the node's region.
struct RemoteAddr {
  uint64_t offset : 48 = 0;
  uint64_t node : 16 = kNoNode;

  bool valid() const { return node != kNoNode; }
  bool operator==(const RemoteAddr&) const = default;
};
static_assert(sizeof(RemoteAddr) == 8);

/// A contiguous range of one node.
struct ExtentAddr {
  RemoteAddr start;
  uint64_t length = 0;
  bool operator==(const ExtentAddr&) const = default;
};

/// How the bytes of a table are kept: "none" is kReplicated with one copy. `rs(k,m)` joins these
/// kinds with erasure coding.
enum class RedundancyKind : uint8_t { kReplicated = 0 };

struct Redundancy {
  RedundancyKind kind = RedundancyKind::kReplicated;
  uint8_t copies = 1;

  /// Nodes that one table needs.
  int fragments() const { return copies; }
  std::string ToString() const;
  bool operator==(const Redundancy&) const = default;
};

/// "none" or "rep(n)", 1 <= n <= 16; `InvalidArgument` naming the text otherwise, `NotSupported`
/// for "rs(k,m)".
Status ParseRedundancy(const Slice& text, Redundancy* redundancy);

/// Bytes at the start of each fragment that repeat the footer (docs/formats.md).
inline constexpr uint64_t kFragmentHeadBytes = 4096;

/// Where the fragments of one table lie. Each fragment is a head of kFragmentHeadBytes, then
/// table bytes; replicated: all of them in each fragment.
struct Placement {
  Redundancy redundancy;
  std::vector<ExtentAddr> fragments;
};

}  // namespace nacre
