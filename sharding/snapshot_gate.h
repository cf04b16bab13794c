#pragma once

#include <atomic>
#include <cstdint>

#include "util/mutex.h"

namespace nacre {

/// Lets snapshots of several shards be of one moment: while one is taken, no write begins, and no
/// batch over several shards is committed in some of them only.
///
/// Why that suffices: what a snapshot sees of one shard and not of another are writes that were
/// under way when the gate was closed. None of them had been answered by then, and none began
/// later; so no write that it lacks was answered before one that it has began.
///
/// Nothing starves: a write waits only for the snapshot that is being taken when it comes, and
/// batches that waited for one snapshot go before the next one.
///
/// Thread safety: all methods may be called from many threads at once.
class SnapshotGate {
 public:
  /// Sequentially consistent: when it answers false, what was answered before is published, and
  /// the next snapshot sees it.
  bool closed() const { return closed_.load(std::memory_order_seq_cst); }
  /// For writes of one shard.
  void AwaitOpen() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    const uint64_t number = number_;
    while (closed() && number_ == number) changed_.Wait();
  }

  /// While it lives, a batch over several shards may be decided and committed.
  class Committing {
   public:
    explicit Committing(SnapshotGate* gate) : gate_(gate) {
      MutexLock lock(&gate_->mutex_);
      if (gate_->closed()) {
        ++gate_->waiting_;
        while (gate_->closed()) gate_->changed_.Wait();
        --gate_->waiting_;
        --gate_->admitted_;
      }
      ++gate_->committing_;
    }
    ~Committing() {
      MutexLock lock(&gate_->mutex_);
      --gate_->committing_;
      gate_->changed_.SignalAll();
    }
    Committing(const Committing&) = delete;
    Committing& operator=(const Committing&) = delete;

   private:
    SnapshotGate* const gate_;
  };

  /// The gate is closed while it lives, and no batch is being committed.
  class Closed {
   public:
    explicit Closed(SnapshotGate* gate) : gate_(gate) {
      MutexLock lock(&gate_->mutex_);
      while (gate_->closed() || gate_->admitted_ > 0) gate_->changed_.Wait();
      ++gate_->number_;
      gate_->closed_.store(true, std::memory_order_seq_cst);
      while (gate_->committing_ > 0) gate_->changed_.Wait();
    }
    ~Closed() {
      MutexLock lock(&gate_->mutex_);
      gate_->closed_.store(false, std::memory_order_seq_cst);
      gate_->admitted_ = gate_->waiting_;
      gate_->changed_.SignalAll();
    }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    SnapshotGate* const gate_;
  };

 private:
  std::atomic<bool> closed_{false};  ///< A snapshot is being taken.
  Mutex mutex_;
  CondVar changed_{&mutex_};
  uint64_t number_ GUARDED_BY(mutex_) = 0;  ///< How often it was closed.
  int committing_ GUARDED_BY(mutex_) = 0;
  int waiting_ GUARDED_BY(mutex_) = 0;   ///< Batches that wait for the gate to open.
  int admitted_ GUARDED_BY(mutex_) = 0;  ///< Those of them that the next snapshot waits for.
};

}  // namespace nacre
