#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

struct ShardInfo;

/// Told of the shards that this process serves, for programs that answer for whole shards rather
/// than go through the keyspace: what they read of a shard's database, and write to it, is never
/// forwarded to another member.
///
/// Calls for one shard come one at a time, in turn OnShardServed and OnShardLeaving; those for
/// several shards may come at once, from any thread.
class ShardObserver {
 public:
  virtual ~ShardObserver() = default;
  /// From here on this process serves the shard, whose database is `db`. Until OnShardLeaving has
  /// returned it may be read and written directly; batches over several shards of the keyspace do
  /// not keep clear of that. Operations answer `Fenced` once another process has taken it over.
  virtual void OnShardServed(const ShardInfo& shard, DB* db) = 0;
  /// The shard is about to go to another member, to be split or merged, or to be closed. Returns
  /// when nothing uses its database any more, handles of families and iterators included.
  virtual void OnShardLeaving(uint32_t shard) = 0;
  /// How many operations were done on the shard's database since it is served, of any unit: shards
  /// are moved by that (ShardedDB::SetBalance). It must not wait. Called at any time.
  virtual uint64_t OperationsOn(uint32_t /*shard*/) { return 0; }
  /// Answers what another member asks (ShardedDB::AskMember): nothing of the keyspace, but what the
  /// programs that have it open want of one another. That member gets `*answer`, or the failure.
  /// Called by threads of the keyspace, several at once; it may wait.
  virtual Status OnRequest(const Slice& /*request*/, std::string* /*answer*/) {
    return Status::NotSupported("this member answers no requests of programs");
  }
};

/// Options of a keyspace and of each of its shards.
struct ShardedOptions : Options {
  ShardedOptions() = default;
  explicit ShardedOptions(const Options& options) : Options(options) {}

  /// Where a new keyspace is cut: one shard begins before all keys, and one at each of these, which
  /// ascend in the order of `comparator` (`InvalidArgument`). One that exists keeps its own.
  std::vector<std::string> boundaries;
  /// What keeps the map of a keyspace that several processes own together, "etcd:HOST:PORT,...".
  /// Empty: this process owns all shards, and the map lies in the pool. A keyspace that was opened
  /// with a coordinator once is never opened without one again.
  std::string coordinator;
  /// With a coordinator: where this process serves its shards to the other members, such as
  /// "tcp:10.0.0.1:7500" or, on one host, "shm:@". Port 0 takes any. Empty: it owns no shards, and
  /// only uses the keyspace. If the pool has a secret, only processes that know one of this
  /// process's are served there, and with its `tls` in the pool's URI that is encrypted as well.
  std::string member_address;
  /// A member that the coordinator has not heard from for so long is none any more, and its shards
  /// go to others. At least a second.
  std::chrono::milliseconds member_lease{2000};
  /// With a coordinator: where this process's own clients reach it, or anything else that other
  /// members should know of it (ShardMember::client_address).
  std::string client_address;
  /// With a coordinator: may be null. It has to stay until the keyspace is closed.
  std::shared_ptr<ShardObserver> shard_observer;
  /// Keys that begin with the same so many bytes are never divided by a split: shards begin at keys
  /// of that length. 0: any key may begin a shard. All members give the same number.
  size_t undivided_prefix_bytes = 0;
};

/// A shard of an open keyspace.
struct ShardInfo {
  uint32_t id = 0;       ///< Never used twice by a keyspace.
  std::string database;  ///< Name of the database that holds it, "<keyspace>@<id>".
  std::string begin;     ///< Its first key may be this one; empty for the first shard.
  std::string end;       ///< Its keys are before this one, if it is not the last shard.
  bool last = false;
  int64_t owner = 0;   ///< The member that should own it; 0: none, or this process owns them all.
  uint64_t epoch = 0;  ///< How often its owner was set.
  bool local = true;   ///< This process serves it.
};

/// A process that has a keyspace open by a coordinator.
struct ShardMember {
  int64_t id = 0;       ///< Never used twice. A member that was cut off comes back under another.
  std::string address;  ///< Empty: it only uses the keyspace.
  std::string client_address;  ///< As its ShardedOptions have it.
  bool leads = false;
  bool draining = false;
  bool self = false;
  uint64_t shards = 0;  ///< How many shards should be its own.
};

