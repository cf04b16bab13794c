#include "table/index/length_classes.h"

#include <algorithm>
#include <bit>

namespace nacre {

size_t LengthClasses::BinOf(uint32_t length) {
  if (length < 64) return length;
  const int top = std::bit_width(length) - 1;  // 6..31
  return 64 + static_cast<size_t>(top - 6) * 32 + (length >> (top - 5) & 31);
}

void LengthClasses::Add(uint32_t length) {
  Bin& bin = bins_[BinOf(length)];
  ++bin.count;
  bin.longest = std::max(bin.longest, length);
}

void LengthClasses::Choose() {
  struct Run {
    uint64_t count;
    uint32_t longest;
    size_t last_bin;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i].count > 0) runs.push_back({bins_[i].count, bins_[i].longest, i});
  }
  while (runs.size() > kClasses) {
    size_t best = 0;
    uint64_t best_cost = UINT64_MAX;
    for (size_t i = 0; i + 1 < runs.size(); ++i) {
      const uint64_t cost = runs[i].count * (runs[i + 1].longest - runs[i].longest);
      if (cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    runs[best + 1].count += runs[best].count;
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(best));
  }
  size_t bin = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    lengths_[i] = runs[i].longest;
    for (; bin <= runs[i].last_bin; ++bin) bins_[bin].length_class = static_cast<uint32_t>(i);
  }
  for (size_t i = runs.size(); i > 0 && i < kClasses; ++i) lengths_[i] = lengths_[i - 1];
}

}  // namespace nacre
