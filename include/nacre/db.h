#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/iterator.h"
#include "nacre/metadata.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"

namespace nacre {

class AsyncDB;
class AsyncExecutor;
class TransactionLogIterator;

/// A state of the database that stays readable. Made by `GetSnapshot`, given back to
/// `ReleaseSnapshot`.
class Snapshot {
 public:
  virtual uint64_t GetSequenceNumber() const = 0;

 protected:
  virtual ~Snapshot() = default;
};

/// Keys from `start` (inclusive) to `limit` (exclusive).
struct Range {
  Slice start;
  Slice limit;
};

struct GetMergeOperandsOptions {
  /// Room for so many is given.
  int expected_max_number_of_operands = 0;
};

/// An ordered map from keys to values, kept in a pool of memory nodes. This process is its owner:
/// it holds the MemTables, the metadata and small indexes; tables live on the nodes.
///
/// Thread safety: every method may be called from many threads at once, except the destructor and
/// `Close`, which need all other calls to have returned and all iterators to be gone. Writers do
/// not lock one another out.
///
/// Column families. Each is a map of its own, with its own options; all share the log, so that one
/// write can change several of them at once, and one sequence, so that a snapshot is of them all.
/// What takes a family takes null for the default one, as do the methods without a family. The
/// handle has to be of this database (`InvalidArgument`).
///
/// Errors common to all operations: `Unavailable` when nodes that hold the data are lost (the
/// message names them), `TimedOut` after `Options::operation_timeout`, `Corruption` when a
/// checksum does not match (the message names table and offset). Nothing waits for ever.
class DB {
 public:
  /// Opens the database `name` in the pool of `options`.
  ///
  /// If its owner died or is fenced (`Options::take_over`), the database goes on where that owner
  /// stopped: each write that it acknowledged and logged is there.
  ///
  /// `InvalidArgument`: an option is out of range, another comparator than at creation, a missing
  /// database without `create_if_missing`, an existing one with `error_if_exists`. `Busy`: another
  /// owner has it open. `NoSpace`: no slab is free. `Unavailable`: too few nodes of the pool can be
  /// reached. `Corruption`: log or manifest are damaged in all their replicas; the message says
  /// where.
  static Status Open(const Options& options, const std::string& name, std::unique_ptr<DB>* db);
  /// The same with these column families. All that the database has must be named, the default one
  /// among them, and be there (`InvalidArgument`), unless
  /// `DBOptions::create_missing_column_families`. `*handles`: one for each, in their order.
  static Status Open(const DBOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db);
  /// Names of the families of a database that may be open, in the order in which they were made.
  /// `NotFound`: there is no such database.
  static Status ListColumnFamilies(const DBOptions& options, const std::string& name,
                                   std::vector<std::string>* families);

  /// Opens a database that another process may own, to read it as it is now and for as long as this
  /// is open. Writes nothing anywhere and asks nothing of the owner, which may come and go.
  ///
  /// What the owner writes later is not seen. Once the owner has reused the memory of tables that
  /// it dropped, reads that need these answer `TryAgain`. While there is no owner, no memory is
  /// reused.
  ///
  /// `NotFound`: there is no such database. `InvalidArgument`: an option is out of range, another
  /// comparator than at creation; with `error_if_wal_file_exists`, some of its writes are in the
  /// log only. `Unavailable`, `Corruption` as `Open` answers them.
  static Status OpenForReadOnly(const Options& options, const std::string& name,
                                std::unique_ptr<DB>* db, bool error_if_wal_file_exists = false);
  /// The same with these column families: the default one, and any others that there are
  /// (`InvalidArgument` otherwise). The form without them opens the default one alone.
  static Status OpenForReadOnly(const DBOptions& options, const std::string& name,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db,
                                bool error_if_wal_file_exists = false);
  /// The same, and `TryCatchUpWithPrimary` brings it up to date; so does every
  /// `Options::follow_interval`, and each read with `ReadOptions::linearizable`.
  ///
  /// Reads see one state of the database at a time: a batch whole or not at all, and never an
  /// earlier state than a read before. A read that meets reused memory continues in a later state.
  /// A snapshot or an iterator keeps its own; if the memory that it needs was used again, and a
  /// later state has not got the versions that it would see, it answers `TryAgain`. Writes without
  /// a log are seen when they are in tables, with the ones behind them; those that
  /// `Options::manual_wal_flush` keeps back, when they were sent.
  ///
  /// Besides what other databases answer: `Aborted` once the database was destroyed.
  static Status OpenAsSecondary(const Options& options, const std::string& name,
                                std::unique_ptr<DB>* db);
  /// The same with these column families, as OpenForReadOnly has it. Families that the owner makes
  /// later are seen when it is opened anew; those that it drops stay as they were last.
  static Status OpenAsSecondary(const DBOptions& options, const std::string& name,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db);

