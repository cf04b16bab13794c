#pragma once

#include <cstdint>

#include "nacre/statistics.h"
#include "util/histogram.h"

namespace nacre {

/// Statistics that tell more of their histograms than RocksDB's interface has room for. Those that
/// CreateDBStatistics makes are, an application's own may not be.
class BucketedStatistics : public Statistics {
 public:
  /// What was recorded in `histogram`, by buckets.
  virtual Histogram Values(uint32_t histogram) const = 0;
};

}  // namespace nacre
