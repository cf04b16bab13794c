#pragma once

#include "metrics/page.h"
#include "nacre/statistics.h"

namespace nacre {

/// Adds tickers and histograms to a page. Those of which other metrics of the database tell the
/// same are left out.
void CollectStatistics(const Statistics& statistics, const metrics::Labels& labels,
                       metrics::Page* page);

}  // namespace nacre
