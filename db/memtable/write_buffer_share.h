#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "nacre/write_buffer_manager.h"
#include "util/memory/arena_block.h"
#include "util/mutex.h"

namespace nacre {

/// What one database has of a WriteBufferManager.
///
/// Thread safety: all methods may be called from many threads at once.
class WriteBufferShare {
 public:
  /// `end_generation` has the database flush what takes writes, and answers false if it cannot now.
  /// After Join, it is called by writers of other databases, too, without locks of any database.
  WriteBufferShare(std::shared_ptr<WriteBufferManager> manager,
                   std::function<bool()> end_generation);
  ~WriteBufferShare() { Leave(); }
  WriteBufferShare(const WriteBufferShare&) = delete;
  WriteBufferShare& operator=(const WriteBufferShare&) = delete;

  /// `end_generation` may be called from here on.
  void Join();
  /// It is not called any more. MemTables may still count. Idempotent.
  void Leave();

  bool ShouldFlush() const { return manager_->ShouldFlush(); }
  bool ShouldStall() const { return manager_->ShouldStall(); }
  /// Has the database flush that has most bytes in MemTables that take writes, of those that can,
  /// unless another thread is at it.
  void Relieve();
  /// Waits while writers are to wait, or until `give_up`, which is asked from time to time.
  void AwaitRoom(const std::function<bool()>& give_up);

  /// What the index of a MemTable begins with at most: there may be many, with few entries each.
  size_t IndexBytes() const;
  /// What MemTables take their memory from: those of all databases together, so that what one has
  /// given back serves another.
  const std::shared_ptr<ArenaBlockSource>& blocks() const;

  size_t mutable_bytes() const { return mutable_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class MemTableCharge;

  /// Bytes of a MemTable that takes writes, or takes none any more.
  void Take(size_t bytes, bool takes_writes);
  void Seal(size_t bytes);
  void Free(size_t bytes, bool takes_writes);

  const std::shared_ptr<WriteBufferManager> manager_;
  const std::function<bool()> end_generation_;
  std::atomic<size_t> mutable_bytes_{0};
};

/// What a MemTable has taken of its database's share.
///
/// Thread safety: all methods may be called from many threads at once.
class MemTableCharge {
 public:
  explicit MemTableCharge(std::shared_ptr<WriteBufferShare> share) : share_(std::move(share)) {}
  ~MemTableCharge();
  MemTableCharge(const MemTableCharge&) = delete;
  MemTableCharge& operator=(const MemTableCharge&) = delete;

  /// The MemTable has `bytes` now.
  void GrowTo(size_t bytes) EXCLUDES(mutex_);
  const WriteBufferShare* share() const { return share_.get(); }
  /// It takes no writes from here on, save those that are under way.
  void Seal() EXCLUDES(mutex_);

 private:
  const std::shared_ptr<WriteBufferShare> share_;
  Mutex mutex_;
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  bool sealed_ GUARDED_BY(mutex_) = false;
};

}  // namespace nacre
