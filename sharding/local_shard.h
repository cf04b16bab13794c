#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/batches/key_holds.h"
#include "sharding/batches/local_participant.h"
#include "sharding/local_owner.h"
#include "sharding/shard.h"
#include "sharding/shard_map.h"
#include "sharding/transactions/local_locks.h"
#include "table/format/internal_key.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/epoch.h"

namespace nacre {

class DBImpl;

/// A shard whose database is open in this process.
///
/// Invariant: an operation that uses keys of the shard pins `operations_` and finds that the shard
/// has not left and that no batch holds the keys, in this order. A batch holds its keys, and a
/// shard leaves, before they wait for the operations that are under way (AwaitOperations). So while
/// a batch is prepared, decided and committed, nothing else reads or writes its keys, and once a
/// shard has left, nothing uses its database.
///
/// Thread safety: all methods may be called from many threads at once, but Leave and Close by one.
class LocalShard final : public Shard {
 public:
  /// What the shards of an open keyspace have in common.
  struct Context {
    const Comparator* comparator;
    Clock* clock;
    std::chrono::milliseconds operation_timeout;
    std::shared_ptr<LocalOwner> owner;
    /// Other processes take the shard over if they think that this one is gone, and it may move.
    bool may_move = false;
  };

  /// `families`: those of the keyspace that its database has been given.
  LocalShard(uint32_t id, std::unique_ptr<DB> db, Context context, ShardMap::FamilySet families);
  ~LocalShard() override;

  DB* db() const override { return db_.get(); }
  ColumnFamilyHandle* Handle(uint32_t family) const override;
  BatchParticipant* participant() override { return &participant_; }
  LockParticipant* lock_participant() override { return &locks_; }
  ShardOwner* owner() const override { return context_.owner.get(); }

  DBImpl* engine() const { return engine_; }
  LocalOwner* local_owner() const { return context_.owner.get(); }
  LocalParticipant* batches() { return &participant_; }
  KeyHolds* holds() { return &holds_; }
  LocalLocks* locks() { return &locks_; }
  Clock* clock() const { return context_.clock; }
  bool may_move() const { return context_.may_move; }
  /// A batch that has been prepared for so long is settled: its writer has given it up.
  uint64_t SettledAfterNanos() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(2 * context_.operation_timeout).count());
  }
  Deadline OperationDeadline() const {
    return Deadline::After(context_.clock, context_.operation_timeout);
  }

  /// Calls `work` while no batch over several shards is about to write `keys()`, and not before a
  /// snapshot that is being taken when this is called. If `would_wait` is given, this waits for
  /// neither: it says so there instead, and has done nothing.
  template <typename Keys, typename Work>
  Status Read(const Keys& keys, const Work& work, bool* would_wait = nullptr);
  template <typename Keys, typename Work>
  Status Write(const Keys& keys, const Work& work, bool* would_wait = nullptr);
  /// Calls `work`, which reads with a snapshot: it waits for no batch, as none was being committed
  /// when that was taken. What a batch that failed has written must not be seen in part, though.
  template <typename Keys, typename Work>
  Status ReadAt(const Keys& keys, const Work& work);
  /// Writes a batch whose keys are all in this shard. Its families have their ids in the keyspace.
  Status WriteBatchHere(const WriteOptions& options, WriteBatch* updates,
                        bool* would_wait = nullptr);
  /// Calls `work`, which uses no keys.
  template <typename Work>
  Status Do(const Work& work) const;
  /// As KeySequences::Latest, of a family by its id in the keyspace.
  Status LatestSequenceOf(uint32_t family, const Slice& key, SequenceNumber known,
                          SequenceNumber* sequence) const;
  /// What a write came to that has reached the database: if that was taken away from this process,
  /// it is unknown whether it took effect.
  Status OutcomeOfWrite(Status status) const;
  /// OK if no other process has taken the shard over by now, or it does not move.
  Status CheckOwned() const;
  /// Returns when the operations that are pinned now have ended, or `TimedOut`.
  Status AwaitOperations(Deadline deadline);

  /// What the keyspace had when it was opened: members open it anew for what comes later.
  const ShardMap::FamilySet& family_set() const { return family_set_; }
  /// The families of the keyspace that the shard has, by their ids there.
  void AddFamily(uint32_t id, std::shared_ptr<ColumnFamilyHandle> handle) EXCLUDES(mutex_);
  void RemoveFamily(uint32_t id) EXCLUDES(mutex_);
  /// As Handle, but it stays as long as it is held.
  std::shared_ptr<ColumnFamilyHandle> Hold(uint32_t family) const EXCLUDES(mutex_);
  /// The families have the ids here that they have in the keyspace, so batches fit as they are.
  bool same_ids() const { return same_ids_.load(std::memory_order_relaxed); }
  /// The id in the keyspace of a family that has `id` here; `id` itself if there is none.
  uint32_t KeyspaceId(uint32_t id) const EXCLUDES(mutex_);
  /// Gives the families in `updates`, which have their ids in the keyspace, those of this shard.
  Status Translate(WriteBatch* updates) const;

  /// Flushes what the next owner would have to read of the log. It goes on serving.
  Status PrepareHandover() const;

  /// From here on all operations are answered `Fenced`; returns when those under way have ended.
  /// After `TimedOut` some may go on.
  Status Leave(Deadline deadline);
  /// Acquire: what an iterator read before this answered false was read while the shard was here.
  bool left() const { return left_.load(std::memory_order_acquire); }
  /// Another process has taken the database over.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  /// Reads and writes so far, more or less: some of a thread's are counted for all of them.
  uint64_t operations_counted() const { return counted_.load(std::memory_order_relaxed); }

  /// What it holds, in tables and MemTables.
  uint64_t BytesHeld() const;

  /// Closes the database so that another process has it soon, after Leave.
  Status CloseForHandover();
  /// `Close` of the database; no operation is under way. Iterators and snapshots may be there.
  Status Close();

 private:
  using Families = std::vector<std::shared_ptr<ColumnFamilyHandle>>;  ///< By their ids.

  template <typename Keys, typename Work>
  Status In(const Keys& keys, const Work& work, bool* would_wait);
  void Count() {
    constexpr uint32_t kCountedFor = 64;
    thread_local uint32_t operations = 0;
    if (++operations % kCountedFor != 0) return;
    counted_.fetch_add(kCountedFor, std::memory_order_relaxed);
    if (operations_.fencing()) operations_.RelaxIfQuiet(context_.clock->NowNanos());
  }
  Status Left() const;
  /// What `status`, which is of a closed database, means: another process has the shard.
  Status Lost(const Status& status) const;
  void Publish(Families families) REQUIRES(mutex_);

  const Context context_;
  const std::unique_ptr<DB> db_;
  DBImpl* const engine_;
  const ShardMap::FamilySet family_set_;
  KeyHolds holds_;
  LocalLocks locks_;
  EpochDomain operations_;
  std::atomic<bool> left_{false};
  mutable std::atomic<bool> lost_{false};
  std::atomic<bool> same_ids_{true};
  std::atomic<uint64_t> counted_{0};

  mutable Mutex mutex_;
  std::shared_ptr<const Families> families_ GUARDED_BY(mutex_);
  /// The same, for those that pin operations_.
  std::atomic<const Families*> published_;
  LocalParticipant participant_;
};

