#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <set>

#include "pool/pool_client.h"
#include "util/mutex.h"

namespace nacre {

/// The numbers of tables, and the work that makes them, until they are in a version: no repair
/// replaces what lost nodes take with them meanwhile.
///
/// Thread safety: all methods may be called from many threads at once.
class TablesBegun {
 public:
  TablesBegun(const pool::PoolClient* client, uint64_t first_id)
      : client_(client), next_id_(first_id) {}

  /// The number of a new table.
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  /// No table has it, or a greater one.
  uint64_t next_id() const { return next_id_.load(std::memory_order_relaxed); }

  /// The number that ends it.
  uint64_t Begin() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return *begun_.insert(client_->membership_changes());
  }
  void End(uint64_t begun) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    begun_.erase(begun_.find(begun));
  }
  /// How much of it began before nodes changed the last time.
  uint64_t AtRisk() const EXCLUDES(mutex_) {
    const uint64_t now = client_->membership_changes();
    MutexLock lock(&mutex_);
    return static_cast<uint64_t>(std::distance(begun_.begin(), begun_.lower_bound(now)));
  }

 private:
  const pool::PoolClient* const client_;
  std::atomic<uint64_t> next_id_;
  mutable Mutex mutex_;
  /// As PoolClient::membership_changes.
  std::multiset<uint64_t> begun_ GUARDED_BY(mutex_);
};

}  // namespace nacre
