#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/placement.h"

namespace nacre {

/// Checksums of the chunks of one fragment (of data, of parity, or of a copy). They lie behind the
/// fragment's bytes, as its tail, so that a node checks what it holds with nothing else at hand.
/// Chunk i is bytes [i * chunk_size, (i + 1) * chunk_size) behind the head; the last may be short.
///
/// The tail (docs/formats.md), little-endian:
///
///     offset size
///          0    4  magic
///          4    2  format version
///          6    2  number of the fragment
///          8    8  table id
///         16    8  bytes of the fragment
///         24    8  chunk size
///         32   4n  CRC32C of each chunk
///               4  CRC32C of everything before
struct FragmentChecksums {
  uint64_t table_id = 0;
  uint32_t fragment = 0;  ///< Its number in the placement.
  uint64_t bytes = 0;     ///< Bytes of the fragment, without head and tail.
  uint64_t chunk_size = 0;
  std::vector<uint32_t> chunks;

  /// Adds the fragment's next chunk as it is written. All but the last are of chunk_size.
  void Add(const char* chunk, size_t n);
  size_t ChunkBytes(size_t chunk) const {
    return static_cast<size_t>(std::min(chunk_size, bytes - chunk * chunk_size));
  }
  /// Whether `data` is all of that chunk and undamaged.
  bool Matches(size_t chunk, const char* data) const;
};

/// Bytes of the tail of a fragment of `fragment_bytes`. `chunk_size` is not 0.
uint64_t FragmentTailBytes(uint64_t fragment_bytes, uint64_t chunk_size);
/// Bytes that an extent of `extent_bytes` has room for, beside head and tail.
uint64_t FragmentCapacity(uint64_t extent_bytes, uint64_t chunk_size);

void EncodeFragmentTail(const FragmentChecksums& checksums, std::string* dst);

/// The fragment that a tail should belong to.
struct FragmentIdentity {
  uint64_t table_id = 0;
  uint32_t fragment = 0;
  uint64_t bytes = 0;
};
/// `tail` may be longer than the tail. `Corruption` saying what is wrong, also if it is whole but
/// another fragment's; `NotSupported` for a newer format version. Safe on any bytes.
Status DecodeFragmentTail(const Slice& tail, const FragmentIdentity& identity,
                          FragmentChecksums* checksums);

}  // namespace nacre
