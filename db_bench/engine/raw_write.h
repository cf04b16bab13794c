#pragma once

#include <cstdint>
#include <memory>

#include "db_bench/config.h"
#include "nacre/pool.h"
#include "nacre/status.h"
#include "pool/space/space_allocator.h"
#include "pool/store/mirrored_extent.h"

namespace nacre::bench {

/// One-sided writes of as many bytes as a Put of this configuration sends to its log, to as many
/// copies, one behind the other in an extent of a segment's size, again and again: what the pool
/// itself takes for them, to compare a Put with.
///
/// Thread safety: none. The pool keeps what it needs of this as long as it lives.
class RawWriter {
 public:
  /// `NoSpace` and `Unavailable` as for a table.
  static Status Open(const BenchConfig& config, std::shared_ptr<Pool> pool,
                     std::unique_ptr<RawWriter>* writer);

  /// Returns when the bytes are on every copy.
  Status Write();

 private:
  RawWriter(const BenchConfig& config, std::shared_ptr<Pool> pool);
  Status Reserve(const BenchConfig& config);

  const std::shared_ptr<Pool> pool_;
  pool::PoolClient* const client_;
  const uint32_t bytes_;
  std::unique_ptr<pool::SpaceAllocator> space_;
  std::unique_ptr<rdma::MemoryRegion> buffer_;
  std::unique_ptr<pool::MirroredExtent> extent_;
  uint64_t offset_ = 0;
};

}  // namespace nacre::bench
