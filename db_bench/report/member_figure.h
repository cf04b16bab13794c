#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace nacre::bench {

/// Times of one kind, such as one for each move of a shard.
/// Thread safety: none.
struct MemberFigure {
  std::string name;             ///< In the JSON report.
  std::string text;             ///< For people.
  std::vector<uint64_t> nanos;  ///< Ascending.

  /// The least time that `p` percent of them do not exceed; 0 if there are none.
  uint64_t Percentile(double p) const {
    if (nanos.empty()) return 0;
    const double rank = std::ceil(static_cast<double>(nanos.size()) * p / 100);
    return nanos[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  }
};

}  // namespace nacre::bench