  DB() = default;
  /// Closes, as `Close` does, and logs what that answers.
  virtual ~DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  /// Flushes the MemTables, stops background work and leaves the database in the pool, ready to
  /// be opened again. Idempotent.
  virtual Status Close() = 0;

  // ---- Column families ----------------------------------------------------------------------

  /// Makes an empty family. `InvalidArgument`: there is one of that name, or an option is out of
  /// range. `NotSupported` by a database that is opened for reading.
  virtual Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                    ColumnFamilyHandle** handle);
  /// Makes several at once: all of them, by one durable change, or none if that fails. So a crash
  /// leaves all or none. Fails as above; `InvalidArgument` also if two have the same name.
  virtual Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                      std::vector<ColumnFamilyHandle*>* handles);
  Status CreateColumnFamilies(const ColumnFamilyOptions& options,
                              const std::vector<std::string>& names,
                              std::vector<ColumnFamilyHandle*>* handles);
  /// Deletes the family with all it has, and frees its space. The handle goes on reading what there
  /// was until it is destroyed; writes with it are refused with `InvalidArgument`, as is dropping
  /// the default family or one that was dropped.
  virtual Status DropColumnFamily(ColumnFamilyHandle* family);
  /// Drops several at once: all of them, by one durable change, or none if that fails. Fails as
  /// above; `InvalidArgument` also if one is named twice.
  virtual Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families);
  /// Iterators may outlive it. Null is allowed, as is the handle that DefaultColumnFamily answers,
  /// which stays.
  virtual Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family);
  /// The handle of the default family, which the database owns.
  virtual ColumnFamilyHandle* DefaultColumnFamily() const = 0;

  // ---- Writes ---------------------------------------------------------------------------------

  /// A write that has returned OK is on one node more than the database's redundancy can lose,
  /// unless it was without a log (`WriteOptions::disable_wal`, an embedded pool) or
  /// `Options::manual_wal_flush` is set. After another answer than OK it may take place or not,
  /// also later. `Fenced`: another process has taken the database over.
  ///
  /// `NoSpace` when the pool is full, `InvalidArgument` for a key of more than 1 MiB or a value of
  /// more than 2 GiB. Returns once the write is visible to every reader.
  virtual Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& value) = 0;
  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) {
    return Put(options, nullptr, key, value);
  }
  /// OK whether or not the key was there.
  virtual Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                        const Slice& key) = 0;
  Status Delete(const WriteOptions& options, const Slice& key) {
    return Delete(options, nullptr, key);
  }
  /// As Delete, for a key that was put at most once since it was last deleted, and neither merged
  /// nor, since, deleted in another way: the two vanish as soon as a flush or a compaction meets
  /// them. What is read of any other key afterwards is not defined.
  virtual Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                              const Slice& key) = 0;
  Status SingleDelete(const WriteOptions& options, const Slice& key) {
    return SingleDelete(options, nullptr, key);
  }
  /// Deletes all keys in [begin, end), at the cost of one write. `InvalidArgument` if `end` is
  /// before `begin`; nothing happens if they are the same.
  virtual Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                             const Slice& begin, const Slice& end) = 0;
  Status DeleteRange(const WriteOptions& options, const Slice& begin, const Slice& end) {
    return DeleteRange(options, nullptr, begin, end);
  }
  /// Has `operand` applied to the value of `key` when it is read.
  virtual Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       const Slice& operand) = 0;
  Status Merge(const WriteOptions& options, const Slice& key, const Slice& operand) {
    return Merge(options, nullptr, key, operand);
  }
  /// All of `updates` or nothing. The batch is read, not changed.
  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;

  // ---- Reads ----------------------------------------------------------------------------------

  /// `NotFound` if the key is absent.
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value) = 0;
  Status Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
    return Get(options, nullptr, key, value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             std::string* value);
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) {
    return Get(options, nullptr, key, value);
  }
  /// What a Get of `key` would merge, from the oldest to the newest: the value that operands apply
  /// to, if there is one, and the operands; those that flushes and compactions have combined are
  /// one. The operator is not asked, and need not be there. `merge_operands` has room for
  /// `options->expected_max_number_of_operands`; `*number_of_operands` is how many there are.
  /// `Incomplete`: there are more than fit, and none is given. `NotFound` if the key is absent.
  virtual Status GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family,
                                  const Slice& key, PinnableSlice* merge_operands,
                                  GetMergeOperandsOptions* get_merge_operands_options,
                                  int* number_of_operands) = 0;
  /// `values` and `statuses` have `num_keys` elements; all keys are read as of one snapshot, with
  /// their remote reads in flight together.
  virtual void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                        const Slice* keys, PinnableSlice* values, Status* statuses) = 0;
  void MultiGet(const ReadOptions& options, size_t num_keys, const Slice* keys,
                PinnableSlice* values, Status* statuses) {
    MultiGet(options, nullptr, num_keys, keys, values, statuses);
  }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values);
  /// `families` has an element for each key; all are read as of one snapshot. A family's reads are
  /// in flight together.
  virtual std::vector<Status> MultiGet(const ReadOptions& options,
                                       const std::vector<ColumnFamilyHandle*>& families,
                                       const std::vector<Slice>& keys,
                                       std::vector<std::string>* values);

  /// Whether the key may exist, as far as this process's memory tells; false is certain. If
  /// `value_found` is not null, it says whether `*value` was found on the way.
  virtual bool KeyMayExist(const ReadOptions& /*options*/, ColumnFamilyHandle* /*family*/,
                           const Slice& /*key*/, std::string* /*value*/,
                           bool* value_found = nullptr) {
    if (value_found != nullptr) *value_found = false;
    return true;
  }
  bool KeyMayExist(const ReadOptions& options, const Slice& key, std::string* value,
                   bool* value_found = nullptr) {
    return KeyMayExist(options, nullptr, key, value, value_found);
  }

  /// Never null; a failure shows in `status()`. Owned by the caller.
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                                ColumnFamilyHandle* family) = 0;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) {
    return NewIterator(options, nullptr);
  }
  /// One for each family, all as of one snapshot.
  virtual Status NewIterators(const ReadOptions& options,
                              const std::vector<ColumnFamilyHandle*>& families,
                              std::vector<std::unique_ptr<Iterator>>* iterators);

  virtual const Snapshot* GetSnapshot() = 0;
  /// Null is allowed.
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  /// Makes an interface for coroutines; see nacre/async.h. Database and executor must outlive it,
  /// and `executor` is not owned.
  virtual Status NewAsyncDB(AsyncExecutor* /*executor*/, std::unique_ptr<AsyncDB>* /*async*/) {
    return Status::NotSupported("NewAsyncDB: only who owns the database has it");
  }

  /// Sends what `Options::manual_wal_flush` has kept back, and returns when it is on the nodes of
  /// the log; with or without `sync`.
  virtual Status FlushWAL(bool sync) = 0;
  Status SyncWAL() { return FlushWAL(/*sync=*/true); }

  // ---- Background work ------------------------------------------------------------------------

  /// Turns the MemTables of the family into tables, and those of all other families with them; with
  /// `wait`, returns when that is done.
  virtual Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) = 0;
  Status Flush(const FlushOptions& options) { return Flush(options, nullptr); }
  /// Those of several families, all in one change.
  Status Flush(const FlushOptions& options, const std::vector<ColumnFamilyHandle*>& families);
  /// Compacts [*begin, *end]; null means before all or after all keys.
  virtual Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                              const Slice* begin, const Slice* end) = 0;
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) {
    return CompactRange(options, nullptr, begin, end);
  }
  /// Returns when no flush and no compaction is due or running.
  virtual Status WaitForCompact() = 0;
  /// Has compactions take the tables that overlap [*begin, *end] one level down, in the background
  /// and after what is more urgent; not those of the deepest level that has any.
  virtual Status SuggestCompactRange(ColumnFamilyHandle* /*family*/, const Slice* /*begin*/,
                                     const Slice* /*end*/) {
    return OnlyByOwner("SuggestCompactRange");
  }

  /// Returns when flushes and compactions that run have ended; no other one begins until
  /// ContinueBackgroundWork was called as often. Meanwhile full MemTables stall writers, and Flush,
  /// CompactRange and WaitForCompact wait. `Close` ends it.
  virtual Status PauseBackgroundWork() { return OnlyByOwner("PauseBackgroundWork"); }
  /// `InvalidArgument`: it is not paused.
  virtual Status ContinueBackgroundWork() { return OnlyByOwner("ContinueBackgroundWork"); }
  /// Sets `disable_auto_compactions` of these families to false.
  virtual Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& /*families*/) {
    return OnlyByOwner("EnableAutoCompaction");
  }
  /// CompactRange answers `Incomplete` until EnableManualCompaction was called as often; those that
  /// run end so after the step that they are at, which this waits for.
  virtual void DisableManualCompaction() {}
  virtual void EnableManualCompaction() {}
  /// Has work in the background that failed tried again at once instead of after a while, flushes,
  /// and answers what came of that.
  virtual Status Resume() { return OnlyByOwner("Resume"); }

  /// Has the nodes check all they hold of the tables against its checksums, at full speed; nothing
  /// of it comes here. `Corruption` names tables with more damage than can be read around,
  /// `Unavailable` tables that have lost too many nodes. Damage that can be read around is no
  /// failure: it is logged, counted (`nacre.damage.fragments`) and left to repair. The copies of
  /// log and manifest are read and compared, too, and healed at once; a failure to do so is
  /// answered (`NoSpace`, `Unavailable`, `TimedOut`, `Fenced`) if the tables are well.
  virtual Status VerifyChecksum() = 0;

  /// For a database opened by `OpenAsSecondary`: later reads see all that its owner acknowledged
  /// before this call. `Unavailable` if too few nodes can be reached to know, `Aborted` if the
  /// database was destroyed; reads go on with what there was.
  virtual Status TryCatchUpWithPrimary() {
    return Status::NotSupported("TryCatchUpWithPrimary: it was not opened as a secondary");
  }

  /// The batches in the log from the one that has `sequence` on, or the first one behind it that
  /// there is: see nacre/transaction_log.h. For owners and for databases opened for reading.
  /// `NotSupported` if the database has no log, and for a keyspace; otherwise fails as opening it
  /// for reading does.
  virtual Status GetUpdatesSince(uint64_t /*sequence*/,
                                 std::unique_ptr<TransactionLogIterator>* /*updates*/) {
    return Status::NotSupported("GetUpdatesSince: it is no database with one log");
  }

  /// Returns when an archive (nacre/archive.h) has all up to `sequence`, on its disk and with a
  /// base that leads there. For owners. `TimedOut` saying how far the archives are, `Unavailable`
  /// if no archive has been heard of, `NotSupported` if the database has no log, and for a
  /// keyspace.
  virtual Status WaitForArchive(uint64_t /*sequence*/, std::chrono::milliseconds /*timeout*/) {
    return Status::NotSupported("WaitForArchive: it is no database with one log");
  }

  // ---- What there is --------------------------------------------------------------------------

  /// Properties start with "nacre." or, which is the same, "rocksdb."; docs/operations.md lists
  /// them, and says which are of a family. False for an unknown one.
  virtual bool GetProperty(ColumnFamilyHandle* family, const Slice& property,
                           std::string* value) = 0;
  bool GetProperty(const Slice& property, std::string* value) {
    return GetProperty(nullptr, property, value);
  }
  virtual bool GetIntProperty(ColumnFamilyHandle* family, const Slice& property,
                              uint64_t* value) = 0;
  bool GetIntProperty(const Slice& property, uint64_t* value) {
    return GetIntProperty(nullptr, property, value);
  }
  /// What a property that is a text says, by name: "nacre.cfstats", "nacre.dbstats",
  /// "nacre.aggregated-table-properties" and "nacre.space". False for any other.
  virtual bool GetMapProperty(ColumnFamilyHandle* /*family*/, const Slice& /*property*/,
                              std::map<std::string, std::string>* /*value*/) {
    return false;
  }
  bool GetMapProperty(const Slice& property, std::map<std::string, std::string>* value) {
    return GetMapProperty(nullptr, property, value);
  }
  /// A number over all families: the sum of one that is of a family. One that is of the database
  /// stays as it is.
  virtual bool GetAggregatedIntProperty(const Slice& /*property*/, uint64_t* /*value*/) {
    return false;
  }
  /// What properties count of flushes, compactions and stalls starts anew at 0. Statistics are not
  /// touched.
  virtual Status ResetStats() { return OnlyByOwner("ResetStats"); }

  /// Bytes of tables in each of `n` ranges; MemTables are not counted.
  virtual Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                                     uint64_t* sizes) = 0;
  Status GetApproximateSizes(const Range* ranges, int n, uint64_t* sizes) {
    return GetApproximateSizes(nullptr, ranges, n, sizes);
  }

  /// Entries of MemTables in `range`, and their bytes; estimates where there are many.
  virtual void GetApproximateMemTableStats(ColumnFamilyHandle* /*family*/, const Range& /*range*/,
                                           uint64_t* count, uint64_t* size) {
    *count = *size = 0;
  }
  void GetApproximateMemTableStats(const Range& range, uint64_t* count, uint64_t* size) {
    GetApproximateMemTableStats(nullptr, range, count, size);
  }
  /// All live tables, of all families, with what is known of each.
  virtual void GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) { tables->clear(); }
  /// Those of one family, by level; as of one moment.
  virtual void GetColumnFamilyMetaData(ColumnFamilyHandle* /*family*/,
                                       ColumnFamilyMetaData* metadata) {
    *metadata = ColumnFamilyMetaData();
  }
  void GetColumnFamilyMetaData(ColumnFamilyMetaData* metadata) {
    GetColumnFamilyMetaData(nullptr, metadata);
  }
  virtual int NumberLevels(ColumnFamilyHandle* /*family*/) {
    return ColumnFamilyOptions().num_levels;
  }
  int NumberLevels() { return NumberLevels(nullptr); }

  virtual const std::string& GetName() const = 0;
  virtual uint64_t GetLatestSequenceNumber() const = 0;

  // ---- Options --------------------------------------------------------------------------------

  /// The options in force now. For a database that another process owns: those that it was opened
  /// with.
  virtual Options GetOptions(ColumnFamilyHandle* /*family*/) const { return Options(); }
  Options GetOptions() const { return GetOptions(nullptr); }
  virtual DBOptions GetDBOptions() const { return DBOptions(); }
  /// Changes options while the database is open, until it is closed: values as in
  /// nacre/convenience.h. All or none: `InvalidArgument` for one that is unknown, is out of range
  /// or cannot be changed so. Of a family these can: write_buffer_size, max_write_buffer_number,
  /// the triggers of level 0, disable_auto_compactions, and the sizes of tables and levels and of
  /// pending compactions.
  virtual Status SetOptions(ColumnFamilyHandle* /*family*/,
                            const std::unordered_map<std::string, std::string>& /*changes*/) {
    return OnlyByOwner("SetOptions");
  }
  Status SetOptions(const std::unordered_map<std::string, std::string>& changes) {
    return SetOptions(nullptr, changes);
  }
  /// Changes options of the database: max_background_jobs, delayed_write_rate, max_subcompactions,
  /// repair_bytes_per_second, near_data_flush, compaction and allow_degraded_writes.
  virtual Status SetDBOptions(const std::unordered_map<std::string, std::string>& /*changes*/) {
    return OnlyByOwner("SetDBOptions");
  }

 protected:
  static Status OnlyByOwner(const char* method) {
    return Status::NotSupported(std::string(method) + ": only who owns the database has it");
  }
};

/// Deletes the database `name` in the pool of `options`, with all it has there. OK if there is
/// none, as in RocksDB. `Busy` while a process has it open.
Status DestroyDB(const std::string& name, const Options& options);
/// Names of the databases in the pool of `options`, in order, open ones too.
Status ListDBs(const Options& options, std::vector<std::string>* names);

}  // namespace nacre
