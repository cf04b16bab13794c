#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "util/mutex.h"

namespace nacre::pool {

class BufferPool;

/// Registered memory lent by a BufferPool; goes back on destruction.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      Release();
      pool_ = std::exchange(other.pool_, nullptr);
      region_ = std::move(other.region_);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { Release(); }

  bool valid() const { return region_ != nullptr; }
  char* data() const { return region_->data(); }
  size_t size() const { return region_->size(); }
  rdma::LocalBuffer Part(size_t offset, uint32_t size) const {
    return {.data = region_->data() + offset, .size = size, .region = region_.get()};
  }
  void Release();

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::unique_ptr<rdma::MemoryRegion> region_;
};

/// Keeps registered memory for reuse, by powers of two: registering is slow on every transport,
/// and fresh memory has page faults ahead of it. What is too large to be kept is no larger than was
/// asked for.
/// Thread safety: all methods may be called from many threads at once. Outlives its buffers.
class BufferPool {
 public:
  /// Keeps at most `max_idle_bytes` that are idle.
  BufferPool(rdma::Device* device, size_t max_idle_bytes)
      : device_(device), max_idle_bytes_(max_idle_bytes) {}

  /// At least `bytes`, with contents left over from earlier use.
  Status Take(size_t bytes, Buffer* buffer) EXCLUDES(mutex_);

 private:
  friend class Buffer;
  static constexpr int kMinShift = 12;
  static constexpr int kClasses = 32;

  static int ClassOf(size_t bytes);
  static size_t SizeOf(int size_class) { return size_t{1} << (kMinShift + size_class); }
  void Give(std::unique_ptr<rdma::MemoryRegion> region) EXCLUDES(mutex_);

  rdma::Device* const device_;
  const size_t max_idle_bytes_;
  Mutex mutex_;
  size_t idle_bytes_ GUARDED_BY(mutex_) = 0;
  std::array<std::vector<std::unique_ptr<rdma::MemoryRegion>>, kClasses> idle_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
