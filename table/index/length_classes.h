#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nacre {

/// Sixteen record lengths that stand for all lengths of a table: a point-index entry has four bits
/// for the length to read. Chosen for the least over-read: the lengths are counted in fine
/// geometric bins, and the two neighbours whose union costs least are joined until 16 are left.
/// A class's length is the greatest that occurs in it, so records of one size are read exactly.
class LengthClasses {
 public:
  static constexpr size_t kClasses = 16;

  LengthClasses() : bins_(kBins) {}
  void Add(uint32_t length);
  /// Call once, after all lengths were added.
  void Choose();
  /// Ascending; unused ones repeat the greatest length.
  const std::array<uint32_t, kClasses>& lengths() const { return lengths_; }
  /// Class of a length that was added.
  uint32_t ClassOf(uint32_t length) const { return bins_[BinOf(length)].length_class; }

 private:
  /// Lengths below 64 have bins of their own; above, each power of two is cut in 32.
  static constexpr size_t kBins = 64 + 26 * 32;
  static size_t BinOf(uint32_t length);

  struct Bin {
    uint64_t count = 0;
    uint32_t longest = 0;
    uint32_t length_class = 0;
  };
  std::vector<Bin> bins_;
  std::array<uint32_t, kClasses> lengths_{};
};

}  // namespace nacre
