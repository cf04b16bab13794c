#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/async.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "server/loop/event_loop.h"
#include "server/loop/worker_pool.h"
#include "server/store/lock_table.h"
#include "util/mutex.h"

namespace nacre::server {

/// The Nacre database behind a server. Redis's database 0 is its default family, number N the
/// family "dbN", which is made when it is first selected. The family "server" has what servers
/// tell one another.
///
/// This process owns the database, so that locks of this process keep commands apart. A keyspace of
/// several servers needs transactions in their place, at UnitOfWork::Lock and Commit.
///
/// Thread safety: all methods may be called from many threads at once.
class Store {
 public:
  /// One database of Redis.
  struct Database {
    ColumnFamilyHandle* family = nullptr;
    /// There may be rows other than those of strings: what replaces a key has to look for them. It
    /// is set with the key's lock held, before the first of them is written.
    std::atomic<bool> has_elements{false};
    /// When the sweeper has something to do next, in milliseconds of Unix time. 0: at once, as at
    /// the start, when nothing is known. A sweep without need would cost more than its own time:
    /// scans have a MemTable keep its order from then on.
    std::atomic<uint64_t> sweep_at_ms{0};

    /// Has the sweeper look at that time at the latest. Called when what it will find is visible.
    void SweepBy(uint64_t unix_ms);
  };

  /// As DB::Open answers.
  static Status Open(const Options& options, const std::string& name, int databases,
                     std::unique_ptr<Store>* store);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  int databases() const { return static_cast<int>(databases_.size()); }
  /// Null if it was never selected. `number` is below databases().
  Database* Find(int number) const {
    return databases_[static_cast<size_t>(number)].load(std::memory_order_acquire);
  }
  /// Makes the database if it is not there, which blocks.
  Status Make(int number) EXCLUDES(mutex_);

  /// Notes where clients reach the server that has the database, durably, if there are servers to
  /// read it: `first` says so, and from then on the database has a family for it. Blocks.
  Status Announce(const std::string& address, bool first) EXCLUDES(mutex_);
  /// `Fenced` if another process has taken the database over.
  Status CheckOwned() const;

  /// Closes the database; everything else has ended.
  Status Close();

  DB* db() const { return db_.get(); }
  LockTable* locks() { return &locks_; }
  /// Differs from all others that the same key has had: the first one is drawn at random.
  uint64_t NewIncarnation() { return next_incarnation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  explicit Store(int databases) : databases_(static_cast<size_t>(databases)) {}
  Status OpenDatabases(const Options& options, const std::string& name);
  /// Takes a family that was opened or made.
  Status Adopt(int number, ColumnFamilyHandle* family);

  std::unique_ptr<DB> db_;
  ColumnFamilyHandle* server_family_ GUARDED_BY(mutex_) = nullptr;  ///< Null: not made yet.
  ColumnFamilyOptions family_options_;
  std::atomic<uint64_t> next_incarnation_{0};
  LockTable locks_;
  Mutex mutex_;  ///< One family is made at a time.
  std::vector<std::unique_ptr<Database>> made_ GUARDED_BY(mutex_);
  /// The release of a pointer is paired with the acquire in Find.
  std::vector<std::atomic<Database*>> databases_;
};

/// Follows the database of another server, for where clients reach that.
///
/// Thread safety: none.
class AnnouncedAddress {
 public:
  AnnouncedAddress(const Options& options, std::string name)
      : options_(options), name_(std::move(name)) {}
  ~AnnouncedAddress();

  /// HOST:PORT, as it was some tens of milliseconds ago. `NotFound` if none was announced; else as
  /// DB::OpenAsSecondary fails.
  Status Read(std::string* address);

 private:
  const Options options_;
  const std::string name_;
  std::unique_ptr<DB> follower_;
  std::vector<ColumnFamilyHandle*> handles_;
};

/// How one loop reaches the store.
struct StoreAccess {
  Store* store = nullptr;
  EventLoop* loop = nullptr;
  AsyncDB* async = nullptr;
  WorkerPool* workers = nullptr;
};

}  // namespace nacre::server
