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
#include "server/store/encoding.h"
#include "server/store/lock_table.h"
#include "server/store/slots.h"
#include "util/mutex.h"

namespace nacre::server {

/// The Nacre database behind a server. Redis's database 0 is its default family, number N the
/// family "dbN", which is made when it is first selected. The family "server" has what servers
/// tell one another.
///
/// This process owns the database, so that locks of this process keep commands apart. In a cluster
/// each shard of the keyspace that the server has is such a database, of some slots, and all that a
/// command reads and changes is in one of them.
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
    /// By section (RowNames) from the first on: when the sweeper has something to do there next, in
    /// milliseconds of Unix time. 0: at once, as at the start, when nothing is known. A sweep
    /// without need would cost more than its own time: scans have a MemTable keep its order from
    /// then on.
    std::vector<std::atomic<uint64_t>> sweep_at_ms;

    bool surveyed = false;  ///< Survey was called; the sweeper's.

    explicit Database(size_t sections) : sweep_at_ms(sections) {}
  };

  /// As DB::Open answers.
  static Status Open(const Options& options, const std::string& name, int databases,
                     std::unique_ptr<Store>* store);
  /// One database of Redis, with the rows of `slots`, in `db`, which has to stay until Close. Needs
  /// no node to answer.
  static Status Serve(DB* db, SlotRange slots, std::unique_ptr<Store>* store);
  /// All slots in a keyspace, to read only.
  static std::unique_ptr<Store> ToRead(DB* db);
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

  /// Closes the database, unless it is another one's; everything else has ended.
  Status Close();

  DB* db() const { return db_; }
  const RowNames& names() const { return names_; }
  /// The sections that its rows are in; without slots the one that there is.
  const SlotRange& sections() const { return sections_; }
  /// Has the sweeper look at the section at that time at the latest. Called when what it will find
  /// is visible.
  void SweepBy(int number, uint32_t section, uint64_t unix_ms);
  /// Finds out what there is to be swept in each section, with one walk, so that the sweeper need
  /// not look at each. Blocks. If it fails the sweeper does.
  void Survey(int number);
  LockTable* locks() { return &locks_; }
  /// How many commands were run, as far as CountCommands was told.
  uint64_t commands() const { return commands_.load(std::memory_order_relaxed); }
  void CountCommands(uint64_t count) { commands_.fetch_add(count, std::memory_order_relaxed); }
  /// Differs from all others that the same key has had: the first one is drawn at random.
  uint64_t NewIncarnation() { return next_incarnation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  Store(RowNames names, SlotRange sections, int databases)
      : names_(names), sections_(sections), databases_(static_cast<size_t>(databases)) {}
  Status DrawIncarnation();
  Status OpenDatabases(const Options& options, const std::string& name);
  /// Takes a family that was opened or made.
  Status Adopt(int number, ColumnFamilyHandle* family);
  Status LookForElements(Database* database) const;

  const RowNames names_;
  const SlotRange sections_;
  std::unique_ptr<DB> owned_;  ///< Null: another one has it.
  DB* db_ = nullptr;
  ColumnFamilyHandle* server_family_ GUARDED_BY(mutex_) = nullptr;  ///< Null: not made yet.
  ColumnFamilyOptions family_options_;
  std::atomic<uint64_t> next_incarnation_{0};
  std::atomic<uint64_t> commands_{0};
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
  /// The store is about to go to another server, once nothing uses it: nothing is to be waited for
  /// but the database. Stays false unless it is a cluster's.
  bool leaving = false;
  /// How rows are read: a cluster reads some of other servers' from the memory nodes.
  ReadOptions read{};
};

}  // namespace nacre::server
