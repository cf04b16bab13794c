#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pool/wire/messages.h"
#include "pool/wire/versions.h"

namespace nacre::pool {

/// Whether a node's memory outlives its process (MemoryNodeOptions::region_file).
enum class Keeping : uint8_t {
  kNone = 0,
  kEmpty = 1,  ///< It does, and began empty with this start.
  kWarm = 2,   ///< It does, and was there when this process started.
};

/// What a node tells of itself. Each number has a row in NodeFigures.
struct NodeStats {
  std::string address;
  uint64_t instance_id = 0;
  uint64_t region_bytes = 0;
  uint64_t slab_bytes = 0;
  uint64_t slabs_total = 0;
  uint64_t slabs_leased = 0;
  uint64_t bytes_read = 0;  ///< By this node from its peers and from compute nodes.
  uint64_t bytes_written = 0;
  uint64_t requests = 0;
  uint64_t requests_open = 0;  ///< Taken and not answered, jobs included.
  uint64_t request_nanos = 0;  ///< From taking requests to answering them, jobs apart.
  uint64_t compactions = 0;
  uint64_t compactions_failed = 0;  ///< Cancelled ones included.
  uint64_t compaction_bytes_read = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t compaction_cpu_nanos = 0;
  uint64_t flushes = 0;  ///< Key ranges of MemTables that this node made tables of.
  uint64_t flush_bytes_written = 0;
  uint64_t flush_cpu_nanos = 0;
  uint64_t rebuilt_bytes = 0;  ///< Bytes of fragments that this node made anew.
  uint64_t rebuild_cpu_nanos = 0;
  uint64_t scrubbed_bytes = 0;  ///< Bytes of fragments that were checked against their checksums.
  uint64_t connections = 0;
  uint64_t uptime_nanos = 0;
  uint64_t requests_malformed = 0;
  uint64_t databases = 0;
  uint64_t workers = 0;           ///< Threads that run compactions; 0: its version does not tell.
  uint64_t peers_refused = 0;     ///< Without the secret, of another version, or silent.
  uint64_t frames_malformed = 0;  ///< By the transport; each ended a connection.
  std::string domain{};           ///< See MemoryNodeOptions.
  Keeping keeping = Keeping::kNone;
  std::string release{};  ///< See ReleaseText; empty: its release does not tell.
  ProtocolSupport protocol{.range = {kVersionBeforeRanges, kVersionBeforeRanges}, .features = 0};
  FeatureSet features_on = 0;  ///< Features that are on in the pool, as far as it has heard.
};

/// One number of NodeStats, for all that carry or show it.
struct NodeFigure {
  enum class Kind : uint8_t {
    kGauge,      ///< As of now.
    kCounter,    ///< Only grows.
    kNanoGauge,  ///< Nanoseconds: seconds where JSON shows them.
    kNanoCounter,
  };
  uint64_t NodeStats::*value;
  uint64_t (control::Stats::*get)() const;
  void (control::Stats::*set)(uint64_t);
  Kind kind;
  const char* json;    ///< Its key in the output of `nacre-ctl nodes --json`.
  const char* metric;  ///< Its name for Prometheus.
  const char* help;

  bool is_counter() const { return kind == Kind::kCounter || kind == Kind::kNanoCounter; }
  bool is_time() const { return kind == Kind::kNanoGauge || kind == Kind::kNanoCounter; }
};
/// In the order in which they are shown.
std::span<const NodeFigure> NodeFigures();

void EncodeStats(const NodeStats& stats, control::Stats* message);
NodeStats DecodeStats(const control::Stats& message);

}  // namespace nacre::pool
