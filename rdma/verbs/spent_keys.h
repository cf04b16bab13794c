#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>
#include <utility>

#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// Keys of grants that have ended. An adapter may give a new registration the key of an earlier
/// one, which would let a peer that was given that key for the same memory write there again. So a
/// registration that comes with such a key is kept only until another one has come.
///
/// Thread safety: all methods may be called from many threads at once.
class SpentKeys {
 public:
  /// The latest of so many count. Adapters go through the numbers of their keys before they give
  /// one again, as a rule.
  static constexpr size_t kMost = 1 << 16;
  /// Registrations for one grant.
  static constexpr size_t kMostAttempts = 8;

  void Spend(uint32_t key) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (!keys_.insert(key).second) return;
    order_.push_back(key);
    if (order_.size() <= kMost) return;
    keys_.erase(order_.front());
    order_.pop_front();
  }

  /// Has `registers` make a `Part`, again as long as its `key` is a spent one. `NoSpace` if the
  /// adapter has no other.
  template <typename Part, typename Register, typename KeyOf>
  Status Unspent(const Register& registers, const KeyOf& key, Part* part) EXCLUDES(mutex_) {
    std::array<Part, kMostAttempts> parts;  // All are held until one is kept, so keys differ.
    for (Part& each : parts) {
      NACRE_RETURN_IF_ERROR(registers(&each));
      if (IsSpent(key(each))) continue;
      *part = std::move(each);
      return Status::OK();
    }
    return Status::NoSpace("the adapter gives keys that were revoked, and no others");
  }

 private:
  bool IsSpent(uint32_t key) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return keys_.contains(key);
  }

  Mutex mutex_;
  std::unordered_set<uint32_t> keys_ GUARDED_BY(mutex_);
  std::deque<uint32_t> order_ GUARDED_BY(mutex_);  ///< Oldest first.
};

}  // namespace nacre::rdma
