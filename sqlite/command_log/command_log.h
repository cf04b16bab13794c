#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "sqlite/command_log/command_log_file.h"
#include "sqlite/command_log/command_log_format.h"
#include "util/mutex.h"
#include "util/posix_file.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

/// The commands of committed transactions, in the order of their commits, in a folder of a local
/// file system (dLSM, section VIII; Malviya et al., "Rethinking Main Memory OLTP Recovery"). The
/// database above writes without a log of its own; from a consistent state of it and the log, all
/// that was committed can be made again.
///
///     LOCK held by the process that has the log open COMMANDS-00000000000000000042
///     sqlite/command_log/command_log_format.h checkpoints/ of the database (nacre/checkpoint.h)
///
/// Transactions are numbered from 1. One commits when its number and commands are on the disk; only
/// then its writes are made, in the order of the numbers. So every state that the database has ever
/// had is that after some transaction, and the writes of each bring its number with them, by which
/// the database tells how far it is.
///
/// Group commit: a thread that finds no leader becomes it, writes the commands of all waiting
/// threads, syncs once, and makes the writes of all (as RocksDB's write groups).
///
/// Life: `Open`, `Replay`, `Start`, then the rest. Thread safety: from `Start` on, all methods from
/// many threads at once.
class CommandLog {
 public:
  /// Takes the lock of `folder`, which is made if it is missing, and looks at what is there.
  /// `Busy`: another process, or another database of this one, has it. `InvalidArgument`: it is the
  /// log of another database. `Corruption` names a damaged file.
  static Status Open(const std::string& folder, const std::string& database,
                     CommandFileOpener opener, std::unique_ptr<CommandLog>* log);
  CommandLog(const CommandLog&) = delete;
  CommandLog& operator=(const CommandLog&) = delete;

  const std::string& folder() const { return folder_; }
  std::string checkpoint_folder() const { return folder_ + "/checkpoints"; }
  /// 0 as long as it has no files.
  uint64_t id() const { return id_; }

  /// Has `visit` called for all transactions behind `applied`, in order. Cuts off a torn end.
  /// `Corruption`: damage, a file that is missing, a log that begins after `applied` + 1 or ends
  /// before `applied`.
  Status Replay(uint64_t applied, const CommandVisitor& visit);
  /// Makes commits go behind what was replayed. `new_id`: for a log without files.
  Status Start(uint64_t new_id);

  /// Returns when `commands` are on the disk and `apply`, which is given their number, has answered
  /// OK; it is called by one thread at a time, which may not be the caller's. `IOError`: they could
  /// not be written; if the file could be cut back to what was there before, the log goes on. After
  /// any other failure, such as a failed sync, the state of the disk is unknown: the log takes
  /// nothing more until it is opened anew, and the transaction may be there then.
  Status Commit(const Slice& commands, const std::function<Status(uint64_t number)>& apply);

  /// The next commit goes to a new file. `*last`: all transactions up to this number are applied.
  Status Rotate(uint64_t* last);
  /// Removes files that have no transaction behind `last`, if there is another file behind them.
  Status RemoveUpTo(uint64_t last);

  /// Bytes of all files.
  uint64_t bytes() const;
  /// Returns true when there are `bytes` in its files, false after `Stop`.
  bool AwaitBytes(uint64_t bytes);
  void Stop();
  bool stopped() const;

  /// For tests: the number of syncs, and of threads that wait for a commit.
  uint64_t syncs() const;
  size_t waiting() const;

 private:
  struct Waiter {
    Slice commands;
    const std::function<Status(uint64_t)>* apply;
    Status status{};
    bool done = false;
  };

  CommandLog(std::string folder, std::string database, CommandFileOpener opener)
      : folder_(std::move(folder)), database_(std::move(database)), opener_(std::move(opener)) {}

  std::string PathOf(uint64_t first) const { return folder_ + '/' + CommandFileName(first); }
  Status FindFiles();
  Status MakeFile(uint64_t first) REQUIRES(mutex_);
  /// Writes, syncs and applies what these want; called by one thread at a time, without the mutex.
  void Lead(const std::vector<Waiter*>& group) EXCLUDES(mutex_);
  Status WriteGroup(const std::vector<Waiter*>& group);

  const std::string folder_;
  const std::string database_;
  const CommandFileOpener opener_;
  std::unique_ptr<FileLock> lock_;
  uint64_t id_ = 0;

  // Used by the leader only.
  std::unique_ptr<CommandFile> file_;
  uint64_t end_ = 0;   ///< End of the file that is written to.
  uint64_t next_ = 1;  ///< Number of the next transaction.

  mutable Mutex mutex_;
  /// Signalled when a commit is done or the leader steps down.
  CondVar done_{&mutex_};
  CondVar grown_{&mutex_};
  std::deque<Waiter*> queue_ GUARDED_BY(mutex_);
  bool leading_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  Status broken_ GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> files_ GUARDED_BY(mutex_);  ///< First transaction to bytes.
  uint64_t syncs_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::sqlite
