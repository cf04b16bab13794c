#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/buffer_pool.h"
#include "pool/read/remote_stream.h"
#include "util/mutex.h"

namespace nacre::pool {

/// What many readers and writers of one client share: streams for reads, lanes for writers, and the
/// registered buffers of both.
///
/// Thread safety: all methods may be called from many threads at once.
class ConnectionPool {
 public:
  /// `fabric` outlives this. `nodes_at_once`: for how many nodes a writer may have requests
  /// outstanding at a time.
  ConnectionPool(Fabric* fabric, int nodes_at_once);

  /// The stream that the calling thread should use: threads spread over them.
  Status Stream(RemoteStream** stream) EXCLUDES(mutex_);
  /// An idle lane, or a new one, for one writer. That of a writer that failed is not given back,
  /// but destroyed.
  Status TakeLane(std::unique_ptr<Lane>* lane) EXCLUDES(mutex_);
  void GiveLane(std::unique_ptr<Lane> lane) EXCLUDES(mutex_);
  BufferPool* buffers() { return &buffers_; }

 private:
  static constexpr size_t kStreams = StreamLimit(0);
  static constexpr size_t kMaxIdleLanes = 8;
  static constexpr size_t kMaxIdleBufferBytes = 64 << 20;

  Fabric* const fabric_;
  const int nodes_at_once_;
  const size_t stream_limit_;
  BufferPool buffers_;  ///< Outlives the streams.
  Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_lanes_ GUARDED_BY(mutex_);
  /// Made on first use; then read without the mutex.
  std::array<std::atomic<RemoteStream*>, kStreams> streams_{};
  std::vector<std::unique_ptr<RemoteStream>> stream_owners_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
