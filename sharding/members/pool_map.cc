#include "sharding/members/pool_map.h"

#include <vector>

namespace nacre {

Status PoolMap::Open() {
  ShardedOptions options = of_keyspace_->options();
  options.take_over = true;
  // It opens no shards, so it needs neither families nor an owner.
  auto opener = std::make_unique<ShardOpener>(options, of_keyspace_->name(),
                                              std::vector<ColumnFamilyDescriptor>(), nullptr);
  // A pool that has lost it is not to have an empty keyspace instead.
  NACRE_RETURN_IF_ERROR(opener->OpenMadeMap(&there_));
  open_ = std::move(opener);
  is_open_.store(true, std::memory_order_relaxed);
  return Status::OK();
}

Status PoolMap::Keep(const ShardMap& map) {
  MutexLock lock(&mutex_);
  if (closed_) return Status::ShutdownInProgress("the member leaves");
  if (open_ != nullptr && !open_->CheckMap().ok()) {
    // Another member has taken it, that took itself for the one that leads.
    ReleaseNow();
  }
  if (open_ == nullptr) NACRE_RETURN_IF_ERROR(Open());
  if (there_.version() >= map.version() || there_.Shape() == map.Shape()) return Status::OK();
  NACRE_RETURN_IF_ERROR(open_->SaveMap(map));
  there_ = map;
  return Status::OK();
}

void PoolMap::Release() {
  MutexLock lock(&mutex_);
  ReleaseNow();
}

void PoolMap::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  ReleaseNow();
}

void PoolMap::ReleaseNow() {
  if (open_ != nullptr) open_->CloseMap().IgnoreError();
  open_.reset();
  is_open_.store(false, std::memory_order_relaxed);
}

}  // namespace nacre
