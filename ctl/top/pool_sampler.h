#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "ctl/top/pool_sample.h"
#include "pool/pool_client.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::ctl {

/// Asks all nodes of a pool again and again, by a thread of its own, so that a caller who shows
/// what they answer waits for none of them. Nodes that are added to the pool, or come back as
/// others, are asked, too; the client reconnects to those that were away.
///
/// Thread safety: all methods may be called from many threads at once.
class PoolSampler {
 public:
  /// `client` outlives this. Begins at once; `interval` lies between the beginnings of two rounds.
  /// `told`: hears of each sample by the thread that took it, before others see it; may be null.
  PoolSampler(pool::PoolClient* client, std::chrono::milliseconds interval,
              std::function<void(const PoolSample&)> told = nullptr);
  /// Waits until the round under way has ended: the time of one operation of the client at most for
  /// each 64 silent nodes.
  ~PoolSampler();
  PoolSampler(const PoolSampler&) = delete;
  PoolSampler& operator=(const PoolSampler&) = delete;

  /// How many rounds there were.
  uint64_t rounds() const EXCLUDES(mutex_);
  /// The last round's sample. Does not wait.
  PoolSample Latest() const EXCLUDES(mutex_);
  /// The same once there were `rounds`.
  PoolSample Await(uint64_t rounds) const EXCLUDES(mutex_);

 private:
  /// What is remembered of an address.
  struct Memory {
    RateMeter meter;
    /// How long the latest pings took, the last one at the end.
    std::deque<std::chrono::nanoseconds> times;
  };

  void Loop();
  PoolSample Ask();
  void AskTimed(NodeId node, NodeReport* report);
  /// Whether the node takes long again and again.
  bool IsSlow(const Memory& memory) const;
  PoolSample LatestLocked() const REQUIRES(mutex_);

  pool::PoolClient* const client_;
  const std::chrono::milliseconds interval_;
  const std::function<void(const PoolSample&)> told_;
  std::map<std::string, Memory> memories_;  ///< By address. Used by the thread only.
  mutable Mutex mutex_;
  mutable CondVar changed_{&mutex_};
  PoolSample latest_ GUARDED_BY(mutex_);
  uint64_t taken_at_nanos_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace nacre::ctl
