#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// Lets snapshots of several shards be of one moment. First no batch over several shards begins to
/// be committed, and those that have begun are waited for (Close). Then, while the shards'
/// snapshots are taken, which takes microseconds, no read of the latest state and no write begins
/// (Stop). Each process that serves shards has a gate, and a snapshot uses all of them: see
/// ShardOwner.
///
/// Why that suffices: what a snapshot sees of one shard and not of another are writes that were
/// under way when operations were stopped. A write that it lacks is seen only by reads that were
/// under way with it, or that begin when the snapshot is complete. These see all that it has. So
/// nothing that was seen or acknowledged contradicts that all of it came before what it lacks.
///
/// A snapshot of shards of this process alone may do without: it takes those of the shards, finds
/// that no batch is being committed, and then that no shard was written meanwhile. So at the moment
/// at which there was no batch, all shards were as it shows them.
///
/// Nothing starves: an operation waits only for the snapshot that is being taken when it comes,
/// batches that waited for one snapshot go before the next one, and snapshots go in the order in
/// which they came.
///
/// Nothing waits in a circle: snapshots close the gates, and batches enter them, in the order of
/// the owners' ids. Batches that a shard finds prepared when it is opened keep no order, so they do
/// not wait: a snapshot that has closed the gate fails, and is taken anew.
///
/// Thread safety: all methods may be called from many threads at once.
class SnapshotGate {
 public:
  using Token = uint64_t;

  /// A snapshot is being taken. Sequentially consistent: when it answers false, what was answered
  /// before is published, and the next snapshot sees it.
  bool taking() const { return taking_.load(std::memory_order_seq_cst); }
  /// For operations on one shard.
  void AwaitTaken() EXCLUDES(mutex_);

  /// From here until Leave the batch may be committed. Waits unless it has entered already; it
  /// leaves as often as it enters. `TimedOut`, also once `given_up` is set, if that is not null,
  /// and Wake was called.
  Status Enter(const std::string& batch, Deadline deadline,
               const std::atomic<bool>* given_up = nullptr) EXCLUDES(mutex_);
  /// As Enter for a batch that an earlier process may have decided. Does not wait: where a snapshot
  /// has closed the gate, it opens it, and the snapshot fails.
  void EnterAtOnce(const std::string& batch) EXCLUDES(mutex_);
  /// No batch is between Enter and its last Leave. Sequentially consistent.
  bool empty() const { return batches_.load(std::memory_order_seq_cst) == 0; }
  /// Has those that wait look whether they still do.
  void Wake() EXCLUDES(mutex_);
  void Leave(const std::string& batch) EXCLUDES(mutex_);

  /// Returns when no batch is being committed, and none enters until Open. `TimedOut`.
  Status Close(Deadline deadline, Token* token) EXCLUDES(mutex_);
  /// From here until Open no operation on one shard begins. False if `token` did not close it.
  bool Stop(Token token) EXCLUDES(mutex_);
  /// Whether Stop was called, and it was not opened since.
  bool IsStopped(Token token) const EXCLUDES(mutex_);
  /// Does nothing if `token` did not close it, or it was opened since.
  void Open(Token token) EXCLUDES(mutex_);

  /// While it lives, and its status is OK, the gate is closed.
  class Closed {
   public:
    Closed(SnapshotGate* gate, Deadline deadline)
        : gate_(gate), status_(gate->Close(deadline, &token_)) {}
    ~Closed() { gate_->Open(token_); }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;
    const Status& status() const { return status_; }

   private:
    SnapshotGate* const gate_;
    Token token_ = 0;
    const Status status_;
  };

 private:
  void OpenNow() REQUIRES(mutex_);
  void AddEntered(const std::string& batch) REQUIRES(mutex_);

  std::atomic<bool> taking_{false};
  std::atomic<size_t> batches_{0};  ///< Those in entered_.
  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  Token closed_ GUARDED_BY(mutex_) = 0;  ///< That by which it is closed; 0: it is open.
  Token last_token_ GUARDED_BY(mutex_) = 0;
  uint64_t stops_ GUARDED_BY(mutex_) = 0;                  ///< How often operations were stopped.
  std::map<std::string, int> entered_ GUARDED_BY(mutex_);  ///< How often each batch has.
  /// Snapshots that wait to close it, by their places in the queue.
  std::set<uint64_t> queue_ GUARDED_BY(mutex_);
  uint64_t last_place_ GUARDED_BY(mutex_) = 0;
  int waiting_ GUARDED_BY(mutex_) = 0;   ///< Batches that wait for the gate to open.
  int admitted_ GUARDED_BY(mutex_) = 0;  ///< Those of them that the next snapshot waits for.
};

}  // namespace nacre
