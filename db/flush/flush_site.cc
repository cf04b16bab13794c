#include "db/flush/flush_site.h"

#include <algorithm>

namespace nacre {

std::string_view NameOf(FlushFallback why) {
  static constexpr std::array<std::string_view, kFlushFallbacks> kNames = {
      "small",     "large",           "slower", "unlogged",   "log",
      "lost-copy", "range-deletions", "busy",   "comparator", "failed"};
  return kNames[static_cast<size_t>(why)];
}

uint64_t FlushSites::fallbacks() const {
  uint64_t sum = 0;
  for (const auto& count : fallbacks_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

bool FlushSiteChooser::NearData() {
  if (!writers_waited_ || cost_near_ == 0) return true;
  if (cost_here_ == 0) return false;
  const bool quicker_near = cost_near_ <= cost_here_;
  if (--flushes_until_look_ > 0) return quicker_near;
  flushes_until_look_ = kFlushesBetweenLooks;
  return !quicker_near;
}

void FlushSiteChooser::Flushed(bool near_data, uint64_t bytes, uint64_t nanos,
                               bool writers_waited) {
  constexpr uint64_t kPicosInNano = 1000;
  const uint64_t cost = std::max<uint64_t>(1, nanos * kPicosInNano / std::max<uint64_t>(bytes, 1));
  (near_data ? cost_near_ : cost_here_) = cost;
  writers_waited_ = writers_waited;
}

}  // namespace nacre
