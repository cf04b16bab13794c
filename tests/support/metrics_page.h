#pragma once

#include <map>
#include <string>

namespace nacre {

/// What GET /metrics of `address`, an IP address and a port, answers; empty if nothing listens
/// there.
std::string GetMetrics(const std::string& address);

/// The samples of such a page, by name and labels as it writes them:
/// `nacre_db_flushes_total{database="db"}`.
std::map<std::string, double> SamplesOf(const std::string& page);

}  // namespace nacre
