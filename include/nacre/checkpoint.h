#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

// Checkpoints: consistent copies of a database in a directory of an ordinary file system, made
// while it is written to, and databases made from them, in any pool and with any redundancy (dLSM,
// section VIII). They resemble RocksDB's Checkpoint and BackupEngine.
//
// A directory holds any number of checkpoints, of any databases, which share the files of tables
// that they have in common: a further checkpoint of a database writes only the tables that are new
// since. What a killed process leaves there is no checkpoint, and the next one made in the
// directory makes use of it or removes it. One process at a time changes a directory.

namespace nacre {

/// How far a checkpoint, a check or a restore has come.
struct CheckpointProgress {
  uint64_t tables = 0;       ///< Tables in the checkpoint.
  uint64_t tables_done = 0;  ///< Tables that are complete, including those that were there before.
  uint64_t bytes = 0;        ///< Bytes of all these tables.
  uint64_t bytes_done = 0;   ///< Bytes of complete tables, including those that were there before.
  uint64_t bytes_copied = 0;
};

/// Told of each mebibyte at the latest (of each chunk, if these are larger), by the threads at
/// work, one at a time. Answers whether to go on: if not, the call ends with `Aborted` soon, and
/// what it has done stays as after a kill. Must not call into the database.
using CheckpointCallback = std::function<bool(const CheckpointProgress&)>;

/// How files are encrypted: with AES-256-GCM and a key of each file's own, so that they can be
/// neither read nor changed, exchanged or cut without a key (docs/security.md).
struct FileEncryption {
  /// A text file with a line `ID HEX` for each key, 64 hexadecimal digits, and comments behind `#`;
  /// only its owner may read it. The first key encrypts, and all of them decrypt. Empty: files are
  /// not encrypted, and those that are cannot be read. Each call reads it anew.
  std::string key_file{};
  /// What the files belong to: with another context they cannot be read.
  std::string context{};
  /// With a key file, a restore takes no checkpoint and no log that is not encrypted, as these may
  /// be anyone's; this allows those from before there was a key.
  bool accept_plain = false;
};

struct CheckpointOptions {
  int threads = 4;  ///< Tables that are copied at once; 1 to 64.
  /// Read at most so many bytes a second, over all threads; 0: no limit.
  uint64_t bytes_per_second = 0;
  CheckpointCallback progress{};
  /// An encrypted checkpoint shares the files of tables with encrypted ones only.
  FileEncryption encryption{};
};

/// One of a directory.
struct CheckpointInfo {
  uint64_t number = 0;  ///< Number in its directory; later checkpoints have higher ones.
  uint64_t id = 0;      ///< No other checkpoint has it, in any directory.
  std::string database;
  uint64_t sequence = 0;  ///< The database was as of this sequence number.
  std::string comparator;
  uint64_t tables = 0;
  uint64_t bytes = 0;       ///< Bytes of these tables; checkpoints share files.
  uint64_t bytes_new = 0;   ///< Bytes that CreateCheckpoint wrote; 0 elsewhere.
  uint64_t created_at = 0;  ///< Seconds since 1970, by the clock of the file system.
  std::string key_id;       ///< The key that its description is encrypted with; empty: none.
};

/// Makes checkpoints of an open database, or of one that is opened for reading while another
/// process owns it.
/// Thread safety: all methods may be called from many threads at once.
class Checkpoint {
 public:
  /// `db` is not owned, and outlives the result. `NotSupported` if it was made by none of
  /// `DB::Open`, `DB::OpenForReadOnly` and `DB::OpenAsSecondary`.
  static Status Create(DB* db, std::unique_ptr<Checkpoint>* checkpoint);
  virtual ~Checkpoint() = default;

