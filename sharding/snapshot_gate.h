#pragma once

#include <atomic>
#include <cstdint>

#include "util/mutex.h"

namespace nacre {

/// Lets snapshots of several shards be of one moment. First no batch over several shards begins to
/// be committed, and those that have begun are waited for. Then, while the shards' snapshots are
/// taken, which takes microseconds, no read of the latest state and no write begins.
///
/// Why that suffices: what a snapshot sees of one shard and not of another are writes that were
/// under way when operations were stopped. A write that it lacks is seen only by reads that were
/// under way with it, or that begin when the snapshot is complete. These see all that it has. So
/// nothing that was seen or acknowledged contradicts that all of it came before what it lacks.
///
/// Nothing starves: an operation waits only for the snapshot that is being taken when it comes, and
/// batches that waited for one snapshot go before the next one.
///
/// Thread safety: all methods may be called from many threads at once.
class SnapshotGate {
 public:
  /// A snapshot is being taken. Sequentially consistent: when it answers false, what was answered
  /// before is published, and the next snapshot sees it.
  bool taking() const { return taking_.load(std::memory_order_seq_cst); }
  /// For operations on one shard.
  void AwaitTaken() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    const uint64_t number = number_;
    while (taking() && number_ == number) changed_.Wait();
  }

  /// While it lives, a batch over several shards may be decided and committed.
  class Committing {
   public:
    explicit Committing(SnapshotGate* gate) : gate_(gate) {
      MutexLock lock(&gate_->mutex_);
      if (gate_->closed_) {
        ++gate_->waiting_;
        while (gate_->closed_) gate_->changed_.Wait();
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

  /// While it lives, no batch is being committed.
  class Closed {
   public:
    explicit Closed(SnapshotGate* gate) : gate_(gate) {
      MutexLock lock(&gate_->mutex_);
      while (gate_->closed_ || gate_->admitted_ > 0) gate_->changed_.Wait();
      gate_->closed_ = true;
      while (gate_->committing_ > 0) gate_->changed_.Wait();
    }
    ~Closed() {
      MutexLock lock(&gate_->mutex_);
      gate_->closed_ = false;
      gate_->admitted_ = gate_->waiting_;
      gate_->changed_.SignalAll();
    }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    SnapshotGate* const gate_;
  };

  /// While it lives, no operation on one shard begins, either. There is a Closed.
  class Taking {
   public:
    explicit Taking(SnapshotGate* gate) : gate_(gate) {
      MutexLock lock(&gate_->mutex_);
      ++gate_->number_;
      gate_->taking_.store(true, std::memory_order_seq_cst);
    }
    ~Taking() {
      MutexLock lock(&gate_->mutex_);
      gate_->taking_.store(false, std::memory_order_seq_cst);
      gate_->changed_.SignalAll();
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    SnapshotGate* const gate_;
  };

 private:
  std::atomic<bool> taking_{false};
  Mutex mutex_;
  CondVar changed_{&mutex_};
  bool closed_ GUARDED_BY(mutex_) = false;  ///< There is a Closed.
  uint64_t number_ GUARDED_BY(mutex_) = 0;  ///< How many snapshots were begun.
  int committing_ GUARDED_BY(mutex_) = 0;
  int waiting_ GUARDED_BY(mutex_) = 0;   ///< Batches that wait for the gate to open.
  int admitted_ GUARDED_BY(mutex_) = 0;  ///< Those of them that the next snapshot waits for.
};

}  // namespace nacre
