#pragma once

#include <string>

#include "nacre/comparator.h"

namespace nacre {

/// An order that no memory node knows, and in which no prefix of a key says anything about its
/// place: by the last byte first (keys read backwards), then by length. Exercises whatever assumes
/// bytewise order, and compactions that must stay on the compute node.
class BackwardsComparator final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override {
    size_t left = a.size();
    size_t right = b.size();
    while (left > 0 && right > 0) {
      const auto x = static_cast<unsigned char>(a[--left]);
      const auto y = static_cast<unsigned char>(b[--right]);
      if (x != y) return x < y ? -1 : 1;
    }
    return left == right ? 0 : (left < right ? -1 : 1);
  }
  const char* Name() const override { return "nacre.test.BackwardsComparator"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

}  // namespace nacre
