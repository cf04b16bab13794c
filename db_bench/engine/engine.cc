#include "db_bench/engine/engine.h"

#include <fmt/format.h>

namespace nacre::bench {

const char* EngineName(EngineKind kind) {
  switch (kind) {
    case EngineKind::kNacre:
      return "nacre";
    case EngineKind::kRocksdb:
      return "rocksdb";
    case EngineKind::kLeveldb:
      return "leveldb";
    case EngineKind::kLmdb:
      return "lmdb";
  }
  return "?";
}

TrafficCounters operator+(const TrafficCounters& a, const TrafficCounters& b) {
  return {.compute_read = a.compute_read + b.compute_read,
          .compute_written = a.compute_written + b.compute_written,
          .memnode_read = a.memnode_read + b.memnode_read,
          .memnode_written = a.memnode_written + b.memnode_written,
          .compaction_read = a.compaction_read + b.compaction_read,
          .compaction_written = a.compaction_written + b.compaction_written,
          .compaction_cpu_nanos = a.compaction_cpu_nanos + b.compaction_cpu_nanos,
          .encoded_bytes = a.encoded_bytes + b.encoded_bytes,
          .encoding_cpu_nanos = a.encoding_cpu_nanos + b.encoding_cpu_nanos};
}

TrafficCounters operator-(const TrafficCounters& a, const TrafficCounters& b) {
  return {.compute_read = a.compute_read - b.compute_read,
          .compute_written = a.compute_written - b.compute_written,
          .memnode_read = a.memnode_read - b.memnode_read,
          .memnode_written = a.memnode_written - b.memnode_written,
          .compaction_read = a.compaction_read - b.compaction_read,
          .compaction_written = a.compaction_written - b.compaction_written,
          .compaction_cpu_nanos = a.compaction_cpu_nanos - b.compaction_cpu_nanos,
          .encoded_bytes = a.encoded_bytes - b.encoded_bytes,
          .encoding_cpu_nanos = a.encoding_cpu_nanos - b.encoding_cpu_nanos};
}

Status Engine::WaitForRepair(RepairWork* /*work*/) {
  return Status::NotSupported("this engine keeps nothing that could be repaired");
}

Status Engine::OpenTimeline(std::string* /*text*/) { return Status::NotSupported("takeover"); }

Status Engine::SpaceText(std::string* text) {
  SpaceUsage usage;
  NACRE_RETURN_IF_ERROR(Space(&usage));
  *text =
      fmt::format("{:<20} {:>16}\n{:<20} {:>16}\n{:<20} {:>16}\n", "user-bytes", usage.user_bytes,
                  "stored-bytes", usage.stored_bytes, "compute-bytes", usage.compute_bytes);
  return Status::OK();
}

std::unique_ptr<Engine> NewEngine(const BenchConfig& config) {
  switch (config.engine) {
    case EngineKind::kNacre:
      return NewNacreEngine(config);
    case EngineKind::kRocksdb:
      return NewRocksdbEngine(config);
    case EngineKind::kLeveldb:
      return NewLeveldbEngine(config);
    case EngineKind::kLmdb:
      return NewLmdbEngine(config);
  }
  return nullptr;
}

}  // namespace nacre::bench
