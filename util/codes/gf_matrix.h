#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nacre {

/// A matrix over GF(2^8) that multiplies vectors of bytes: encoding and decoding of erasure codes
/// are both such products. The multiplication tables are made once; ISA-L's kernels for the
/// processor at hand do the work, or plain XOR where all coefficients are one.
///
/// Thread safety: immutable. Vectors may start anywhere and have any length.
class GfMatrix {
 public:
  /// `coefficients` has `results` rows of `sources` bytes.
  GfMatrix(int sources, int results, const std::vector<uint8_t>& coefficients);

  int sources() const { return sources_; }
  int results() const { return results_; }

  /// The share of source number `source` in all results: set in `results` if `first`, else added.
  /// A source that is zero everywhere needs no call, unless it would be the first.
  void Accumulate(int source, bool first, size_t n, const char* bytes, char* const* results) const;

  /// All at once. Null for a source that is zero everywhere.
  void Combine(size_t n, const char* const* sources, char* const* results) const;

 private:
  static constexpr size_t kTableBytes = 32;  ///< ISA-L's, for one coefficient.

  const int sources_;
  const int results_;
  const bool only_ones_;
  std::vector<uint8_t> tables_;         ///< Ordered by result, then by source.
  std::vector<uint8_t> source_tables_;  ///< Ordered by source, then by result.
};

}  // namespace nacre
