#pragma once

#include <cstddef>
#include <memory>

namespace nacre {

/// One bound for the MemTables of all databases and column families that are opened with it
/// (`DBOptions::write_buffer_manager`), as in RocksDB. When MemTables that take writes have seven
/// eighths of it, or all have more than it and those that take writes half, the database that has
/// most of them flushes, whichever is written to. (RocksDB flushes the one that is written to.)
///
/// Thread safety: all methods may be called from many threads at once.
class WriteBufferManager {
 public:
  /// `buffer_size`: bytes; 0 bounds nothing, and only counts. `allow_stall`: writers that took more
  /// memory wait while all MemTables have more than `buffer_size`, or else go on.
  explicit WriteBufferManager(size_t buffer_size, bool allow_stall = false);
  ~WriteBufferManager();
  WriteBufferManager(const WriteBufferManager&) = delete;
  WriteBufferManager& operator=(const WriteBufferManager&) = delete;

  bool enabled() const { return buffer_size() > 0; }
  size_t buffer_size() const;
  /// Bytes of all MemTables, those that are being flushed among them.
  size_t memory_usage() const;
  /// Bytes of those that take writes.
  size_t mutable_memtable_memory_usage() const;
  bool ShouldFlush() const;
  /// Whether writers wait.
  bool ShouldStall() const;

  void SetBufferSize(size_t new_size);
  void SetAllowStall(bool allow_stall);

 private:
  friend class WriteBufferShare;
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
