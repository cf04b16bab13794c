#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Statistics that Twitter has published of its caches in memory, one line for each cluster (Yang,
// Yue and Rashmi, "A large scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI
// 2020; its traces come with the table of March 2020).

namespace nacre::bench {

struct TwitterCluster {
  int number = 0;
  size_t key_bytes = 0;    ///< Mean.
  size_t value_bytes = 0;  ///< Mean.
  double requests_per_second = 0;
  uint64_t ttl_seconds = 0;  ///< The most common time to live.
  double sets = 0;           ///< Share of requests that write: set, add, cas, incr, prepend.
  double deletes = 0;        ///< Share of requests; what is left are gets.
  double zipf_alpha = 0;     ///< 0 is uniform.

  /// How many requests a value lives.
  uint64_t TtlRequests() const {
    return static_cast<uint64_t>(static_cast<double>(ttl_seconds) * requests_per_second);
  }
};

/// Those with all of these numbers. Lives for ever.
std::span<const TwitterCluster> TwitterClusters();
/// Null if there is none with this number.
const TwitterCluster* FindTwitterCluster(int number);

}  // namespace nacre::bench
