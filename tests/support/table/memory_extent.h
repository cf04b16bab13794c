#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "table/format/extent.h"

namespace nacre {

/// Fails the n-th call of whatever counts with it; tests walk n upwards until nothing fails.
class CallCounter {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  /// 0: the next call.
  void FailAfter(uint64_t calls) { left_ = calls; }
  /// `Unavailable` on the chosen call and all later ones.
  Status Count(const char* what);
  uint64_t calls() const { return calls_; }

 private:
  uint64_t left_ = kNever;
  uint64_t calls_ = 0;
};

/// Where a reader finds a MemoryExtent's bytes.
enum class BytesPlace {
  kInPlace,          ///< In its own memory.
  kFetched,          ///< On nodes, from which they are read.
  kLoadable,         ///< In a node's memory that can be loaded.
  kLoadableByChunk,  ///< The same, striped: a chunk at a time.
};

struct MemoryExtentOptions {
  BytesPlace place = BytesPlace::kInPlace;
  /// Counts each Await, if not null.
  CallCounter* counter = nullptr;
  size_t chunk_size = 4096;  ///< For kLoadableByChunk.
};

/// A table's bytes in a string. When not in place, it behaves as remote memory does: each read has
/// a buffer of its own, of exactly its size, which holds garbage until Await and again after
/// destruction; memory that can be loaded may end at any time (EndMemory).
/// Thread safety: none, unlike other extents, because it counts.
class MemoryExtent final : public Extent {
 public:
  explicit MemoryExtent(std::string bytes, MemoryExtentOptions options = {});
  ~MemoryExtent() override;

  uint64_t size() const override { return bytes_.size(); }
  const char* InPlace() const override {
    return options_.place == BytesPlace::kInPlace ? bytes_.data() : nullptr;
  }
  LoadableBytes Loadable(uint64_t offset) override;
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override;
  std::unique_ptr<PendingRead> StartReadAhead(uint64_t offset, size_t n) override {
    ++reads_ahead_;
    return StartRead(offset, n);
  }

  uint64_t reads_started() const { return reads_started_; }
  uint64_t bytes_started() const { return bytes_started_; }
  /// Those among reads_started that another thread may carry out.
  uint64_t reads_ahead() const { return reads_ahead_; }
  /// Reads that are alive at the moment, and the most there ever were.
  uint64_t reads_alive() const { return reads_alive_; }
  uint64_t reads_alive_max() const { return reads_alive_max_; }
  std::string* mutable_bytes() { return &bytes_; }

  /// The memory that was loaded from counts no more, and holds garbage. The next
  /// `refusals` calls of Loadable give none, the others other memory.
  void EndMemory(uint64_t refusals);

 private:
  class Read;
  class Memory;
  std::string bytes_;
  MemoryExtentOptions options_;
  std::vector<std::unique_ptr<Memory>> memories_;  ///< Only the last one may count.
  uint64_t refusals_ = 0;
  uint64_t reads_started_ = 0;
  uint64_t bytes_started_ = 0;
  uint64_t reads_ahead_ = 0;
  uint64_t reads_alive_ = 0;
  uint64_t reads_alive_max_ = 0;
};

/// What a MemoryExtentWriter wrote.
struct MemoryTable {
  std::string bytes;
  std::string head;
  bool finished = false;
};

/// Checks that its user keeps the contract of ExtentWriter, and fails the test if not. A chunk
/// buffer starts as garbage and is made garbage when it is committed.
class MemoryExtentWriter final : public ExtentWriter {
 public:
  /// `table` outlives the writer. `counter` may be null.
  MemoryExtentWriter(MemoryTable* table, size_t chunk_size, uint64_t capacity,
                     CallCounter* counter = nullptr);

  size_t chunk_size() const override { return chunk_size_; }
  uint64_t capacity() const override { return capacity_; }
  Status NextChunk(char** buffer) override;
  Status Commit(size_t n) override;
  Status Finish(const Slice& head) override;

 private:
  void Poison();
  Status Count(const char* what);

  MemoryTable* const table_;
  const size_t chunk_size_;
  const uint64_t capacity_;
  CallCounter* const counter_;
  const std::unique_ptr<char[]> buffer_;
  bool open_ = false;
  bool short_chunk_ = false;
  bool failed_ = false;
};

}  // namespace nacre
