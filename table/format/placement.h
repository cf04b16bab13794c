#pragma once

#include <cstdint>
#include <vector>

#include "table/format/redundancy.h"

namespace nacre {

/// Position of a node in its pool's URI.
using NodeId = uint16_t;
inline constexpr NodeId kNoNode = UINT16_MAX;
/// A node that is gone, with all that it held.
inline constexpr NodeId kLostNode = UINT16_MAX - 1;

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

/// Bytes at the start of each fragment that repeat the footer (docs/formats.md).
inline constexpr uint64_t kFragmentHeadBytes = 4096;

/// The places of one table's fragments. Each fragment is a head of kFragmentHeadBytes, then table
/// bytes, then the checksums of its chunks (table/format/fragment_checksums.h). Replicated: all
/// table bytes in each fragment. Erasure-coded: fragments 0 to k-1 have the table's chunks in
/// turns, fragments k to k+m-1 the parity of each k of them (see Striping).
struct Placement {
  Redundancy redundancy;
  uint64_t chunk_size = 0;  ///< Chunk size of the table.
  std::vector<ExtentAddr> fragments;
};

/// Maps bytes of an erasure-coded table to fragments. Chunk c is in row c / k, in fragment c % k;
/// each row has a chunk in each parity fragment, as long as the row's first chunk. Only the last
/// chunk of a table may be short; the columns after it are empty, and count as zeros.
class Striping {
 public:
  explicit Striping(const Placement& placement)
      : data_(placement.redundancy.data), chunk_size_(placement.chunk_size) {}
  Striping(int data, uint64_t chunk_size)
      : data_(static_cast<uint64_t>(data)), chunk_size_(chunk_size) {}

  struct Place {
    uint32_t fragment = 0;
    uint64_t offset = 0;  ///< Offset in the fragment, after its head.
  };
  Place Locate(uint64_t offset) const {
    const uint64_t chunk = offset / chunk_size_;
    return {.fragment = static_cast<uint32_t>(chunk % data_),
            .offset = chunk / data_ * chunk_size_ + offset % chunk_size_};
  }

  /// Bytes that fragment number `fragment` (of data or parity) has of a table of `table_bytes`.
  uint64_t FragmentBytes(int fragment, uint64_t table_bytes) const;
  /// Bytes of a row's chunk in data fragment `column`.
  uint64_t ChunkBytes(uint64_t row, int column, uint64_t table_bytes) const;

 private:
  const uint64_t data_;
  const uint64_t chunk_size_;
};

/// Bytes of a fragment; head and tail not counted.
uint64_t FragmentBytes(const Placement& placement, int fragment, uint64_t table_bytes);

}  // namespace nacre
