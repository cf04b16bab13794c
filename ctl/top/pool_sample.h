#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctl/ctl_report.h"
#include "ctl/top/node_rates.h"

// What `nacre-ctl top` shows at one time.

namespace nacre::ctl {

/// In nanoseconds.
inline constexpr uint64_t kSecond = 1'000'000'000;

struct PoolSample {
  /// Each address once, with what answers there now.
  PoolReport pool;
  /// In the order of `pool.nodes`; nothing where they are not known.
  std::vector<std::optional<NodeRates>> rates;
  uint64_t rounds = 0;     ///< How often the nodes have been asked; 0: they have not answered yet.
  uint64_t age_nanos = 0;  ///< Since it was taken.
};

}  // namespace nacre::ctl