  /// Writes the state of the database into `dir`, which is made if it is missing: all writes up to
  /// `info->sequence`, which has all that had returned when this was called, and none after it.
  /// MemTables are flushed first. Writes, flushes and compactions go on; the space of tables that
  /// these drop is freed once they are copied. Every byte is compared with its checksum on the way;
  /// damage and lost nodes are read around as by other reads. `info` may be null.
  ///
  /// Of a database that is opened for reading it takes what is in tables: all writes up to the last
  /// flush of the owner, which learns nothing of it. Tables that are compacted away before they are
  /// copied are replaced by those that took their place, again and again if need be (`TryAgain` if
  /// there is no end to it). All column families must be open (`InvalidArgument`).
  ///
  /// OK: it is on the disk, whole. `Busy`: another process is at work in the directory. `IOError`
  /// names the file, `Corruption` and `Unavailable` the table that cannot be read; `NoSpace`, when
  /// the pool has no room for the flush; `Fenced`, and other failures of a flush. `InvalidArgument`
  /// names a key file that makes no sense, or a file and the key that it lacks. After a failure,
  /// as after a kill, the same call finds the tables that were finished, checks them, and goes on
  /// with the others.
  virtual Status CreateCheckpoint(const std::string& dir, const CheckpointOptions& options,
                                  CheckpointInfo* info) = 0;
};

/// The checkpoints in `dir`, by number. `NotFound` if there is no such directory. `Corruption`
/// naming the file if a description is damaged, `InvalidArgument` naming file and key if it is
/// encrypted and `encryption` lacks the key; the others are listed nevertheless.
Status GetCheckpoints(const std::string& dir, std::vector<CheckpointInfo>* checkpoints,
                      const FileEncryption& encryption = FileEncryption());

/// How many files of checkpoints in `dir` are encrypted with each key, by its ID; with the empty
/// one are those that are not. No key is needed. `NotFound`, `IOError`; `Corruption` naming a file
/// that does not tell.
Status GetCheckpointKeys(const std::string& dir, std::map<std::string, uint64_t>* files);

/// Removes checkpoint `number` from `dir`, and the tables that no other one has. `NotFound`,
/// `Busy`, `IOError`. `Corruption` if another description is damaged: then nothing is removed, as
/// the tables that it needs are unknown. The damaged one itself may be removed; its tables go, too.
/// Needs the keys of all descriptions.
Status DeleteCheckpoint(const std::string& dir, uint64_t number,
                        const FileEncryption& encryption = FileEncryption());

/// Reads all of checkpoint `number` (0: the latest) and compares it with its checksums.
/// `Corruption` names a damaged file, `NotFound` a checkpoint that is not there, `Busy` as above.
/// Of one that is encrypted it finds what was changed on purpose, too.
Status VerifyCheckpoint(const std::string& dir, uint64_t number, const CheckpointOptions& options);

struct RestoreOptions {
  uint64_t checkpoint = 0;  ///< Its number; 0: the latest.
  /// Tables that are copied at once, 1 to 64; 0: as many as the machine has processors, at most 8.
  int threads = 0;
  /// Read at most so many bytes a second, over all threads; 0: no limit.
  uint64_t bytes_per_second = 0;
  CheckpointCallback progress{};
  /// Options of column families of the checkpoint. Those that are not among these are made with the
  /// options of the default one, and its comparator or the bytewise one, whichever is theirs.
  std::vector<ColumnFamilyDescriptor> families{};
  /// Called with the database once it has all tables, and before its name can be opened: what it
  /// writes is part of the restore. A restore that goes on after a failure calls it again; what
  /// was flushed by then is there (`DB::GetLatestSequenceNumber`).
  std::function<Status(DB* db)> then{};
  FileEncryption encryption{};
};

/// Writes batches that the database of the checkpoint had behind it, with their sequence numbers:
/// for `RestoreOptions::then`, with the database that it gets. Each batch is as WriteBatch::Data,
/// with its sequence in front; the first one follows on `db->GetLatestSequenceNumber()`, and each
/// on the one before. They are not logged, and are checked and inserted by `threads` threads (as
/// RestoreOptions::threads) at once: many in one call take less time. Nothing else may write to the
/// database meanwhile. Blocks while flushes are behind. The bytes are not needed any more when this
/// returns. A restore that is killed has kept the batches up to some point, each whole.
///
/// `InvalidArgument`: a sequence that does not follow on the one before, or a family that the
/// checkpoint has not got; `NotSupported`: the database is not being restored, or a merge without
/// an operator; `Corruption`: bytes that are no batch. These name the sequence. Otherwise it fails
/// as flushes do. What comes before the failure may be there or not; after it the restore can only
/// be ended, and be run again.
Status LoadBatches(DB* db, std::span<const Slice> batches, int threads = 0);

/// Makes the database `name` of a checkpoint in `dir`, in the pool and with the redundancy of
/// `options`. It has the checkpoint's tables in their levels, and its sequence numbers go on from
/// there. The options mean what they mean to `DB::Open`; the database is closed when this returns.
///
/// Until this has returned OK the name cannot be opened (`Incomplete`). After a failure or a kill
/// the same call goes on where the last one was; `DestroyDB` removes what there is.
///
/// `InvalidArgument`: there is a database of that name, or one that is being restored from another
/// checkpoint; another comparator, or more levels, than the options have; an embedded pool that is
/// not opened already. `Corruption` names a file that is damaged, missing or not what the
/// description says, `NotFound` a checkpoint that is not there, `InvalidArgument` one whose key is
/// missing, or that is not encrypted and there is a key file. `NoSpace`, `Unavailable`, `Busy` as
/// DB::Open and flushes.
Status RestoreDB(const Options& options, const std::string& name, const std::string& dir,
                 const RestoreOptions& restore = RestoreOptions());

}  // namespace nacre