/// A database that consists of shards: ranges of keys, each of which is a Nacre database with
/// MemTables, a log and tables of its own. All of them together are used as one `DB`.
///
/// Shards that grow large are split by themselves, also if there was only one to begin with.
///
/// A write of one shard costs what it costs a `DB`. A batch over n shards is atomic, by a two-phase
/// commit, which takes the time of 2n - 1 writes: all shards but the first prepare it, the first
/// one commits and thereby decides, then the others commit. Whatever reads or writes the same keys
/// meanwhile waits. A crash leaves all of it or nothing. Single operations, batches, MultiGets,
/// snapshots and iterators of the keyspace are strictly serializable, as those of a `DB` are.
///
/// What differs from a `DB`:
///   - All families have the comparator of the default one, and no name begins with '@'
///     (`InvalidArgument`). With a coordinator CreateColumnFamilies needs the operators (merges,
///     prefixes, filters) of the default family, too (`NotSupported`), since other members open the
///     family with them; making or dropping one ends snapshots and iterators, as a move does.
///   - The sequence number of a snapshot is the sum over the shards.
///   - If a write over several shards fails once it may have been decided, later reads and writes
///     of its keys answer that failure until the keyspace is opened again, which settles it.
///   - Without a log (`WriteOptions::disable_wal`, an embedded pool) a crash may leave a part of a
///     batch over several shards: they flush at different times.
///   - Properties that are numbers are sums over the shards; those that are texts have a part for
///     each. Numbers of the pool and of its nodes are answered once. "nacre.shards" is how many
///     there are.
///   - `TryCatchUpWithPrimary` is `NotSupported`. Transactions are optimistic ones
///     (`OptimisticTransactionDB`) or have locks (`TransactionDB`). With a coordinator they cannot
///     be prepared.
///   - `NewAsyncDB` reads within the call what this process has mapped, and leaves all else to
///     threads: reads wait for nodes up to 16 at a time, writes go one after the other.
///   - `Options::db_write_buffer_size` is that of all shards together.
///
/// Thread safety: as DB.
class ShardedDB : public DB {
 public:
  /// Opens the keyspace `name`, or makes it (`Options::create_if_missing`). Fails as `DB::Open`
  /// does.
  static Status Open(const ShardedOptions& options, const std::string& name,
                     std::unique_ptr<ShardedDB>* db);
  /// The same with these column families, as `DB::Open` has it. `InvalidArgument` if a new keyspace
  /// would take a database that there is already for one of its shards.
  static Status Open(const ShardedOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<ShardedDB>* db);
  /// As `DB::ListColumnFamilies`.
  static Status ListColumnFamilies(const DBOptions& options, const std::string& name,
                                   std::vector<std::string>* families);

  /// A handle of a family of the keyspace, such as one that another member has made since this
  /// process opened it. `NotFound` if there is none, as far as this process knows.
  virtual Status OpenColumnFamily(const std::string& name, ColumnFamilyHandle** handle) = 0;

  /// The shards, in the order of their keys.
  virtual std::vector<ShardInfo> GetShards() const = 0;

  /// Has two shards take the place of one, of which the second one begins at `key`; an empty key:
  /// in the middle of what the shard holds. They have new ids. The shard is copied while it serves;
  /// requests wait while what was written meanwhile is, about a tenth of a second at most.
  /// `InvalidArgument`: there is no such shard, or it does not have the key, or begins there.
  /// `Busy`: it is being moved, split or merged, or was so a moment ago. `NotFound`: it holds too
  /// little to have a middle. Fails as flushes and compactions do; then nothing changes.
  virtual Status SplitShard(uint32_t shard, const Slice& key) = 0;
  /// Has one shard take the place of two, likewise, of which `high` begins where `low` ends. With a
  /// coordinator they have to be the same member's (`InvalidArgument`).
  virtual Status MergeShards(uint32_t low, uint32_t high) = 0;

  /// Changes when shards are split, merged and moved by themselves; it holds for all members, and
  /// for those who open the keyspace later. The options, with what holds if they are 0 or were
  /// never set:
  ///   - paused (false): nothing is split, merged or moved unless that is asked for, or its member
  ///     is gone or drained.
  ///   - split_bytes (4GiB, at least 1MiB): a shard that holds more is split in its middle.
  ///   - split_operations_per_second (no bound): a shard that does more is split.
  ///   - merge_bytes (no merges; at most half of split_bytes): neighbours that hold less together,
  ///     and do nearly nothing, become one.
  ///   - imbalance_percent (30): with a coordinator, a shard moves if its member has more than the
  ///     average by so much.
  /// Numbers are decimal, those of bytes may have a unit ("512MiB"). `InvalidArgument`, naming what
  /// is wrong: there is no such option, or it cannot have the value; then nothing is changed.
  virtual Status SetBalance(const std::unordered_map<std::string, std::string>& changes) = 0;
  /// What holds, as this process knows it: all of these options.
  virtual std::unordered_map<std::string, std::string> GetBalance() const = 0;

  // ---- With a coordinator; without one these are `NotSupported` ----

  /// The members, in the order of their ids. Fails as the coordinator did last, if it cannot be
  /// reached; `*members` is what it said before.
  virtual Status GetMembers(std::vector<ShardMember>* members) const = 0;
  /// Gives a shard to another member, and returns when that serves it. No table is copied: the
  /// member closes the shard's database, and the other one opens it. Requests meanwhile wait.
  /// `InvalidArgument`: there is no such shard, or no such member that serves shards.
  virtual Status MoveShard(uint32_t shard, int64_t member) = 0;
  /// From here on, or no more, the member gets no shards, and those that it has go to others one
  /// after the other.
  virtual Status DrainMember(int64_t member, bool drain) = 0;
  /// Has another member's observer answer a request (ShardObserver::OnRequest), over the connection
  /// that the two have, with what secures it; a program needs no network of its own. `Unavailable`:
  /// the member has not seen it. `TimedOut`: it may have, or may yet, but has not answered in
  /// `timeout`, or has ended. Else what it answers. A member whose secret may not write asks
  /// nothing.
  virtual Status AskMember(int64_t member, const Slice& request, std::chrono::milliseconds timeout,
                           std::string* answer) = 0;
};

/// Deletes the keyspace `name` in the pool of `options`. OK if there is none. `Busy` while a
/// process has it open; what was deleted by then is gone.
Status DestroyShardedDB(const std::string& name, const Options& options);
/// The same, and with `options.coordinator` also what that has of the keyspace. `Busy` before
/// anything is deleted while it has members: one that died is a member until its lease has ended.
/// Fails as the coordinator does, too.
Status DestroyShardedDB(const std::string& name, const ShardedOptions& options);

}  // namespace nacre
