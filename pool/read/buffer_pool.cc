#include "pool/read/buffer_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace nacre::pool {

void Buffer::Release() {
  if (pool_ != nullptr && region_ != nullptr) pool_->Give(std::move(region_));
  pool_ = nullptr;
  region_.reset();
}

int BufferPool::ClassOf(size_t bytes) {
  const size_t size = std::max<size_t>(bytes, size_t{1} << kMinShift);
  return std::bit_width(size - 1) - kMinShift;
}

Status BufferPool::Take(size_t bytes, Buffer* buffer) {
  const int size_class = ClassOf(bytes);
  if (size_class >= kClasses) {
    return Status::InvalidArgument(fmt::format("a buffer of {} bytes is too large", bytes));
  }
  buffer->Release();
  {
    MutexLock lock(&mutex_);
    auto& idle = idle_[static_cast<size_t>(size_class)];
    if (!idle.empty()) {
      buffer->region_ = std::move(idle.back());
      idle.pop_back();
      idle_bytes_ -= buffer->region_->size();
      buffer->pool_ = this;
      return Status::OK();
    }
  }
  const size_t rounded = SizeOf(size_class);
  NACRE_RETURN_IF_ERROR(device_->AllocateRegion(rounded <= max_idle_bytes_ ? rounded : bytes,
                                                rdma::Access::kLocalOnly, &buffer->region_));
  buffer->pool_ = this;
  return Status::OK();
}

void BufferPool::Give(std::unique_ptr<rdma::MemoryRegion> region) {
  MutexLock lock(&mutex_);
  const int size_class = ClassOf(region->size());
  // One that is not kept is unregistered by the caller's pointer, after the lock.
  if (region->size() != SizeOf(size_class) || idle_bytes_ + region->size() > max_idle_bytes_) {
    return;
  }
  idle_bytes_ += region->size();
  idle_[static_cast<size_t>(size_class)].push_back(std::move(region));
}

}  // namespace nacre::pool