template <typename Keys, typename Work>
Status LocalShard::In(const Keys& keys, const Work& work, bool* would_wait) {
  Count();
  if (context_.owner->gate()->taking()) [[unlikely]] {
    if (would_wait != nullptr) {
      *would_wait = true;
      return Status::OK();
    }
    context_.owner->gate()->AwaitTaken();
  }
  for (;;) {
    {
      const EpochDomain::Guard guard(&operations_);
      if (left()) [[unlikely]]
        return Left();
      if (!holds_.any() || !holds_.Overlaps(keys())) [[likely]]
        return work();
    }
    if (would_wait != nullptr) {
      *would_wait = true;
      return Status::OK();
    }
    NACRE_RETURN_IF_ERROR(holds_.Await(keys(), OperationDeadline()));
  }
}

template <typename Keys, typename Work>
Status LocalShard::Read(const Keys& keys, const Work& work, bool* would_wait) {
  Status status = In(keys, work, would_wait);
  if (IsOfClosedDatabase(status) && context_.may_move) [[unlikely]]
    return Lost(status);
  return status;
}

template <typename Keys, typename Work>
Status LocalShard::Write(const Keys& keys, const Work& work, bool* would_wait) {
  bool begun = false;
  Status status = In(
      keys,
      [&] {
        begun = true;
        return work();
      },
      would_wait);
  if (!IsOfClosedDatabase(status) || !begun) [[likely]]
    return status;
  return OutcomeOfWrite(std::move(status));
}

template <typename Keys, typename Work>
Status LocalShard::ReadAt(const Keys& keys, const Work& work) {
  const EpochDomain::Guard guard(&operations_);
  if (holds_.any()) [[unlikely]]
    NACRE_RETURN_IF_ERROR(holds_.CheckFailed(keys()));
  Status status = left() ? Left() : work();
  const bool lost = IsOfClosedDatabase(status) && context_.may_move;
  if (lost || left()) [[unlikely]]
    return Status::Aborted("shard " + std::to_string(id()) +
                           " has moved since the snapshot was taken");
  return status;
}

template <typename Work>
Status LocalShard::Do(const Work& work) const {
  if (left()) return Left();
  Status status = work();
  if (status.ok() || !context_.may_move) return status;
  if (left()) return Left();
  return IsOfClosedDatabase(status) ? Lost(status) : status;
}

}  // namespace nacre
