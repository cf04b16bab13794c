#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pool/read/point_reader.h"
#include "pool/store/table_store.h"
#include "table/format/placement.h"
#include "util/codes/gf_matrix.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

/// A few bytes of an erasure-coded table whose fragment cannot be read, got from k others: reads
/// for a PointReader, and what is computed from them. It is the short way for the lookups of one
/// thread; a table's extent gets the same bytes for all other readers, and what this cannot get.
///
/// Thread safety: none.
class DegradedRead {
 public:
  /// Plans for the bytes [offset, offset + n) of the table, within one chunk; the fragment that has
  /// them counts as lost, like those on nodes that are lost or slow. False if it takes the extent:
  /// too few fragments are left, or the range straddles the end of a chunk that is shorter than
  /// others of its row, or chunks have to be checked since their memory is not held. The reads are
  /// impatient: the extent knows what to do if one is late.
  bool Plan(const TableStore& store, const Placement& placement, uint64_t table_bytes,
            uint64_t offset, uint32_t n);
  /// What is to be read, here or in a copy.
  std::span<PointRead> reads() { return {reads_.data(), read_count_}; }
  /// Once they have ended, and before their memory is used again: the bytes, which stay until the
  /// next Plan. Null if one of the reads failed.
  const char* Complete(std::span<const PointRead> reads);

 private:
  std::array<PointRead, ReedSolomon::kMaxData> reads_;
  size_t read_count_ = 0;
  /// The read of each source; kZeros: there is none.
  std::array<uint8_t, ReedSolomon::kMaxData> read_of_;
  static constexpr uint8_t kZeros = UINT8_MAX;
  size_t source_count_ = 0;
  const GfMatrix* decoder_ = nullptr;
  std::vector<char> bytes_;
};

}  // namespace nacre::pool
