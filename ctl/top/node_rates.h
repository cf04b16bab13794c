#pragma once

#include <cstdint>
#include <optional>

#include "pool/wire/node_stats.h"

// What a node does in a second, from the difference of what it told at two times.

namespace nacre::ctl {

struct NodeRates {
  double seconds = 0;  ///< The node's own time between the two.
  double bytes_read = 0;
  double bytes_written = 0;
  double requests = 0;
  double request_seconds = 0;  ///< From taking requests to answering them, jobs apart, of all.
  double jobs = 0;             ///< Compactions and flushes that ended.
  double job_cores = 0;        ///< Processors that compactions, flushes and rebuilding kept busy.
  double rebuilt = 0;          ///< Bytes of fragments.
  NodeRates& operator+=(const NodeRates& other);
};

/// Remembers what a node told last.
///
/// Thread safety: none.
class RateMeter {
 public:
  /// The rates since the last call; nothing with the first one, and whenever the process that
  /// answers is another one than then: its counters began anew.
  std::optional<NodeRates> Take(const pool::NodeStats& now);

 private:
  std::optional<pool::NodeStats> before_;
};

}  // namespace nacre::ctl
