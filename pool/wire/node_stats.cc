#include "pool/wire/node_stats.h"

#include <algorithm>

#include "pool/wire/control.pb.h"

namespace nacre::pool {

std::span<const NodeFigure> NodeFigures() {
#define NACRE_FIGURE(field, kind, json, metric, help)                        \
  {                                                                          \
    &NodeStats::field, &control::Stats::field, &control::Stats::set_##field, \
        NodeFigure::Kind::kind, json, metric, help                           \
  }
  static constexpr NodeFigure kFigures[] = {
      NACRE_FIGURE(region_bytes, kGauge, "region_bytes", "nacre_region_bytes",
                   "Bytes of the node's region."),
      NACRE_FIGURE(slab_bytes, kGauge, "slab_bytes", "nacre_slab_bytes", "Bytes of a slab."),
      NACRE_FIGURE(slabs_total, kGauge, "slabs", "nacre_slabs", "Slabs of the node."),
      NACRE_FIGURE(slabs_leased, kGauge, "slabs_leased", "nacre_slabs_leased", "Slabs leased out."),
      NACRE_FIGURE(databases, kGauge, "databases", "nacre_databases", "Databases known."),
      NACRE_FIGURE(workers, kGauge, "workers", "nacre_workers", "Threads that run compactions."),
      NACRE_FIGURE(connections, kGauge, "connections", "nacre_connections", "Connections open."),
      NACRE_FIGURE(requests, kCounter, "requests", "nacre_requests_total", "Requests taken."),
      NACRE_FIGURE(requests_open, kGauge, "requests_open", "nacre_requests_open",
                   "Requests taken and not answered yet, jobs included."),
      NACRE_FIGURE(request_nanos, kNanoCounter, "request_seconds", "nacre_request_seconds_total",
                   "Time from taking requests to answering them, jobs apart."),
      NACRE_FIGURE(requests_malformed, kCounter, "requests_malformed",
                   "nacre_requests_malformed_total",
                   "Requests and connections refused as malformed."),
      NACRE_FIGURE(peers_refused, kCounter, "peers_refused", "nacre_peers_refused_total",
                   "Peers refused: without the pool's secret, of another version, or silent."),
      NACRE_FIGURE(frames_malformed, kCounter, "frames_malformed", "nacre_frames_malformed_total",
                   "Connections ended for bytes that made no sense."),
      NACRE_FIGURE(bytes_read, kCounter, "bytes_read", "nacre_read_bytes_total",
                   "Bytes read by this node from peers and clients."),
      NACRE_FIGURE(bytes_written, kCounter, "bytes_written", "nacre_written_bytes_total",
                   "Bytes written by this node to peers and clients."),
      NACRE_FIGURE(compactions, kCounter, "compactions", "nacre_compactions_total",
                   "Compactions done."),
      NACRE_FIGURE(compactions_failed, kCounter, "compactions_failed",
                   "nacre_compactions_failed_total", "Compactions failed or cancelled."),
      NACRE_FIGURE(compaction_bytes_read, kCounter, "compaction_bytes_read",
                   "nacre_compaction_read_bytes_total", "Keys and values that compactions read."),
      NACRE_FIGURE(compaction_bytes_written, kCounter, "compaction_bytes_written",
                   "nacre_compaction_written_bytes_total", "Table bytes that compactions wrote."),
      NACRE_FIGURE(compaction_cpu_nanos, kNanoCounter, "compaction_cpu_seconds",
                   "nacre_compaction_cpu_seconds_total", "Processor time of compactions."),
      NACRE_FIGURE(flushes, kCounter, "flushes", "nacre_flushes_total",
                   "Key ranges of MemTables that were made tables from the log."),
      NACRE_FIGURE(flush_bytes_written, kCounter, "flush_bytes_written",
                   "nacre_flush_written_bytes_total",
                   "Bytes of tables that flushes made from the log."),
      NACRE_FIGURE(flush_cpu_nanos, kNanoCounter, "flush_cpu_seconds",
                   "nacre_flush_cpu_seconds_total", "Processor time of flushes from the log."),
      NACRE_FIGURE(rebuilt_bytes, kCounter, "rebuilt_bytes", "nacre_rebuilt_bytes_total",
                   "Bytes of fragments that were made anew here."),
      NACRE_FIGURE(rebuild_cpu_nanos, kNanoCounter, "rebuild_cpu_seconds",
                   "nacre_rebuild_cpu_seconds_total", "Processor time of rebuilding."),
      NACRE_FIGURE(scrubbed_bytes, kCounter, "scrubbed_bytes", "nacre_scrubbed_bytes_total",
                   "Bytes of fragments that were checked against their checksums."),
      NACRE_FIGURE(uptime_nanos, kNanoGauge, "uptime_seconds", "nacre_uptime_seconds",
                   "Time since the node started."),
  };
#undef NACRE_FIGURE
  return kFigures;
}

void EncodeStats(const NodeStats& stats, control::Stats* message) {
  for (const NodeFigure& figure : NodeFigures()) (message->*figure.set)(stats.*figure.value);
  message->set_address(stats.address);
  message->set_instance_id(stats.instance_id);
  message->set_domain(stats.domain);
  message->set_keeping(static_cast<uint32_t>(stats.keeping));
  message->set_release(stats.release);
  message->set_protocol_oldest(stats.protocol.range.oldest);
  message->set_protocol_newest(stats.protocol.range.newest);
  message->set_features(stats.protocol.features);
  message->set_features_on(stats.features_on);
}

NodeStats DecodeStats(const control::Stats& message) {
  NodeStats stats;
  for (const NodeFigure& figure : NodeFigures()) stats.*figure.value = (message.*figure.get)();
  stats.address = message.address();
  stats.instance_id = message.instance_id();
  stats.domain = message.domain();
  // A later version may have more words for it, which all mean that it keeps.
  stats.keeping = static_cast<Keeping>(
      std::min<uint32_t>(message.keeping(), static_cast<uint32_t>(Keeping::kWarm)));
  stats.release = message.release();
  if (message.protocol_newest() != 0) {
    stats.protocol.range = DecodeRange(message.protocol_oldest(), message.protocol_newest());
  }
  stats.protocol.features = message.features();
  stats.features_on = message.features_on();
  return stats;
}

}  // namespace nacre::pool
