#include "pool/read/connection_pool.h"

#include <utility>

#include "util/thread_index.h"

namespace nacre::pool {

ConnectionPool::ConnectionPool(Fabric* fabric, int nodes_at_once)
    : fabric_(fabric),
      nodes_at_once_(nodes_at_once),
      stream_limit_(
          static_cast<size_t>(StreamLimit(fabric->context.options.max_queue_pairs_per_node))),
      buffers_(fabric->context.device, kMaxIdleBufferBytes) {}

Status ConnectionPool::Stream(RemoteStream** stream) {
  const size_t number = ThreadIndex::Current() % stream_limit_;
  // Acquire: pairs with the release below.
  *stream = streams_[number].load(std::memory_order_acquire);
  if (*stream != nullptr) return Status::OK();
  MutexLock lock(&mutex_);
  *stream = streams_[number].load(std::memory_order_relaxed);
  if (*stream != nullptr) return Status::OK();
  std::unique_ptr<RemoteStream> made;
  NACRE_RETURN_IF_ERROR(RemoteStream::Create(fabric_, &buffers_, &made));
  *stream = made.get();
  stream_owners_.push_back(std::move(made));
  streams_[number].store(*stream, std::memory_order_release);
  return Status::OK();
}

Status ConnectionPool::TakeLane(std::unique_ptr<Lane>* lane) {
  {
    MutexLock lock(&mutex_);
    if (!idle_lanes_.empty()) {
      *lane = std::move(idle_lanes_.back());
      idle_lanes_.pop_back();
      return Status::OK();
    }
  }
  return Lane::Create(fabric_, nodes_at_once_, lane);
}

void ConnectionPool::GiveLane(std::unique_ptr<Lane> lane) {
  MutexLock lock(&mutex_);
  if (idle_lanes_.size() < kMaxIdleLanes) idle_lanes_.push_back(std::move(lane));
}

}  // namespace nacre::pool
