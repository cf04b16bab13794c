#pragma once

#include <cstdint>
#include <string>

namespace nacre {

/// What a thread counts of its own operations; each level counts what those before it do, and more.
/// RocksDB's names and numbers.
enum PerfLevel : uint8_t {
  kUninitialized = 0,
  kDisable = 1,  ///< Nothing. The default, unlike RocksDB's: it costs a look at one byte.
  kEnableCount = 2,
  kEnableTimeExceptForMutex = 3,  ///< Measures times as well, with two clock readings for each.
  kEnableTimeAndCPUTimeExceptForMutex = 4,
  kEnableTime = 5,
  kOutOfBounds = 6,
};

/// Sets the level of the calling thread. `kUninitialized` and `kOutOfBounds` are no levels, and
/// change nothing.
void SetPerfLevel(PerfLevel level);
PerfLevel GetPerfLevel();

/// What the calling thread's operations did since the last Reset. Times are nanoseconds. Work of
/// other threads for an operation (of an AsyncDB, of flushes, of memory nodes) is not in it.
///
/// Thread safety: none; it belongs to its thread.
struct PerfContext {
  /// All to 0.
  void Reset();
  /// "name = value, name = value"; with `exclude_zero_counters` those only that are not 0.
  std::string ToString(bool exclude_zero_counters = false) const;

  // ---- RocksDB's ----
  /// Versions that iterators passed without showing them.
  uint64_t internal_key_skipped_count = 0;
  uint64_t internal_delete_skipped_count = 0;  ///< Tombstones that they passed.
  uint64_t get_from_memtable_count = 0;        ///< Keys looked up in MemTables, by Get.
  uint64_t get_from_memtable_time = 0;
  uint64_t get_from_output_files_time = 0;  ///< Lookup in tables, with the reads that it needs.
  uint64_t get_read_bytes = 0;              ///< Bytes of values that Get returned.
  uint64_t multiget_read_bytes = 0;
  uint64_t iter_read_bytes = 0;  ///< Bytes of keys and values that iterators returned.
  uint64_t seek_internal_seek_time = 0;
  uint64_t find_next_user_entry_time = 0;
  uint64_t write_wal_time = 0;  ///< Time until the log has the record on its nodes.
  uint64_t write_memtable_time = 0;
  uint64_t write_delay_time = 0;         ///< While writes stalled.
  uint64_t write_thread_wait_nanos = 0;  ///< Time spent waiting for writes that had begun earlier.

  // ---- Of remote memory ----
  uint64_t remote_read_count = 0;  ///< Reads of nodes' memory.
  uint64_t remote_read_bytes = 0;
  uint64_t remote_read_wait_nanos = 0;  ///< Between posting them, or coming to need them, and their
                                        ///< arrival.
};

/// The calling thread's counters; valid as long as the thread lives.
PerfContext* get_perf_context();

}  // namespace nacre
