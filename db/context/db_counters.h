#pragma once

#include <atomic>
#include <cstdint>

namespace nacre {

/// What an open database has done so far: for its properties. Written by any thread.
struct DBCounters {
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> flush_bytes{0};
  std::atomic<uint64_t> compactions{0};
  std::atomic<uint64_t> trivial_moves{0};
  std::atomic<uint64_t> compaction_bytes_read{0};
  std::atomic<uint64_t> compaction_bytes_written{0};
  std::atomic<uint64_t> compaction_cpu_nanos{0};
  std::atomic<uint64_t> stall_nanos{0};
  std::atomic<uint64_t> repaired_bytes{0};  ///< Bytes of fragments.
  std::atomic<uint64_t> repair_cpu_nanos{0};
};

}  // namespace nacre
