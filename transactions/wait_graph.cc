#include "transactions/wait_graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "util/clock.h"

namespace nacre {

bool WaitGraph::Add(const DeadlockInfo& waiter, const std::vector<TransactionID>& owners,
                    int64_t depth) {
  struct Visit {
    TransactionID id;
    size_t from;  ///< The transaction that waits for it, by number.
  };
  constexpr size_t kWaiter = SIZE_MAX;
  MutexLock lock(&mutex_);
  std::vector<Visit> visits;
  std::unordered_set<TransactionID> seen;
  const auto follow = [&](const std::vector<TransactionID>& ids, size_t from) {
    for (const TransactionID id : ids) {
      if (seen.insert(id).second) visits.push_back({id, from});
    }
  };
  follow(owners, kWaiter);
  for (size_t i = 0; i < visits.size(); ++i) {
    if (visits[i].id == waiter.m_txn_id) {
      DeadlockPath found;
      for (size_t at = visits[i].from; at != kWaiter; at = visits[at].from) {
        found.path.push_back(waiters_.at(visits[at].id).info);
      }
      found.path.push_back(waiter);
      std::reverse(found.path.begin(), found.path.end());
      Remember(std::move(found));
      return false;
    }
    if (static_cast<int64_t>(i) >= depth) {
      DeadlockPath unknown;
      unknown.limit_exceeded = true;
      Remember(std::move(unknown));
      return false;
    }
    const auto next = waiters_.find(visits[i].id);
    if (next != waiters_.end()) follow(next->second.owners, i);
  }
  waiters_[waiter.m_txn_id] = {waiter, owners};
  return true;
}

void WaitGraph::Remove(TransactionID waiter) {
  MutexLock lock(&mutex_);
  waiters_.erase(waiter);
}

void WaitGraph::Remember(DeadlockPath path) {
  path.deadlock_time = static_cast<int64_t>(Clock::System()->NowNanos() / 1'000'000);
  deadlocks_.push_front(std::move(path));
  while (deadlocks_.size() > remembered_) deadlocks_.pop_back();
}

std::vector<DeadlockPath> WaitGraph::Deadlocks() const {
  MutexLock lock(&mutex_);
  return {deadlocks_.begin(), deadlocks_.end()};
}

void WaitGraph::SetRemembered(uint32_t deadlocks) {
  MutexLock lock(&mutex_);
  remembered_ = deadlocks;
  while (deadlocks_.size() > remembered_) deadlocks_.pop_back();
}

}  // namespace nacre
